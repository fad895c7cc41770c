"""Measures the seconds of each op of a graph on the devices of this machine.

Steps run on made-up data (`measuring.runnable`), in a process of its own that
is pinned to the cores in question, or on a TensorFlow server. All ops are on
one device and run one at a time, because the clocks of overlapping ops count
each other's time. TensorFlow's own trace (`RunOptions.FULL_TRACE`) tells how
long each op took; the median over some steps is kept. Tracing costs time
itself, so the untraced step is timed as well and scales the sum; see
`profile.DeviceProfile`. On a GPU the seconds are those of the kernels on its
stream, without the host's time.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import json
import os
import pathlib
import re
from typing import Any, Callable, Sequence

from absl import logging
import numpy as np

from gdp_grappler import cache
from gdp_grappler import errors
from gdp_grappler import files
from gdp_grappler import progress
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import remote_devices
from gdp_grappler.evaluation.costs import profile as profile_lib
from gdp_grappler.evaluation.measuring import local_workers
from gdp_grappler.evaluation.measuring import runnable
from gdp_grappler.evaluation.profiling import contention
from gdp_grappler.evaluation.profiling import machine
from gdp_grappler.evaluation.profiling import profiling_worker
from gdp_grappler.evaluation.profiling import visits
from gdp_grappler.graph import assumptions
from gdp_grappler.graph import graph_def_io
from gdp_grappler.graph import op_graph
from gdp_grappler.graph import source_graph
from gdp_grappler.processes import calls
from gdp_grappler.processes import messages

DEFAULT_STEPS = 20
_LOCAL_CPU = cluster_lib.local_name('CPU', 0)
_WARMUP = 10
_DISTURBED = .1  # More than this share is worth a word.
_TIMEOUT_S = 1800.


def profile_graph(
    source: source_graph.SourceGraph, *,
    batch_size: int = assumptions.DEFAULT_BATCH_SIZE, cores: Sequence[int] = (),
    steps: int = DEFAULT_STEPS, pool: int = 1, device: str = _LOCAL_CPU,
    target: str | Callable[[], str] = '', refresh: bool = False,
    budget_s: float | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
    tell: Callable[[str], None] = logging.info) -> profile_lib.Profile:
  """Profiles a graph on one device, or finds the profile made before.

  Args:
    source: The graph.
    batch_size: For dimensions that it leaves open.
    cores: CPU cores to pin the process to; () for those of the caller. With
      one core, an op has one thread. With a target, the cores that the server
      is known to be pinned to.
    steps: Traced steps.
    pool: Threads that run ops side by side where the steps to be predicted
      are run. Only the untraced step is measured with it. A server has its
      own.
    device: Full name of the device.
    target: Of a TensorFlow server that has the device, or what starts it when
      there is something to measure; '' for this machine.
    refresh: Whether to measure again what is in the cache.
    budget_s: When the measuring process is to be done; fewer steps are traced
      where they take long. None for as long as it takes.
    cache_dir: Folder of the cache; by default `environment.cache_folder()`.
    tell: Hears one line about the profile that is reused or measured.

  Raises:
    MeasurementError: the graph cannot be run, or the device is not there.
  """
  graph = graph_def_io.read(source, unknown_dim=batch_size)
  remote = bool(target)
  cores = tuple(sorted(cores or (() if remote else os.sched_getaffinity(0))))
  model = str(target) if remote and not cores else machine.model(device)
  key = _key(graph, batch_size, cores, pool, device, model, remote)
  path = cache.path('profiles', f'{key}.json', folder=cache_dir)
  if not refresh and (known := _remembered(path, steps, tell)):
    return known
  tell(f'Profiling {graph.name} on {device}: {steps} steps.')
  progress.doing(f'profiling {graph.name} on {device}')
  ready = runnable.convert(source, batch_size)
  seen = _record(
      profiling_worker.Setup(ready, graph.names, devices(graph, device), device,
                             target() if callable(target) else target,
                             () if remote else cores, steps, _WARMUP, pool,
                             budget_s), graph.name)
  _tell_how(seen, device, steps, tell)
  result = _profile(
      graph, batch_size, seen,
      profile_lib.DeviceProfile(device, cluster_lib.device_type(device), model,
                                cores, pool, seen.steps, seen.step_s,
                                min(seen.empty_step_s,
                                    seen.step_s), seen.disturbed, 1., 0.,
                                seen.seconds, seen.executions,
                                seen.workspace_bytes, untimed=seen.untimed))
  _keep(result, seen.complete, path, tell)
  return result


def _tell_how(seen: profiling_worker.Recording, device: str, steps: int,
              tell: Callable[[str], None]) -> None:
  """Says so where ops were not traced, or not in as many steps."""
  if seen.how != profiling_worker.TRACED:
    tell(f'The trace of {device} has no kernels (CUPTI is missing, or not '
         f'permitted): distinct ops were {seen.how}.')
  if seen.steps < steps:
    tell(f'The time budget ended after {seen.steps} of {steps} steps.')


def _keep(result: profile_lib.Profile, complete: bool, path: pathlib.Path,
          tell: Callable[[str], None]) -> None:
  """Caches a profile of one device, and tells what is wrong with it."""
  device, = result.devices
  if not complete:
    tell(f'The time budget ended before {len(device.untimed)} ops of '
         f'{result.graph} were timed. The profile is not kept for other runs.')
    return
  if device.disturbed > _DISTURBED:
    tell(f'Other programs took {device.disturbed:.0%} of the time of core '
         f'{device.cores[0]} while {result.graph} was profiled: measure again '
         'on a quiet machine.')
  if device.step_s > device.empty_step_s:
    cache.keep(path, result.to_text(), tell)
  else:
    tell(
        f'A step of {result.graph} takes no longer than one that does nothing '
        f'({device.empty_step_s * 1e6:.0f} us): its ops count as free, and the '
        'profile is not kept for other runs.')


def profile_devices(source: source_graph.SourceGraph, places: Sequence[Place],
                    **options: Any) -> profile_lib.Profile:
  """One profile of several devices.

  Args:
    source: The graph.
    places: At least one.
    **options: Of `profile_graph`: batch_size, steps, refresh, cache_dir, tell.

  Raises:
    MeasurementError: the graph cannot be run on one of them.
  """
  profiles = [
      profile_graph(source, device=p.device, target=p.target, cores=p.cores,
                    pool=p.pool, **options) for p in places
  ]
  devices = tuple(d for profile in profiles for d in profile.devices)
  return dataclasses.replace(profiles[0], devices=devices)


def profile_local_workers(source: source_graph.SourceGraph, count: int,
                          **options: Any) -> profile_lib.Profile:
  """Profiles each of N local workers, which are started if need be.

  Args:
    source: The graph.
    count: N.
    **options: As of `profile_devices`.

  Raises:
    MeasurementError: the workers or the graph cannot be run.
    GdpError: the cache cannot be written.
  """
  with contextlib.ExitStack() as stack:

    @functools.cache
    def target() -> str:
      return stack.enter_context(local_workers.LocalWorkers(count)).target

    result = profile_devices(
        source,
        worker_places(target, local_workers.device_names(count),
                      local_workers.divide_cores(count)), **options)
    return _with_contention(result, source, target, **options)


def _with_contention(
    profile: profile_lib.Profile,
    source: source_graph.SourceGraph,
    target: Callable[[], str],
    *,
    batch_size: int = assumptions.DEFAULT_BATCH_SIZE,
    refresh: bool = False,
    cache_dir: str | os.PathLike[str] | None = None,
    tell: Callable[[str], None] = logging.info,
    **unused_options: Any,
) -> profile_lib.Profile:
  """The profile of workers, with how they slow each other down; cached."""
  names = tuple(d.name for d in profile.devices)
  key = hashlib.sha256(
      repr((profile.fingerprint, profile.tensorflow, batch_size, names,
            [(d.cores, d.pool, d.model) for d in profile.devices], 1)).encode())
  path = cache.path('contention', f'{key.hexdigest()[:24]}.json',
                    folder=cache_dir)
  found: Sequence[float] | None = None
  if not refresh:
    found = _known_shares(path, len(names), tell)
  if found is None:
    if len(names) > 1:
      tell(f'Running {profile.graph} on all {len(names)} workers at a time.')
      progress.doing(f'running {profile.graph} on all workers')
    graph = graph_def_io.read(source, unknown_dim=batch_size)
    ready = runnable.convert(source, batch_size)
    found = contention.measure([
        profiling_worker.Setup(ready, graph.names, devices(graph, name), name,
                               target() if len(names) > 1 else '', (), 0, 0, 1)
        for name in names
    ], profile.graph)
    cache.keep(path, json.dumps(found) + '\n', tell)
  bus = f'{len(names)} local workers'
  return dataclasses.replace(
      profile, devices=tuple(
          dataclasses.replace(device, bus=bus, contention=share)
          for device, share in zip(profile.devices, found)))


def _known_shares(path: pathlib.Path, count: int,
                  tell: Callable[[str], None]) -> list[float] | None:
  """[count]; None if they are not there."""
  try:
    found = files.parse_json(cache.kept(path, tell) or b'')
  except ValueError:
    return None
  good = isinstance(found, list) and len(found) == count and all(
      isinstance(share, float) and 0 <= share < np.inf for share in found)
  return found if good else None


@dataclasses.dataclass(frozen=True)
class Place:
  """Where to profile: arguments of `profile_graph` of the same names."""

  device: str = _LOCAL_CPU
  target: str | Callable[[], str] = ''
  cores: tuple[int, ...] = ()
  pool: int = 1


def worker_places(target: str | Callable[[], str], names: Sequence[str],
                  cores: Sequence[Sequence[int]]) -> list[Place]:
  """Workers such as `local_workers.LocalWorkers` has.

  Args:
    target: Of one of them, or what starts them.
    names: [N] full names of their devices.
    cores: [N], cores that each is pinned to.
  """
  return [
      Place(name, target, tuple(own), local_workers.INTER_OP_THREADS)
      for name, own in zip(names, cores)
  ]


def local_places(cores: Sequence[int] = (),
                 kinds: Sequence[str] = ()) -> list[Place]:
  """One GPU of each kind of this machine, and its CPU.

  Args:
    cores: Of the process; () for those of the caller.
    kinds: 'GPU' and 'CPU', of which devices are wanted; () for GPUs where there
      are some, else the CPU.

  Raises:
    MeasurementError: there is no GPU, but one is wanted.
  """
  import tensorflow as tf
  cards = {
      machine.model(name): name for name in reversed([
          cluster_lib.canonical_device(d.name)
          for d in tf.config.list_logical_devices('GPU')
      ])
  }
  if 'GPU' in kinds and not cards:
    raise errors.MeasurementError(
        'TensorFlow sees no GPU here. Profile where there is one, or the CPU.')
  kinds = kinds or ('GPU' if cards else 'CPU',)
  gpus = [
      cluster_lib.local_name('GPU', int(n.rsplit(':', 1)[1]))
      for n in cards.values()
  ]
  # The most important device first.
  wanted = gpus * ('GPU' in kinds) + [_LOCAL_CPU] * ('CPU' in kinds)
  return [Place(device, cores=tuple(cores)) for device in wanted]


def remote_places(target: str) -> list[Place]:
  """All CPUs and GPUs of a TensorFlow cluster.

  Raises:
    ClusterError: it does not answer.
  """
  return [
      Place(device.name, target)
      for device in remote_devices.remote_cluster(target).devices
  ]


def _profile(graph: op_graph.OpGraph, batch_size: int,
             seen: profiling_worker.Recording,
             device: profile_lib.DeviceProfile) -> profile_lib.Profile:
  """Of one device, whose seconds and step are made to agree."""
  import tensorflow as tf
  if device.type == 'GPU':
    # The host's part of a step is beside the kernels, and the cluster's.
    scale, visit_s = 1., 0.
  else:
    scale, visit_s = visits.reconcile(device.seconds.sum(), device.visits.sum(),
                                      device.step_s, device.empty_step_s,
                                      seen.chain_visit_s)
  device = dataclasses.replace(device, scale=scale, visit_s=visit_s,
                               seconds=device.seconds * scale)
  return profile_lib.Profile(graph.name, graph.fingerprint, tf.__version__,
                             batch_size, graph.names, graph.op_types,
                             graph.flops, graph.io_bytes, (device,))


def _record(setup: profiling_worker.Setup,
            graph_name: str) -> profiling_worker.Recording:
  try:
    answer = calls.call(f'{profiling_worker.__name__}:record', setup,
                        timeout_s=_TIMEOUT_S, keras=False)
  except calls.CallError as error:
    raise errors.MeasurementError(
        f'Profiling {graph_name} on {setup.device} failed: {error}. The '
        'roofline needs no profile.') from error
  if isinstance(answer, messages.Failure):
    raise errors.MeasurementError(
        f'{graph_name} does not run on {setup.device}: {answer.message}. The '
        'roofline needs no profile.')
  return answer


def devices(graph: op_graph.OpGraph, device: str) -> tuple[str, ...]:
  """[N], the device, or its host for ops that it has no kernel for."""
  host = re.sub(r'device:\w+:\d+$', 'device:CPU:0', device)
  kind = cluster_lib.device_type(device)
  column = op_graph.DEVICE_TYPES.index(kind)
  joint = np.ones(graph.num_groups, bool)
  np.logical_and.at(joint, graph.groups, graph.allowed_types[:, column])
  return tuple(device if joint[g] else host for g in graph.groups)


def _remembered(path: pathlib.Path, steps: int,
                tell: Callable[[str], None]) -> profile_lib.Profile | None:
  """A profile of at least this many steps; None if there is none."""
  data = cache.kept(path, tell)
  if data is None:
    return None
  try:
    result = profile_lib.parse(data, path)
  except errors.GdpError as error:
    tell(f'{error} Measuring anew.')
    return None
  if result.devices[0].steps < steps:
    return None
  tell(f'Reusing the profile of {result.graph} on {result.devices[0].name} '
       f'({result.devices[0].steps} steps, {path}); gdp profile '
       '--refresh measures anew.')
  return result


def _key(graph: op_graph.OpGraph, batch_size: int, cores: Sequence[int],
         pool: int, device: str, model: str, remote: bool) -> str:
  """Of everything that makes another profile."""
  import tensorflow as tf
  parts = (graph.fingerprint, batch_size, cores, pool, device, model, remote,
           tf.__version__, 3)
  return hashlib.sha256(repr(parts).encode()).hexdigest()[:24]

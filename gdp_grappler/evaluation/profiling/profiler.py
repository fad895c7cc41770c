"""Measures the seconds of each op of a graph on the devices of this machine.

Steps run on synthetic data (`measuring.runnable`), in a child process that is
pinned to the given cores, or on a TensorFlow server. All ops are on one device
and run one at a time, because the times of overlapping ops would include each
other. TensorFlow's trace (`RunOptions.FULL_TRACE`) has the seconds of each op;
the median over some steps is kept. Tracing itself takes time, so the untraced
step is timed as well, and the seconds of ops are scaled to it; see
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
from gdp_grappler.evaluation.calibrating import machine
from gdp_grappler.evaluation.costs import profile as profile_lib
from gdp_grappler.evaluation.measuring import local_workers
from gdp_grappler.evaluation.measuring import runnable
from gdp_grappler.evaluation.profiling import contention
from gdp_grappler.evaluation.profiling import profiling_worker
from gdp_grappler.evaluation.profiling import visits
from gdp_grappler.graph import assumptions
from gdp_grappler.graph import graph_def_io
from gdp_grappler.graph import op_graph
from gdp_grappler.graph import source_graph
from gdp_grappler.processes import calls
from gdp_grappler.processes import messages

DEFAULT_STEPS = 20  # Traced steps.
_LOCAL_CPU = cluster_lib.local_name('CPU', 0)
_WARMUP = 10  # Steps before the first step that counts.
_DISTURBED = .1  # A larger share of other programs is reported to the user.
# Seconds beyond its budget after which the measuring process is ended.
_TIMEOUT_S = 1800.


def profile_graph(
    source: source_graph.SourceGraph, *,
    batch_size: int = assumptions.DEFAULT_BATCH_SIZE, cores: Sequence[int] = (),
    steps: int = DEFAULT_STEPS, pool: int = 1, device: str = _LOCAL_CPU,
    target: str | Callable[[], str] = '', refresh: bool = False,
    budget_s: float | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
    tell: Callable[[str], None] = logging.info) -> profile_lib.Profile:
  """Profiles a graph on one device, or returns the profile in the cache.

  Args:
    source: The graph.
    batch_size: Size of dimensions that the graph leaves open.
    cores: CPU cores to pin the process to; () for those of the caller. With
      one core, an op has one thread. With a target, these are the cores that
      the server is known to be pinned to.
    steps: Number of traced steps.
    pool: Threads that run ops in parallel in the steps to be predicted. Only
      the untraced step is measured with this number of threads. A server has
      its own number.
    device: Full name of the device.
    target: Address of a TensorFlow server that has the device, or a function
      that starts the server when a measurement is needed; '' for this machine.
    refresh: Whether to measure although the cache has a profile.
    budget_s: Seconds for the measuring process. If steps take long, fewer steps
      are traced. None means that all steps are traced.
    cache_dir: Folder of the cache; by default `environment.cache_folder()`.
    tell: Function that gets lines for the user.

  Raises:
    MeasurementError: the graph cannot be run, or the device is missing.
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
  """Reports ops that were not traced, and a smaller number of steps."""
  if seen.how != profiling_worker.TRACED:
    tell(f'The trace of {device} has no kernels (CUPTI is missing, or not '
         f'permitted): distinct ops were {seen.how}.')
  if seen.steps < steps:
    tell(f'The time budget ended after {seen.steps} of {steps} steps.')


def _keep(result: profile_lib.Profile, complete: bool, path: pathlib.Path,
          tell: Callable[[str], None]) -> None:
  """Puts a profile of one device into the cache, and reports its defects."""
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
  """Profiles a graph on several devices, one after the other.

  Args:
    source: The graph.
    places: Devices, at least one.
    **options: Arguments of `profile_graph`: batch_size, steps, refresh,
      cache_dir, tell.

  Raises:
    MeasurementError: the graph cannot be run on one of the devices.
  """
  profiles = [
      profile_graph(source, device=p.device, target=p.target, cores=p.cores,
                    pool=p.pool, **options) for p in places
  ]
  devices = tuple(d for profile in profiles for d in profile.devices)
  return dataclasses.replace(profiles[0], devices=devices)


def profile_local_workers(source: source_graph.SourceGraph, count: int,
                          **options: Any) -> profile_lib.Profile:
  """Profiles each of N local workers.

  The workers are started only if the cache lacks a result.

  Args:
    source: The graph.
    count: N.
    **options: Options of `profile_devices`.

  Raises:
    MeasurementError: the workers or the graph cannot be run.
    GdpError: the cache cannot be written.
  """
  with contextlib.ExitStack() as stack:

    @functools.cache
    def target() -> str:
      return stack.enter_context(local_workers.LocalWorkers(count)).target

    places = [
        Place(name, target, tuple(cores), local_workers.INTER_OP_THREADS)
        for name, cores in zip(local_workers.device_names(count),
                               local_workers.divide_cores(count))
    ]
    result = profile_devices(source, places, **options)
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
  """Adds the contention of the workers to their profile; uses the cache."""
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
  """[count], shares in the cache; None if there are none."""
  try:
    found = files.parse_json(cache.kept(path, tell) or b'')
  except ValueError:
    return None
  good = isinstance(found, list) and len(found) == count and all(
      isinstance(share, float) and 0 <= share < np.inf for share in found)
  return found if good else None


@dataclasses.dataclass(frozen=True)
class Place:
  """A device to profile; fields are arguments of `profile_graph`."""

  device: str = _LOCAL_CPU
  target: str | Callable[[], str] = ''
  cores: tuple[int, ...] = ()
  pool: int = 1


def local_places(cores: Sequence[int] = (),
                 kinds: Sequence[str] = ()) -> list[Place]:
  """Places of one GPU of each model of this machine, of its CPU, or of both.

  Args:
    cores: Cores of the process; () for those of the caller.
    kinds: Wanted types of devices, 'GPU' and 'CPU'. () means GPUs if there are
      any, else the CPU.

  Raises:
    MeasurementError: a GPU is wanted, but there is none.
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
  """Places of all CPUs and GPUs of a TensorFlow cluster.

  Raises:
    ClusterError: the cluster does not answer.
  """
  return [
      Place(device.name, target)
      for device in remote_devices.remote_cluster(target).devices
  ]


def _profile(graph: op_graph.OpGraph, batch_size: int,
             seen: profiling_worker.Recording,
             device: profile_lib.DeviceProfile) -> profile_lib.Profile:
  """Profile of one device, with seconds of ops scaled to the step."""
  import tensorflow as tf
  if device.type == 'GPU':
    # The host works in parallel to the kernels. Its times are figures of the
    # cluster.
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
                        timeout_s=_TIMEOUT_S + (setup.budget_s or 0.),
                        keras=False)
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
  """[N], the device; its host for groups that may not be on the device."""
  host = re.sub(r'device:\w+:\d+$', 'device:CPU:0', device)
  kind = cluster_lib.device_type(device)
  column = op_graph.DEVICE_TYPES.index(kind)
  joint = np.ones(graph.num_groups, bool)
  np.logical_and.at(joint, graph.groups, graph.allowed_types[:, column])
  return tuple(device if joint[g] else host for g in graph.groups)


def _remembered(path: pathlib.Path, steps: int,
                tell: Callable[[str], None]) -> profile_lib.Profile | None:
  """The cached profile of at least `steps` steps; None if there is none."""
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
  """Digest of all data on which a profile depends."""
  import tensorflow as tf
  parts = (graph.fingerprint, batch_size, cores, pool, device, model, remote,
           tf.__version__, 5)
  return hashlib.sha256(repr(parts).encode()).hexdigest()[:24]

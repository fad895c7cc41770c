"""Times real transfers between the devices of a cluster.

Two devices play ping-pong: a tensor goes one way and an empty message comes
back, several times within a step. The time of the same ops on one device is
subtracted. A round trip of n bytes costs both latencies and n / bandwidth. One
clock cannot separate the two latencies, so each gets half.

A device without copy engines spends compute on transfers. On CPUs of different
tasks this is mostly the time to write a tensor into a message and to read it.
The measurement is the slowdown of a chain of products on one of the two devices
during transfers.

The graphs run without Grappler, which would fold and merge their ops.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import re
import statistics
import time
import types
from typing import Any, Callable, Iterator, Sequence

from gdp_grappler import errors
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import remote_devices
from gdp_grappler.evaluation.link_timing import line_fit
from gdp_grappler.evaluation.measuring import session_config

# Bytes of the timed copies, 1 B to 64 MiB.
SIZES = tuple(1 << power for power in range(27))
_TIMEOUT_MS = 120_000  # Time limit of a step.
_ROUNDS = 9  # Timed runs of a step, at the most.
_BUDGET_S = 0.4  # Seconds for one size of one pair, after `_LEAST_ROUNDS`.
_LEAST_ROUNDS = 3  # Timed runs of a step, at the least.
# Largest size, and round trips per step: several if a single one is too short.
_TRIPS = ((1 << 16, 16), (1 << 21, 4), (1 << 27, 1))
_EMPTY_STEPS = 30  # Steps that give the time of an empty step.
# For the compute that copies take: sizes, and the number of simultaneous
# transfers of each size.
_COPIES = ((1 << 10, 64), (1 << 16, 32), (1 << 20, 16), (1 << 22, 8))
_PRODUCT = 96  # Rows of the matrices of the chain of products.
# The chain of products lasts this many times as long as the transfers.
_CHAIN = 2.5
# Copies use compute if each lengthens the chain of products by at least this
# share of the time of a transfer.
_BESIDE = 0.1
# Largest share of a transfer's time per byte that the copy at one end takes.
_END = 0.45
_MARKS = ('measured: ', 'assumed: ')
# Notes about links whose figures were assumed.
_OF_LINKS = re.compile(
    r', between tasks .*(?=\.$)|^.*: PCIe of .* is assumed;.*')
_MOST_NAMED = 4  # Devices that a message names, at the most.


@dataclasses.dataclass(frozen=True)
class PairTimes:
  """The times of one ordered pair of devices.

  Attributes:
    source: Index of the sender.
    target: Index of the receiver.
    sizes: [P], bytes of the tensors.
    line: Line fitted to P round trips: a tensor there, an empty message back.
  """

  source: int
  target: int
  sizes: tuple[int, ...]
  line: line_fit.Line


@dataclasses.dataclass(frozen=True)
class Timings:
  """All measurements of a cluster.

  Attributes:
    step_s: Seconds of a step of one empty op per device.
    pairs: Times of each ordered pair of devices.
    copies: For each ordered pair of CPUs of different tasks, seconds of compute
      per transfer on the sender or the receiver, whichever is more. None if
      they were lost in noise, or if copies do not use compute.
  """

  step_s: float
  pairs: tuple[PairTimes, ...]
  copies: dict[tuple[int, int], line_fit.Line | None]


def measure(cluster: cluster_lib.Cluster, target: str = '', *,
            sizes: Sequence[int] = SIZES, copies: bool = True,
            progress: Callable[[str], None] = lambda text: None) -> Timings:
  """Runs transfers between all ordered pairs of devices.

  Args:
    cluster: Cluster of devices that exist at `target`.
    target: '' for this process, or 'grpc://host:port'.
    sizes: Bytes of the tensors.
    copies: Whether to measure the compute that transfers take on CPUs of
      different tasks.
    progress: Function that gets a line about the current activity.

  Raises:
    ClusterError: no server answers at `target`.
    MeasurementError: a device is missing, or a step fails.
  """
  import tensorflow as tf
  names, labels = cluster.device_names, cluster.device_labels
  try:
    _check_devices(tf, cluster, target)
    with _session(tf, names, target) as session:
      step_s = _empty_step_s(tf, session, names)
    pairs = []
    for source, other in itertools.permutations(range(len(names)), 2):
      progress(f'{labels[source]} -> {labels[other]}')
      seconds = _round_trips(tf, names, source, other, target, sizes)
      pairs.append(
          PairTimes(source, other, tuple(sizes), line_fit.fit(sizes, seconds)))
    taken = {}
    for pair in pairs if copies else ():
      if _apart(cluster, pair):
        progress(f'compute taken by {labels[pair.source]} -> '
                 f'{labels[pair.target]}')
        taken[pair.source, pair.target] = _copies(tf, names, pair, target)
    return Timings(step_s, tuple(pairs), taken)
  except (tf.errors.OpError, ValueError, RuntimeError) as error:
    raise errors.MeasurementError(
        f'Transfers of cluster "{cluster.name}" cannot be timed: '
        f'{errors.one_line(error, 300)}. Check that its devices exist '
        f'{"at " + target if target else "in this process"}.') from error


def apply(cluster: cluster_lib.Cluster,
          timings: Timings) -> cluster_lib.Cluster:
  """The cluster with measured figures in place of assumed ones.

  Args:
    cluster: The cluster that was given to `measure`.
    timings: The result of `measure`.
  """
  devices = tuple(
      _with_copies(device, index, timings)
      for index, device in enumerate(cluster.devices))
  fitted = {(cluster.device_names[p.source], cluster.device_names[p.target]): p
            for p in timings.pairs}
  links = tuple(
      _with_line(link, fitted[link.source,
                              link.target], fitted[link.target,
                                                   link.source], devices) if
      (link.source, link.target) in fitted else link for link in cluster.links)
  measured = ['step_s'] + ['latency_s and bandwidth_bytes_per_s of links'] * (
      bool(links)) + ['copy_s and copy_bytes_per_s'] * bool(timings.copies)
  notes = [note for note in cluster.notes if not note.startswith(_MARKS)]
  if timings.pairs:
    notes = [rest for note in notes if (rest := _OF_LINKS.sub('', note))]
  notes.append('measured: ' + ', '.join(measured))
  notes.append('assumed: all other figures')
  if timings.pairs:
    worst = max(timings.pairs, key=lambda p: p.line.error)
    notes.append(f'measured: median error of the fits at most '
                 f'{100 * worst.line.error:.0f} %')
  return dataclasses.replace(cluster, devices=devices, links=links,
                             step_s=timings.step_s, notes=tuple(notes))


def _check_devices(tf: types.ModuleType, cluster: cluster_lib.Cluster,
                   target: str) -> None:
  """Raises a short error if a device is missing; TensorFlow's is long."""
  names = cluster.device_names
  if target:
    there = remote_devices.remote_cluster(target).device_names
  else:
    with _session(tf, names, target) as session:
      there = tuple(device.name for device in session.list_devices())
  missing = [name for name in names if name not in there]
  if missing:
    raise errors.MeasurementError(
        f'Transfers of cluster "{cluster.name}" cannot be timed: it names '
        f'{_listed(missing)}, but {target or "this process"} has '
        f'{_listed(there)}. Time it where its devices are; `gdp '
        'cluster --target=grpc://HOST:PORT` times those of other processes.')


def _listed(names: Sequence[str]) -> str:
  here = cluster_lib.local_name('', 0).removesuffix(':0')
  more = len(names) - _MOST_NAMED
  return ', '.join(name.removeprefix(here) for name in names[:_MOST_NAMED]) + (
      f' and {more} more' if more > 0 else '')


def _with_copies(device: cluster_lib.Device, index: int,
                 timings: Timings) -> cluster_lib.Device:
  """The device with the median compute of the transfers to and from it.

  In the model the two ends of a transfer read and write one after the other.
  In real transfers the two overlap in part. So the time per byte at one end is
  limited to a share of the time per byte of a whole transfer. The time per
  message is not limited, because a ping-pong between idle processes does not
  show this time.
  """
  tried = [line for pair, line in timings.copies.items() if index in pair]
  if not tried:
    return device
  known = [line for line in tried if line is not None]
  if not known:
    return dataclasses.replace(device, copy_s=0., copy_bytes_per_s=None)
  whole = [
      p.line for p in timings.pairs
      if (p.source, p.target) in timings.copies and index in (p.source,
                                                              p.target)
  ]
  copy_s = statistics.median(line.latency_s for line in known)
  per_byte = min(statistics.median(1 / line.bytes_per_s for line in known),
                 *(_END / line.bytes_per_s for line in whole))
  return dataclasses.replace(device, copy_s=copy_s,
                             copy_bytes_per_s=1 / per_byte)


def _with_line(link: cluster_lib.Link, there: PairTimes, back: PairTimes,
               devices: Sequence[cluster_lib.Device]) -> cluster_lib.Link:
  latency_s = (there.line.latency_s + back.line.latency_s) / 4
  return of_transfers(link, latency_s, there.line.bytes_per_s,
                      (devices[there.source], devices[there.target]))


def of_transfers(link: cluster_lib.Link, latency_s: float, bytes_per_s: float,
                 ends: Sequence[cluster_lib.Device]) -> cluster_lib.Link:
  """The link without the part of transfers that its ends compute.

  Args:
    link: Link between two devices.
    latency_s: Seconds of a whole transfer of no bytes.
    bytes_per_s: Rate of large transfers.
    ends: The two devices.
  """
  left_s = latency_s - sum(end.copy_s for end in ends)
  left_per_byte = 1 / bytes_per_s - sum(
      1 / end.copy_bytes_per_s for end in ends if end.copy_bytes_per_s)
  share = 1 - 2 * _END
  return dataclasses.replace(
      link, latency_s=max(left_s, share * latency_s),
      bandwidth_bytes_per_s=1 / max(left_per_byte, share / bytes_per_s))


def _apart(cluster: cluster_lib.Cluster, pair: PairTimes) -> bool:
  """Whether both devices are CPUs of different tasks."""
  ends = [cluster.devices[end] for end in (pair.source, pair.target)]
  tasks = {cluster_lib.task(end.name) for end in ends}
  return all(end.type == 'CPU' for end in ends) and len(tasks) == 2


@contextlib.contextmanager
def _session(tf: types.ModuleType, names: Sequence[str],
             target: str) -> Iterator[Any]:
  """A session with a new graph, which it runs unchanged."""
  with tf.Graph().as_default() as graph:
    config = session_config.as_it_is(
        None if target else session_config.num_cpus(names))
    config.operation_timeout_in_ms = _TIMEOUT_MS
    # Variables end with the session, on other machines as well.
    config.isolate_session_state = True
    with tf.compat.v1.Session(target, graph=graph, config=config) as session:
      yield session


def _empty_step_s(tf: types.ModuleType, session: Any,
                  names: Sequence[str]) -> float:
  ops = []
  for name in names:
    with tf.device(name):
      ops.append(tf.no_op())
  return statistics.median(_clock(session, ops) for _ in range(_EMPTY_STEPS))


def _round_trips(tf: types.ModuleType, names: Sequence[str], source: int,
                 other: int, target: str,
                 sizes: Sequence[int]) -> tuple[float, ...]:
  """[P], seconds of a round trip for each size."""
  with _session(tf, names, target) as session:
    games = []
    for size in sizes:
      variable = _variable(tf, names[source], size)
      trips = next(n for most, n in _TRIPS if size <= most)
      games.append((trips, [
          _ping_pong(tf, variable, names[source], names[end], trips)
          for end in (other, source)
      ]))
    session.run(tf.compat.v1.global_variables_initializer())
    return tuple((there - here) / trips for trips, ends in games
                 for there, here in [_medians(session, ends)])


def _variable(tf: types.ModuleType, device: str, size: int) -> Any:
  with tf.device(device):
    return tf.compat.v1.Variable(tf.zeros([size], tf.uint8), use_resource=True,
                                 trainable=False)


def _ping_pong(tf: types.ModuleType, variable: Any, source: str, target: str,
               trips: int) -> Any:
  """The last op of `trips` round trips between the devices."""
  last: list[Any] = []
  with tf.device(source):
    value = variable.read_value()
  for _ in range(trips):
    # TensorFlow sends a tensor to a device only once, so make a new one.
    with tf.device(source), tf.control_dependencies(last):
      ball = tf.identity(value)
    with tf.device(target):
      last = [tf.identity(ball).op]
    with tf.device(source), tf.control_dependencies(last):
      last = [tf.no_op()]
  return last[0]


def _medians(session: Any, steps: Sequence[Any]) -> list[float]:
  """Median seconds of each step; the steps run in turns."""
  for step in steps:
    session.run(step)
  seconds: list[list[float]] = [[] for _ in steps]
  begin = time.perf_counter()
  for number in range(_ROUNDS):
    if number >= _LEAST_ROUNDS and time.perf_counter() - begin > _BUDGET_S:
      break
    for step, row in zip(steps, seconds):
      row.append(_clock(session, step))
  return [statistics.median(row) for row in seconds]


def _clock(session: Any, step: Any,
           feeds: dict[Any, int] | None = None) -> float:
  begin = time.perf_counter()
  session.run(step, feeds)
  return time.perf_counter() - begin


def _copies(tf: types.ModuleType, names: Sequence[str], pair: PairTimes,
            target: str) -> line_fit.Line | None:
  """Compute of a transfer at the busier end; None if it cannot be measured."""
  rows = [[
      _taken_s(tf, names, pair, busy, size, count, target)
      for size, count in _COPIES
  ] for busy in (pair.source, pair.target)]
  seconds = [max(row) for row in zip(*rows)]
  sizes = [size for size, _ in _COPIES]
  moved = [(size, s) for size, s in zip(sizes, seconds)
           if s > _BESIDE * pair.line.seconds(size)]
  if len(moved) < 2:
    return None
  return line_fit.fit(*zip(*moved))


def _taken_s(tf: types.ModuleType, names: Sequence[str], pair: PairTimes,
             busy: int, size: int, count: int, target: str) -> float:
  """Seconds by which each parallel transfer lengthens a chain of products."""
  with _session(tf, names, target) as session:
    variable = _variable(tf, names[pair.source], size)
    with tf.device(names[pair.source]):
      value = variable.read_value()
      balls = [tf.identity(value) for _ in range(count)]
    with tf.device(names[pair.target]):
      sent = tf.group(*[tf.identity(ball).op for ball in balls])
    length, chain = _products(tf, names[busy])
    session.run(tf.compat.v1.global_variables_initializer())
    session.run(sent)
    session.run(chain, {length: 10})
    one_s = (_clock(session, chain, {length: 110})
             - _clock(session, chain, {length: 10})) / 100
    sent_s = statistics.median(_clock(session, sent) for _ in range(3))
    steps = max(20, min(20_000, int(_CHAIN * sent_s / max(one_s, 1e-6))))
    both, alone = [], []
    for _ in range(_ROUNDS):
      alone.append(_clock(session, chain, {length: steps}))
      both.append(_clock(session, [chain, sent], {length: steps}))
    return (statistics.median(both) - statistics.median(alone)) / count


def _products(tf: types.ModuleType, device: str) -> tuple[Any, Any]:
  """A chain of matrix products: placeholder of its length, and last op."""
  with tf.device(device):
    length = tf.compat.v1.placeholder(tf.int32, [])
    start = tf.fill([_PRODUCT, _PRODUCT], 1. / _PRODUCT)
    last = tf.while_loop(lambda i, _: i < length, lambda i, x:
                         (i + 1, tf.matmul(x, start)), (tf.constant(0), start),
                         parallel_iterations=1)[1]
  return length, last.op

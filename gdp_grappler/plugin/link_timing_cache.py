"""Times the links between tasks, once for the same addresses.

Two tasks send a tensor back and forth (ping-pong), for a few seconds in all.
The caller supplies the ping-pong: functions of an eager context, or a session.
The results are cached for the next run.
"""

from __future__ import annotations

import itertools
import json
import pathlib
import statistics
import threading
import time
from typing import Callable, Mapping, Sequence

from gdp_grappler import cache
from gdp_grappler import digests
from gdp_grappler import errors
from gdp_grappler.cluster import connected_devices
from gdp_grappler.evaluation.link_timing import line_fit
from gdp_grappler.plugin import interrupts
from gdp_grappler.plugin import notices
from gdp_grappler.plugin import task_links

# Time limit of all pairs. Pairs without time get the median of the others.
_BUDGET_S = 5.
# Size of a tensor in bytes, and round trips per call.
_PING_PONGS = ((4, 16), (1 << 16, 8), (1 << 22, 2))
_ROUNDS = 5  # Timed calls for each median.
# Takes two tasks, bytes and round trips. Returns a function that makes these
# round trips in each call, and has made them once already.
PingPong = Callable[[str, str, int, int], Callable[[], None]]
# Links by pairs of tasks, in either order.
_Wires = dict[frozenset[str], task_links.Wire]


class LinkTiming:
  """Times links, once for the same tasks."""

  def __init__(self, known: task_links.TaskLinks, ping_pong: PingPong,
               budget_s: float = _BUDGET_S) -> None:
    """Times nothing yet.

    Args:
      known: Object that gets the timed links.
      ping_pong: The ping-pong.
      budget_s: Time limit of all timings, in seconds.
    """
    self._known, self._budget_s = known, budget_s
    self._ping_pong = ping_pong
    self._lock = threading.Lock()
    self._addresses: dict[str, str] = {}

  def once(self, names: Sequence[str], given: Mapping[str, str]) -> None:
    """Times the links, unless tasks and addresses are those of the last call.

    Links of the same addresses may come from the cache of an earlier run.

    Args:
      names: Names of all devices.
      given: Addresses by task. Addresses whose port varies are left out.
    """
    tasks = sorted(set(map(connected_devices.task_of, names)))
    if len(tasks) < 2:
      return
    with self._lock:
      addresses = {task: given.get(task, '') for task in tasks}
      if addresses == self._addresses:
        return
      place = cache.path('networks', f'{digests.of(addresses)}.json')
      wires = _kept(place)
      if not wires:
        wires = _timed(tasks, self._budget_s, self._ping_pong)
        if wires:
          cache.keep(place, _text(wires), notices.say)
      self._known.know(wires)
      self._addresses = addresses


def _timed(tasks: list[str], budget_s: float, ping_pong: PingPong,
           clock: Callable[[], float] = time.perf_counter) -> _Wires:
  """Times pairs of tasks. Pairs without time get the median of the others."""
  end = clock() + budget_s
  pairs = list(itertools.combinations(tasks, 2))
  wires: _Wires = {}
  for pair in pairs:
    if wires and clock() > end:
      break
    try:
      wires[frozenset(pair)] = _wire(*pair, end, clock, ping_pong)
    except Exception as error:  # TensorFlow fails, or a server is gone.
      if interrupts.is_of_program(error):
        raise
      notices.warn_once('The network cannot be timed; its figures stay '
                        f'assumed: {errors.one_line(error, 200)}')
      return {}
  median = task_links.Wire(
      statistics.median(wire.latency_s for wire in wires.values()),
      statistics.median(wire.bytes_per_s for wire in wires.values()))
  return {frozenset(pair): wires.get(frozenset(pair), median) for pair in pairs}


def _wire(source: str, target: str, end: float, clock: Callable[[], float],
          ping_pong: PingPong) -> task_links.Wire:
  """Returns the link of two tasks.

  The time of a ping-pong within one task is subtracted from the time of a
  ping-pong between the tasks.

  Two sizes are timed in any case. A further size is left out if it would last
  beyond the end, as on a slow network.
  """
  sizes: list[int] = []
  seconds: list[float] = []
  for size, trips in _PING_PONGS:
    if len(sizes) > 1:
      # A trip goes there and back. `ping_pong` itself makes one more call.
      transfers = 2 * trips * (_ROUNDS + 1)
      if clock() + transfers * seconds[-1] * size / sizes[-1] > end:
        break
    plays = [
        ping_pong(source, other, size, trips) for other in (target, source)
    ]
    there_s, here_s = (statistics.median(
        _clocked(play, clock) for _ in range(_ROUNDS)) for play in plays)
    sizes.append(size)
    seconds.append((there_s - here_s) / (2 * trips))
  line = line_fit.fit(sizes, seconds)
  return task_links.Wire(line.latency_s, line.bytes_per_s)


def _clocked(play: Callable[[], None], clock: Callable[[], float]) -> float:
  begin = clock()
  play()
  return clock() - begin


def _text(wires: _Wires) -> str:
  return json.dumps(
      digests.sealed({
          'wires':
              sorted([*sorted(pair), wire.latency_s, wire.bytes_per_s]
                     for pair, wire in wires.items())
      }))


def _kept(place: pathlib.Path) -> _Wires:
  """Returns cached links; empty if the file is missing or damaged."""
  data = cache.kept(place, notices.say)
  if data is None:
    return {}
  try:
    fields = json.loads(data)
    if digests.differs(fields):
      raise ValueError('it was changed')
    return {
        frozenset((one, other)):
            task_links.Wire(float(latency_s), float(bytes_per_s))
        for one, other, latency_s, bytes_per_s in fields['wires']
    }
  except (ValueError, KeyError, TypeError) as error:
    notices.say(f'{place} is damaged: {error}. The network is timed anew.')
    return {}

"""Times the links between tasks, once for the same addresses.

Two tasks play ping-pong, for a few seconds in all. The caller gives the game:
functions of an eager context, or a session. The result is kept for the next
run.
"""

from __future__ import annotations

import itertools
import json
import pathlib
import statistics
import threading
import time
from typing import Any, Callable, Iterable, Mapping, Sequence

from gdp_grappler import cache
from gdp_grappler import digests
from gdp_grappler import errors
from gdp_grappler.cluster import connected_devices
from gdp_grappler.evaluation.link_timing import line_fit
from gdp_grappler.plugin import notices
from gdp_grappler.plugin import task_links

# For all pairs together. The other pairs get the median of the timed ones.
_BUDGET_S = 5.
# Bytes of a tensor, and round trips per call.
_GAMES = ((4, 16), (1 << 16, 8), (1 << 22, 2))
_ROUNDS = 5
# Two tasks, bytes, round trips -> a function that plays once per call, and has
# played once already.
Game = Callable[[str, str, int, int], Callable[[], None]]
# By two tasks, in either order.
_Wires = dict[frozenset[str], task_links.Wire]


class LinkTiming:
  """Times once for the same tasks."""

  def __init__(self, known: task_links.TaskLinks, game: Game,
               budget_s: float = _BUDGET_S) -> None:
    """Nothing has been timed yet.

    Args:
      known: Told of what was timed.
      game: What is played.
      budget_s: Seconds for all of it.
    """
    self._known, self._budget_s = known, budget_s
    self._game = game
    self._lock = threading.Lock()
    self._addresses: dict[str, str] = {}

  def once(self, names: Sequence[str], given: Mapping[str, str]) -> None:
    """Times the wires if tasks have come by that were not there before.

    Args:
      names: Of all devices.
      given: Addresses by task; none of our own, which has any port.
    """
    tasks = sorted(set(map(connected_devices.task_of, names)))
    if len(tasks) < 2:
      return
    with self._lock:
      addresses = {task: given.get(task, '') for task in tasks}
      if addresses == self._addresses:
        return
      self._addresses = addresses
      place = cache.path('networks', f'{digests.of(addresses)}.json')
      wires = _kept(place)
      if not wires:
        wires = _timed(tasks, self._budget_s, self._game)
        if wires:
          cache.keep(place, _text(wires), notices.say)
      self._known.know(wires)


def _timed(tasks: list[str], budget_s: float, game: Game,
           clock: Callable[[], float] = time.perf_counter) -> _Wires:
  """By pair; of those for which no time is left, the median of the others."""
  end = clock() + budget_s
  pairs = list(itertools.combinations(tasks, 2))
  wires: _Wires = {}
  for pair in pairs:
    if wires and clock() > end:
      break
    try:
      wires[frozenset(pair)] = _wire(*pair, end, clock, game)
    except Exception as error:  # Of TensorFlow, and of servers that are gone.
      notices.warn_once('The network cannot be timed; its figures stay '
                        f'assumed: {errors.one_line(error, 200)}')
      return {}
  median = task_links.Wire(
      statistics.median(wire.latency_s for wire in wires.values()),
      statistics.median(wire.bytes_per_s for wire in wires.values()))
  return {frozenset(pair): wires.get(frozenset(pair), median) for pair in pairs}


def _wire(source: str, target: str, end: float, clock: Callable[[], float],
          game: Game) -> task_links.Wire:
  """What is left of a game between two tasks without what one alone takes.

  Two sizes are played in any case; where the next one would last beyond the
  end, as on a slow network, it is left out.
  """
  sizes: list[int] = []
  seconds: list[float] = []
  for size, trips in _GAMES:
    if len(sizes) > 1:
      # There and back, once more for the first time.
      transfers = 2 * trips * (_ROUNDS + 1)
      if clock() + transfers * seconds[-1] * size / sizes[-1] > end:
        break
    plays = [game(source, other, size, trips) for other in (target, source)]
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
  """What was timed before; empty if nothing was, or it is damaged."""
  data = cache.kept(place, notices.say)
  if data is None:
    return {}
  try:
    fields = json.loads(data)
    if digests.differs(fields):
      raise ValueError('it was changed')
    return _of_rows(fields['wires'])
  except (ValueError, KeyError, TypeError) as error:
    notices.say(f'{place} is damaged: {error}. The network is timed anew.')
    return {}


def _of_rows(rows: Iterable[Any]) -> _Wires:
  return {
      frozenset((one, other)):
          task_links.Wire(float(latency_s), float(bytes_per_s))
      for one, other, latency_s, bytes_per_s in rows
  }

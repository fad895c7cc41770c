"""Searches that race: each has a part of the time, and the best goes on.

Where an annealing ends is in part a matter of luck: what it leaves its start
for while it is hot, it may not find back from. GNMT-4 on four P100s, in order,
ended near 355 or near 400 ms, depending on the seed and hardly on the time.
Which of the two it will be shows early, so that two shorter searches and the
rest of the time for the better one are worth more than one search.
"""

from __future__ import annotations

import dataclasses
from typing import Callable, Protocol, Sequence, TypeVar

from gdp_grappler.evaluation import evaluator as evaluator_lib

# How many race, where all searches together will price so many placements. With
# fewer a race may cost more than it brings: AmoebaNet on four P100s was 2 %
# slower after 10 s.
_RACERS, _FEWEST_PRICED = 2, 3000


class Search(Protocol):
  """What races.

  Attributes:
    best_key: What the best that it has seen ranks by (`Prices.keys`).
  """

  best_key: evaluator_lib.Key


_Search = TypeVar('_Search', bound=Search)


@dataclasses.dataclass(frozen=True)
class Phase:
  """A stretch of one of several searches that share a limit.

  Attributes:
    first: Progress of all when it begins.
    last: Progress of all when it ends.
    begin: Progress of the search when it begins: the temperature.
    end: Progress of the search when it ends.
  """

  first: float = 0.
  last: float = 1.
  begin: float = 0.
  end: float = 1.

  def parts(self, count: int) -> tuple[Phase, ...]:
    """As many, one after the other, from the same to the same temperature."""
    length = (self.last - self.first) / count
    return tuple(
        dataclasses.replace(self, first=self.first
                            + part * length, last=self.first
                            + (part + 1) * length) for part in range(count))


def racers(evaluations: int, progress: float) -> int:
  """How many searches are to race.

  Args:
    evaluations: Placements priced so far.
    progress: How far all has come with them, from 0 to 1.
  """
  return _RACERS if evaluations >= _FEWEST_PRICED * progress else 1


def raced(start: Callable[[], _Search], phase: Phase, count: int,
          run: Callable[[Sequence[_Search], Phase], None]) -> list[_Search]:
  """Searches that had a part of a phase each, the best first.

  Args:
    start: Begins a search.
    phase: Of all of them.
    count: How many; at least one.
    run: Goes on with the first of some racers for a part of the phase; the
      others are those that ran before.
  """
  found: list[_Search] = []
  for part in phase.parts(count):
    found.insert(0, start())
    run(found, part)
  return sorted(reversed(found), key=lambda search: search.best_key)

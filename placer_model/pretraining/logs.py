"""What searches tried and what it brought."""

from __future__ import annotations

import dataclasses
import io
import os
from typing import Sequence

import numpy as np

from gdp_grappler import array_files
from gdp_grappler import errors
from gdp_grappler import files
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.search import annealing
from gdp_grappler.placers.search import priority_annealing
from gdp_grappler.placers.search import search_budget
from gdp_grappler.placers.search import search_config
from gdp_grappler.placers.search.moves import move_filter
from gdp_grappler.placers.search.moves import move_model
from gdp_grappler.placers.search.moves import repair

# Gains below this share of a step are none: two prices of one thing.
LEAST_GAIN = 1e-6
_MOST_GAIN = 1.


@dataclasses.dataclass(frozen=True, eq=False)
class Log:
  """R moves.

  Attributes:
    features: float32 [R, F] of `move_filter.MoveDescriber`.
    gains: float32 [R], share of the step that each saved, up to 1; not
      positive where it did not.
    weights: float32 [R], for how many moves each stands.
  """

  features: np.ndarray
  gains: np.ndarray
  weights: np.ndarray

  def __len__(self) -> int:
    return len(self.gains)

  @property
  def gaining(self) -> np.ndarray:
    """bool [R]."""
    return self.gains > LEAST_GAIN

  def thinned(self, share: float, rng: np.random.Generator) -> Log:
    """All moves that gain, and a share of the others, which count for all."""
    kept = self.gaining | (rng.random(len(self)) < share)
    weights = np.where(self.gaining, self.weights, self.weights / share)
    return Log(self.features[kept], self.gains[kept],
               weights[kept].astype(np.float32))


class Collector(move_model.MoveModel):
  """Lets a search price what it draws, and writes everything down."""

  def __init__(self, problem: placer_lib.Problem) -> None:
    """Lays the problem out."""
    self.draws = 1
    self._describer = move_filter.MoveDescriber(problem)
    self._features: list[np.ndarray] = []
    self._gains: list[np.ndarray] = []

  def revise(self, incumbent: np.ndarray, candidates: np.ndarray,
             kinds: Sequence[str], rng: np.random.Generator) -> list[str]:
    """As searches that a network helps place sets anew."""
    return self._describer.repair(incumbent, candidates, kinds,
                                  repair.RepairConfig(), rng)

  def choose(self, incumbent: np.ndarray, candidates: np.ndarray,
             kinds: Sequence[str], count: int) -> np.ndarray:
    """All of them."""
    self._features.append(self._describer.describe(incumbent, candidates,
                                                   kinds))
    return np.arange(count)

  def set_priorities(self, priorities: np.ndarray | None) -> None:
    """See `MoveModel`."""
    self._describer.set_priorities(priorities)

  def record_gains(self, gains: np.ndarray) -> None:
    """Writes them down."""
    self._gains.append(np.clip(gains, -_MOST_GAIN, _MOST_GAIN))

  def log(self) -> Log:
    """All that was tried so far, at least one move."""
    gains = np.concatenate(self._gains).astype(np.float32)
    return Log(np.concatenate(self._features), gains, np.ones_like(gains))


def collect(problem: placer_lib.Problem, starts: np.ndarray, evaluations: int,
            rng: np.random.Generator, ordered: bool = False) -> Log | None:
  """The moves of one search; None if there is nothing to move.

  Args:
    problem: G groups.
    starts: int [S, G], where it may begin.
    evaluations: Placements that it prices.
    rng: Of the search.
    ordered: Whether it prices under priorities; for where these pay.
  """
  collector = Collector(problem)
  search = (priority_annealing.PriorityAnnealing(
      problem, starts, rng, collector) if ordered else annealing.Annealing(
          problem, starts, rng, collector))
  limit = search_budget.SearchBudget(evaluations)
  while search.can_move:
    progress = limit.progress(search.evaluations)
    if progress >= 1:
      return collector.log()
    search.step(
        progress,
        min(search_config.DEFAULT.annealing.batch,
            evaluations - search.evaluations))
  return None


def joined(logs: Sequence[Log]) -> Log:
  """All moves of several logs, at least one."""
  return Log(*(np.concatenate([getattr(log, field.name) for log in logs])
               for field in dataclasses.fields(Log)))


def save(path: str | os.PathLike[str], log: Log) -> None:
  """Replaces a file in one step.

  Raises:
    GdpError: the file cannot be written.
  """
  buffer = io.BytesIO()
  np.savez_compressed(buffer, features=log.features.astype(np.float16),
                      gains=log.gains, weights=log.weights)
  files.write_atomically(path, buffer.getvalue(), make_folder=True)


def load(path: str | os.PathLike[str]) -> Log:
  """What `save` wrote; features as half precision has them.

  Raises:
    GdpError: there is no such file, or it is damaged.
  """
  try:
    arrays = array_files.read(path)
    return Log(arrays['features'].astype(np.float32), arrays['gains'],
               arrays['weights'])
  except (OSError, ValueError, LookupError) as error:
    raise errors.GdpError(
        f'Cannot read {path} as a log of moves: {error}. Remove it.') from error

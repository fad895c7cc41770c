"""Logs of searches: the moves that were tried, and their gains."""

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

# Gains below this share of a step are rounding errors of the price.
LEAST_GAIN = 1e-6
_MOST_GAIN = 1.


@dataclasses.dataclass(frozen=True, eq=False)
class Log:
  """R moves and their gains.

  Attributes:
    features: float32 [R, F], features by `move_filter.MoveDescriber`.
    gains: float32 [R], share of the step that each move saved, at most 1; not
      positive if the move saved nothing.
    weights: float32 [R], number of moves that each move stands for.
  """

  features: np.ndarray
  gains: np.ndarray
  weights: np.ndarray

  def __len__(self) -> int:
    return len(self.gains)

  @property
  def gaining(self) -> np.ndarray:
    """Whether each move gains, bool [R]."""
    return self.gains > LEAST_GAIN

  def thinned(self, share: float, rng: np.random.Generator) -> Log:
    """Returns all moves that gain, and a random share of the others.

    The weights of the others rise, so that they stand for all of them.
    """
    kept = self.gaining | (rng.random(len(self)) < share)
    weights = np.where(self.gaining, self.weights, self.weights / share)
    return Log(self.features[kept], self.gains[kept],
               weights[kept].astype(np.float32))


class Collector(move_model.MoveModel):
  """A move model that lets a search price all moves, and logs them."""

  def __init__(self, problem: placer_lib.Problem) -> None:
    """Prepares the features of the problem's moves."""
    self.draws = 1
    self._describer = move_filter.MoveDescriber(problem)
    self._features: list[np.ndarray] = []
    self._gains: list[np.ndarray] = []

  def revise(self, incumbent: np.ndarray, candidates: np.ndarray,
             kinds: Sequence[str], rng: np.random.Generator) -> list[str]:
    """Repairs moves, as searches with a network do."""
    return self._describer.repair(incumbent, candidates, kinds,
                                  repair.RepairConfig(), rng)

  def choose(self, incumbent: np.ndarray, candidates: np.ndarray,
             kinds: Sequence[str], count: int) -> np.ndarray:
    """Chooses all moves."""
    self._features.append(self._describer.describe(incumbent, candidates,
                                                   kinds))
    return np.arange(count)

  def set_priorities(self, priorities: np.ndarray | None) -> None:
    """See `MoveModel`."""
    self._describer.set_priorities(priorities)

  def record_gains(self, gains: np.ndarray) -> None:
    """Logs the gains."""
    self._gains.append(np.clip(gains, -_MOST_GAIN, _MOST_GAIN))

  def log(self) -> Log:
    """Returns the log of all moves so far; there has to be one."""
    gains = np.concatenate(self._gains).astype(np.float32)
    return Log(np.concatenate(self._features), gains, np.ones_like(gains))


def collect(problem: placer_lib.Problem, starts: np.ndarray, evaluations: int,
            rng: np.random.Generator, ordered: bool = False) -> Log | None:
  """Returns the log of one search; None if there is nothing to move.

  Args:
    problem: Problem with G groups.
    starts: int [S, G], placements from which the search may start.
    evaluations: Number of placements that the search prices.
    rng: Source of the search's random numbers.
    ordered: Whether placements are priced with priorities; only for problems in
      which priorities pay.
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
  """Returns all moves of several logs, at least one."""
  return Log(*(np.concatenate([getattr(log, field.name) for log in logs])
               for field in dataclasses.fields(Log)))


def save(path: str | os.PathLike[str], log: Log) -> None:
  """Replaces a file in one step.

  Features are stored in half precision.

  Raises:
    GdpError: the file cannot be written.
  """
  buffer = io.BytesIO()
  np.savez_compressed(buffer, features=log.features.astype(np.float16),
                      gains=log.gains, weights=log.weights)
  files.write_atomically(path, buffer.getvalue(), make_folder=True)


def load(path: str | os.PathLike[str]) -> Log:
  """Returns the log that `save` wrote.

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

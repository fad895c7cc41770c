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
from gdp_grappler.placers.policy import drafts
from gdp_grappler.placers.policy import improving
from gdp_grappler.placers.policy import policy_config
from gdp_grappler.placers.search import priced_placements
from gdp_grappler.placers.search.moves import move_scoring
from gdp_grappler.placers.search.moves import moves as moves_lib

# Gains below this share of a step are rounding errors of the price.
LEAST_GAIN = 1e-6
_MOST_GAIN = 1.  # Gains are shares of a step and cut at this size.


@dataclasses.dataclass(frozen=True, eq=False)
class Log:
  """R moves and their gains.

  Attributes:
    features: float32 [R, F], features by `move_scoring.MoveDescriber`.
    gains: float32 [R], share of the step that each move saved, at most 1; not
      positive if the move saved nothing.
    rounds: int32 [R], number of the round of each move, from 0 on and never
      falling. The moves of a round start from the same placement.
  """

  features: np.ndarray
  gains: np.ndarray
  rounds: np.ndarray

  def __len__(self) -> int:
    return len(self.gains)

  @property
  def gaining(self) -> np.ndarray:
    """Whether each move gains, bool [R]."""
    return self.gains > LEAST_GAIN

  @property
  def starts(self) -> np.ndarray:
    """Index of the first move of each round, int [rounds]."""
    return np.flatnonzero(np.diff(self.rounds, prepend=-1))


class PricedMoves:
  """A scorer of moves for `gdp_policy` that prices all moves, and logs them.

  The scorer rates a random share of the moves by their gains, and all other
  moves below them. So the policy takes better moves than by chance, and worse
  moves than if it knew all gains.
  """

  def __init__(self, problem: placer_lib.Problem,
               describer: move_scoring.MoveDescriber, known: float,
               rng: np.random.Generator) -> None:
    """Begins with an empty log.

    Args:
      problem: Problem with G groups.
      describer: Describer of the problem's moves.
      known: Share of the moves that are scored by their gains.
      rng: Source of the random numbers that choose these moves.
    """
    self._problem, self._describer = problem, describer
    self._known, self._rng = known, rng
    self._rounds: list[tuple[np.ndarray, np.ndarray]] = []

  def scores(self, incumbent: np.ndarray, candidates: np.ndarray,
             kinds: Sequence[str]) -> np.ndarray:
    """See `improving.Scorer`."""
    features = self._describer.describe(incumbent, candidates, kinds)
    gains = self._gains(incumbent, candidates)
    self._rounds.append((features, gains))
    known = self._rng.random(len(gains)) < self._known
    return np.where(known, gains, -_MOST_GAIN - 1)

  def learn(self, chosen: np.ndarray, gained: np.ndarray) -> None:
    """See `improving.Scorer`; the gains are known already."""

  def log(self) -> Log | None:
    """Returns the log of all moves so far, or None if there were none."""
    if not self._rounds:
      return None
    features, gains = map(np.concatenate, zip(*self._rounds))
    counts = [len(each) for _, each in self._rounds]
    return Log(features, gains,
               np.repeat(np.arange(len(counts), dtype=np.int32), counts))

  def _gains(self, incumbent: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """float32 [K], share of the step that each move saves.

    A move after which the placement no longer fits loses all. If the placement
    does not fit before the moves, a move that makes it better (`Prices.keys`)
    saves all, and other moves lose all.
    """
    rows = np.concatenate([incumbent[None], candidates]).astype(np.int32)
    prices = self._problem.evaluator.price_groups(self._problem.graph, rows)
    now, *then = prices.keys()
    before, after = prices.valid_seconds[0], prices.valid_seconds[1:]
    if np.isfinite(before) and before > 0:
      gains = np.where(np.isfinite(after), (before - after) / before,
                       -_MOST_GAIN)
    else:
      gains = np.array(
          [_MOST_GAIN if key < now else -_MOST_GAIN for key in then])
    return np.clip(gains, -_MOST_GAIN, _MOST_GAIN).astype(np.float32)


def collect(problem: placer_lib.Problem, rounds: int, known: float,
            rng: np.random.Generator) -> Log | None:
  """Returns the log of some rounds of `gdp_policy`; None without moves.

  Args:
    problem: Problem with G groups.
    rounds: Number of rounds. In each one all moves that are drawn are priced.
    known: See `PricedMoves`.
    rng: Source of all random numbers.
  """
  config = policy_config.PolicyConfig()
  found = priced_placements.PricedPlacements(problem.graph, problem.evaluator)
  describer = move_scoring.MoveDescriber(problem)
  found.add(drafts.Drafts(problem, config, describer).rows)
  config = dataclasses.replace(
      config, prices=len(found.prices) + rounds * config.at_once)
  scorer = PricedMoves(problem, describer, known, rng)
  improving.Improver(found, scorer, config, rng, moves_lib.Moves(problem)).run()
  return scorer.log()


def joined(logs: Sequence[Log]) -> Log:
  """Returns all moves of several logs, at least one."""
  ends = np.cumsum(
      [0, *(log.rounds[-1] + 1 if len(log) else 0 for log in logs)])
  features, gains = (np.concatenate([getattr(log, name) for log in logs])
                     for name in ('features', 'gains'))
  rounds = np.concatenate([log.rounds + end for log, end in zip(logs, ends)])
  return Log(features, gains, rounds.astype(np.int32))


def save(path: str | os.PathLike[str], log: Log) -> None:
  """Replaces a file in one step.

  Features are stored in half precision.

  Raises:
    GdpError: the file cannot be written.
  """
  buffer = io.BytesIO()
  np.savez_compressed(buffer, features=log.features.astype(np.float16),
                      gains=log.gains, rounds=log.rounds)
  files.write_atomically(path, buffer.getvalue(), make_folder=True)


def load(path: str | os.PathLike[str]) -> Log:
  """Returns the log that `save` wrote.

  Raises:
    GdpError: there is no such file, or it is damaged.
  """
  try:
    arrays = array_files.read(path)
    return Log(arrays['features'].astype(np.float32), arrays['gains'],
               arrays['rounds'])
  except (OSError, ValueError, LookupError) as error:
    raise errors.GdpError(
        f'Cannot read {path} as a log of moves: {error}. Remove it.') from error

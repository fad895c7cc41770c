"""How much each unit's decision had to do with the reward.

K rollouts of M units share K rewards, so a reward says next to nothing about
one decision: it is the sum of M effects, and all but one are noise to it. A
ridge regression of the rewards on the decisions tells them apart as well as K
rollouts can. What it gives for a unit and a device takes the place of the
advantage of a rollout, for each decision by itself.
"""

from __future__ import annotations

import dataclasses

import numpy as np

# Nothing is said to be rarer.
_LEAST = 1e-6


@dataclasses.dataclass(frozen=True, eq=False)
class Effects:
  """What decisions add to the expected value of a rollout.

  Attributes:
    values: float64 [M, D]; the mean of a unit's under the policy is zero.
    chance: Root mean square, under the policy, that they would have if what
      rollouts are worth had nothing to do with their decisions.
  """

  values: np.ndarray
  chance: float


def scores(rewards: np.ndarray) -> np.ndarray:
  """float64 [K], what rewards are worth, by rank alone; their mean is zero.

  Those of the exponential distribution: the best of many is worth much, to be
  bad or very bad makes little difference. So neither the unit of the reward
  nor a penalty decides how much is learned from an iteration.

  Args:
    rewards: float [K]; equal ones get equal scores.
  """
  ordered = np.sort(rewards)
  middle = (np.searchsorted(ordered, rewards, 'left')
            + np.searchsorted(ordered, rewards, 'right')) / 2  # ranks from 1/2
  worth = -np.log1p(-middle / len(rewards))
  return worth - worth.mean()


def effects(probabilities: np.ndarray, decisions: np.ndarray,
            values: np.ndarray, ridge: float) -> Effects:
  """What each decision adds, by regression.

  The values are taken as a sum over units.

  Args:
    probabilities: [M, D], the policy, rows sum to one.
    decisions: int [K, M].
    values: float [K], of the rollouts.
    ridge: Weight of the penalty on the effects' squares, as a share of the
      mean square of a rollout's decisions around their mean.
  """
  shape = probabilities.shape  # [M, D]
  chosen = decisions[:, :, None] == np.arange(shape[1])  # [K, M, D]
  rows = chosen.reshape(len(decisions), -1).astype(np.float64)
  rows -= rows.mean(axis=0)
  # There are fewer rollouts than effects: K equations in the dual.
  products = rows @ rows.T  # [K, K]
  penalty = ridge * products.trace() / len(rows) + 1e-12
  shares = np.linalg.solve(products + penalty * np.eye(len(rows)), rows)
  found = shares.T @ (values - values.mean())
  deviation = values.std() * np.sqrt((shares**2).sum(axis=0))
  return Effects(_centred(probabilities, found.reshape(shape)),
                 _size(probabilities, deviation.reshape(shape)))


def tempered(probabilities: np.ndarray, found: Effects,
             temperature: float) -> np.ndarray:
  """float64 [M, D], advantages of order one, with those of rare decisions.

  Their unit is what chance alone would give: where rollouts tell no more than
  that, a policy goes on to try, whatever the iteration seems to say, and is
  certain only where much is at stake. A policy that follows them ends at the
  softmax of its advantages over the temperature.

  Args:
    probabilities: [M, D], the policy.
    found: Of `effects`.
    temperature: What a nat of entropy is worth.
  """
  surprise = -np.log(np.maximum(probabilities, _LEAST))
  return found.values / max(found.chance, 1e-12) + temperature * _centred(
      probabilities, np.where(probabilities > 0, surprise, 0))


def _size(probabilities: np.ndarray, values: np.ndarray) -> float:
  """Root mean square over units, under the policy."""
  return float(np.sqrt((probabilities * values**2).sum(axis=1).mean()))


def _centred(probabilities: np.ndarray, values: np.ndarray) -> np.ndarray:
  """float [M, D], less the mean of each unit's under the policy."""
  return values - (probabilities * values).sum(axis=1, keepdims=True)

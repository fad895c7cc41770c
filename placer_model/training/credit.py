"""How much each unit's decision had to do with the reward.

K rollouts of M units share K rewards, so a reward says next to nothing about
one decision: it is the sum of M effects, and all but one are noise to it. A
ridge regression of the rewards on the decisions tells them apart as well as K
rollouts can. What it gives for a unit and a device takes the place of the
advantage of a rollout, for each decision by itself.
"""

from __future__ import annotations

import numpy as np

# Nothing is said to be rarer.
_LEAST = 1e-6


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


def advantages(probabilities: np.ndarray, decisions: np.ndarray,
               values: np.ndarray, ridge: float) -> np.ndarray:
  """float64 [M, D], what each decision adds to the expected value.

  The values are taken as a sum over units. The mean of a unit's advantages
  under the policy is zero.

  Args:
    probabilities: [M, D], the policy, rows sum to one.
    decisions: int [K, M].
    values: float [K], of the rollouts.
    ridge: Weight of the penalty on the effects' squares, as a share of the
      mean square of a rollout's decisions around their mean.
  """
  units, devices = probabilities.shape
  chosen = decisions[:, :, None] == np.arange(devices)  # [K, M, D]
  rows = chosen.reshape(len(decisions), units * devices).astype(np.float64)
  rows -= rows.mean(axis=0)
  # There are fewer rollouts than effects: K equations in the dual.
  products = rows @ rows.T  # [K, K]
  penalty = ridge * products.trace() / len(rows) + 1e-12
  effects = rows.T @ np.linalg.solve(products + penalty * np.eye(len(rows)),
                                     values - values.mean())
  return _centred(probabilities, effects.reshape(units, devices))


def tempered(probabilities: np.ndarray, effects: np.ndarray,
             temperature: float) -> np.ndarray:
  """float64 [M, D], advantages of order one, with those of rare decisions.

  A policy that follows them ends at the softmax of its advantages over the
  temperature: it is certain where much is at stake, and goes on to try where
  little is.

  Args:
    probabilities: [M, D], the policy.
    effects: float64 [M, D], of `advantages`.
    temperature: What a nat of entropy is worth.
  """
  scale = np.sqrt((probabilities * effects**2).sum(axis=1).mean())
  surprise = -np.log(np.maximum(probabilities, _LEAST))
  return effects / max(scale, 1e-12) + temperature * _centred(
      probabilities, np.where(probabilities > 0, surprise, 0))


def _centred(probabilities: np.ndarray, values: np.ndarray) -> np.ndarray:
  return values - (probabilities * values).sum(axis=1, keepdims=True)

"""Assigns credit for the reward to each unit's decision.

K rollouts of M units have K rewards. A reward is the sum of the effects of M
decisions, so it says little about a single one: the other effects are noise. A
ridge regression of the rewards on the decisions separates the effects as well
as K rollouts allow. The estimated effect of a unit's device replaces the
advantage of a rollout, for each decision by itself.
"""

from __future__ import annotations

import dataclasses

import numpy as np

# Least probability, so that its logarithm is finite.
_LEAST = 1e-6


@dataclasses.dataclass(frozen=True, eq=False)
class Effects:
  """Estimated effects of decisions on the value of a rollout.

  Attributes:
    values: float64 [M, D], effects; the mean of a unit's effects under the
      policy is zero.
    chance: Root mean square of the effects, under the policy, that the
      regression would find if the values of rollouts did not depend on their
      decisions.
  """

  values: np.ndarray
  chance: float


def scores(rewards: np.ndarray) -> np.ndarray:
  """Returns values of rewards that depend only on ranks, float64 [K].

  The values are those of the exponential distribution, and their mean is zero.
  The best of many rollouts has a high value, and the values of bad and very bad
  rollouts hardly differ. So neither the unit of the reward nor a penalty
  determines how much is learned from an iteration.

  Args:
    rewards: float [K]; equal rewards get equal values.
  """
  ordered = np.sort(rewards)
  middle = (np.searchsorted(ordered, rewards, 'left')
            + np.searchsorted(ordered, rewards, 'right')) / 2  # ranks from 1/2
  worth = -np.log1p(-middle / len(rewards))
  return worth - worth.mean()


def effects(probabilities: np.ndarray, decisions: np.ndarray,
            values: np.ndarray, ridge: float) -> Effects:
  """Estimates the effect of each decision by ridge regression.

  The value of a rollout is modelled as a sum over its decisions.

  Args:
    probabilities: [M, D], the policy; rows sum to one.
    decisions: int [K, M], device of each unit in each rollout.
    values: float [K], values of the rollouts.
    ridge: Weight of the penalty on the effects' squares, as a share of the mean
      square of a rollout's decisions around their mean.
  """
  shape = probabilities.shape  # [M, D]
  chosen = decisions[:, :, None] == np.arange(shape[1])  # [K, M, D]
  rows = chosen.reshape(len(decisions), -1).astype(np.float64)
  rows -= rows.mean(axis=0)
  # There are fewer rollouts than effects, so the dual problem is smaller.
  products = rows @ rows.T  # [K, K]
  penalty = ridge * products.trace() / len(rows) + 1e-12
  shares = np.linalg.solve(products + penalty * np.eye(len(rows)), rows)
  found = shares.T @ (values - values.mean())
  deviation = values.std() * np.sqrt((shares**2).sum(axis=0))
  return Effects(_centred(probabilities, found.reshape(shape)),
                 _size(probabilities, deviation.reshape(shape)))


def tempered(probabilities: np.ndarray, found: Effects,
             temperature: float) -> np.ndarray:
  """Returns advantages of order one, float64 [M, D].

  The unit of the advantages is the effect that chance alone would give. If the
  rollouts say no more than chance, the temperature keeps the policy exploring.
  The policy becomes certain only about decisions with large effects. A policy
  that follows these advantages converges to the softmax of the effects, in this
  unit, over the temperature.

  Args:
    probabilities: [M, D], the policy.
    found: Result of `effects`.
    temperature: Weight of a nat of entropy.
  """
  surprise = -np.log(np.maximum(probabilities, _LEAST))
  return found.values / max(found.chance, 1e-12) + temperature * _centred(
      probabilities, np.where(probabilities > 0, surprise, 0))


def _size(probabilities: np.ndarray, values: np.ndarray) -> float:
  """Returns the root mean square over units, under the policy."""
  return float(np.sqrt((probabilities * values**2).sum(axis=1).mean()))


def _centred(probabilities: np.ndarray, values: np.ndarray) -> np.ndarray:
  """Subtracts the mean of each unit under the policy, float [M, D]."""
  return values - (probabilities * values).sum(axis=1, keepdims=True)

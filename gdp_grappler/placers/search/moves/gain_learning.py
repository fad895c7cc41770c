"""Corrects a network's predictions by the priced moves of one search.

The correction is a logistic regression: the logit of a gain is the network's
logit plus a linear function of the move's features. The coefficients have a
normal prior around zero, so without priced moves the network's logit holds.
Newton's method approaches the most probable coefficients (the mode of Laplace's
approximation; Bishop, "Pattern Recognition and Machine Learning", 2006, section
4.5). Each round adds few moves, so one iteration per round is enough.
"""

from __future__ import annotations

import numpy as np

from gdp_grappler import products

# Precision of the normal prior of the coefficients. Inputs are in standard
# deviations.
_PRECISION = 30.
# Input of the intercept. It is above 1, so that the prior of the intercept is
# wider than the priors of the features.
_INTERCEPT = 3.
# Lower bound of the second derivative of one observation. With a smaller
# derivative, Newton's method would change the coefficients too much.
_LEAST_CURVATURE = .02
# Largest absolute value of a logit.
_MOST = 30.


class GainLearning:
  """Corrects logits of gains by the moves that were priced."""

  def __init__(self) -> None:
    """Begins without priced moves."""
    self._inputs: list[np.ndarray] = []
    self._logits: list[np.ndarray] = []
    self._gained: list[np.ndarray] = []
    self._coefficients: np.ndarray | None = None
    self._fitted = True

  def corrected(self, inputs: np.ndarray, logits: np.ndarray) -> np.ndarray:
    """[K], logits of moves after the correction.

    Args:
      inputs: [K, F], standardized features of moves.
      logits: [K], the network's logits of the probability of a gain.
    """
    if not self._fitted:
      self._fit()
    if self._coefficients is None:
      return logits
    return logits + products.product(_with_intercept(inputs),
                                     self._coefficients)

  def learn(self, inputs: np.ndarray, logits: np.ndarray,
            gained: np.ndarray) -> None:
    """Adds moves that were priced.

    Args:
      inputs: [C, F], standardized features of the moves.
      logits: [C], the network's logits, without the correction.
      gained: bool [C], whether each move gained.
    """
    self._inputs.append(_with_intercept(inputs))
    self._logits.append(logits)
    self._gained.append(gained)
    self._fitted = False

  def _fit(self) -> None:
    """One iteration of Newton's method, from the latest coefficients."""
    inputs, logits, gained = (np.concatenate(parts)
                              for parts in (self._inputs, self._logits,
                                            self._gained))
    coefficients = self._coefficients
    if coefficients is None:
      coefficients = np.zeros(inputs.shape[1])
    bounded = np.clip(logits + products.product(inputs, coefficients), -_MOST,
                      _MOST)
    chance = 1 / (1 + np.exp(-bounded))
    slope = products.product(inputs.T,
                             chance - gained) + _PRECISION * coefficients
    curvature = np.maximum(chance * (1 - chance), _LEAST_CURVATURE)
    second = products.product(inputs.T * curvature, inputs)
    second[np.diag_indices_from(second)] += _PRECISION
    self._coefficients = coefficients - np.linalg.solve(second, slope)
    self._fitted = True


def _with_intercept(inputs: np.ndarray) -> np.ndarray:
  """float64 [K, F + 1], inputs with the input of the intercept."""
  return np.concatenate([inputs, np.full((len(inputs), 1), _INTERCEPT)], axis=1,
                        dtype=np.float64)

"""Entropies and divergences of choices, in nats."""

from __future__ import annotations

import numpy as np

_LEAST = 1e-30  # Replaces 0, whose logarithm is infinite.


def entropy(probabilities: np.ndarray) -> float:
  """Returns the mean entropy of K choices, from float [K, options]."""
  safe = np.maximum(probabilities, _LEAST)
  return float(-(probabilities * np.log(safe)).sum(axis=1).mean())


def divergence(before: np.ndarray, after: np.ndarray) -> float:
  """Returns the mean KL(before || after) of K choices.

  Args:
    before: float [K, options], probabilities.
    after: float [K, options], probabilities.
  """
  ratio = np.log(np.maximum(before, _LEAST)) - np.log(np.maximum(after, _LEAST))
  return float((before * ratio).sum(axis=1).mean())

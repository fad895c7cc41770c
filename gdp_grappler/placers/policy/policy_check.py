"""Loads a policy in the way of a program that places and does not train.

Runs in a process of its own. A policy that was just exported has to load
without the libraries that trained the policy.
"""

from __future__ import annotations

import sys

import numpy as np
import tensorflow as tf

# Packages that only training needs.
_LEARNING = frozenset(
    {'tensorflow_gnn', 'tf_keras', 'tf_agents', 'placer_model'})


def logits(folder: str, features: dict[str, np.ndarray]) -> np.ndarray:
  """float [M, D], a policy's logits of the devices of M units.

  Args:
    folder: Folder of the SavedModel.
    features: Arguments of the policy's function `place`.

  Raises:
    ImportError: the policy imported packages that only training needs.
  """
  # The functions of a SavedModel do not keep the model alive; a name does.
  policy = tf.saved_model.load(folder)
  result = policy.place(**features).numpy()
  extra = _LEARNING & {name.partition('.')[0] for name in sys.modules}
  if extra:
    raise ImportError(f'loading it imported {", ".join(sorted(extra))}')
  return result

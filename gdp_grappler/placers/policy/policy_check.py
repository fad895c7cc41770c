"""Loads a policy as a program does that only places.

For a process of its own: a policy that was just exported has to load without
what it was learned with.
"""

from __future__ import annotations

import sys

import numpy as np
import tensorflow as tf

# What only learning needs.
_LEARNING = frozenset(
    {'tensorflow_gnn', 'tf_keras', 'tf_agents', 'placer_model'})


def logits(folder: str, features: dict[str, np.ndarray]) -> np.ndarray:
  """float [M, D], what a policy makes of a graph.

  Args:
    folder: With the SavedModel.
    features: Arguments of its function `place`.

  Raises:
    ImportError: loading it loaded what only learning needs.
  """
  policy = tf.saved_model.load(folder)  # Its functions do not keep it alive.
  result = policy.place(**features).numpy()
  extra = _LEARNING & {name.partition('.')[0] for name in sys.modules}
  if extra:
    raise ImportError(f'loading it imported {", ".join(sorted(extra))}')
  return result

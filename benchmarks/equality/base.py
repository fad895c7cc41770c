"""The register of the programs, and their common parts.

A program makes its model, trains it for a few steps, and returns the variables
and all numbers that a user would see. It imports no module of `gdp_grappler`.
"""

from __future__ import annotations

import dataclasses
import importlib
import os
from typing import Any, Callable, Sequence

import numpy as np
import tensorflow as tf

from gdp_grappler import environment

keras: Any = importlib.import_module(
    'tf_keras' if os.environ.get(environment.LEGACY_KERAS) else 'keras')
layers: Any = keras.layers
Model: Any = keras.Model
Layer: Any = keras.layers.Layer

# Numbers in nested structures, and variables or arrays.
Numbers = tuple[Any, Sequence[Any]]


@dataclasses.dataclass(frozen=True)
class Program:
  """A training program, and where it may run.

  Attributes:
    run: Trains from the beginning. Each call computes the same numbers.
    legacy: Whether the program may run under tf_keras.
    modern: Whether the program may run under Keras 3.
    stays: Whether the program pins all ops, so that none can be placed.
  """

  run: Callable[[], Numbers]
  legacy: bool = False
  modern: bool = True
  stays: bool = False


PROGRAMS: dict[str, Program] = {}


def program(**attributes: bool
           ) -> Callable[[Callable[[], Numbers]], Callable[[], Numbers]]:
  """Registers a function as a program, by its name."""

  def register(run: Callable[[], Numbers]) -> Callable[[], Numbers]:
    PROGRAMS[run.__name__] = Program(run, **attributes)
    return run

  return register


def data(rows: int, *shape: int, classes: int = 3,
         seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
  """Returns normal numbers [rows, *shape], and classes [rows]."""
  random = np.random.RandomState(seed)
  return (random.randn(rows, *shape).astype(np.float32),
          random.randint(0, classes, rows))


def words(rows: int, length: int, vocabulary: int,
          seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
  """Word numbers [rows, length], padded with 0, and classes [rows]."""
  random = np.random.RandomState(seed)
  ids = random.randint(1, vocabulary, (rows, length))
  ids[np.arange(length) >= random.randint(2, length + 1, (rows, 1))] = 0
  return ids, random.randint(0, 3, rows)


def loss(y: Any, logits: Any) -> Any:
  """Returns the mean cross entropy of logits and classes."""
  return tf.reduce_mean(
      tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits))


def compiled(model: Any, optimizer: Any = 'adam', **kwargs: Any) -> Any:
  """Compiles a classifier whose outputs are the logits of three classes."""
  model.compile(optimizer,
                keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                **kwargs)
  return model


def fit(model: Any, x: Any, y: Any = None, **kwargs: Any) -> Numbers:
  """Trains three epochs in small batches, then evaluates and predicts."""
  how: dict[str, Any] = {'verbose': 0}
  if y is not None:
    how['batch_size'] = 16
  history = model.fit(x, y, **{'epochs': 3, 'shuffle': False, **how,
                               **kwargs}).history
  after = [model.evaluate(x, y, **how)]
  if y is not None:
    after.append(model.predict(x, **how))
  return [history, after], variables(model)


def variables(*models: Any) -> list[Any]:
  """Returns the variables of models and of their optimizers."""
  result = []
  for model in models:
    optimizer = getattr(model, 'optimizer', None)
    slots = getattr(optimizer, 'variables', [])
    result += [*model.variables, *(slots() if callable(slots) else slots)]
  return result

"""Times the steps of Keras' `fit` on random data."""

from __future__ import annotations

import dataclasses
import time
from typing import Any, Sequence

import keras
import numpy as np
import tensorflow as tf

from gdp_grappler.graph.sources import training_step

BATCH = 64  # Size of the batch for models that take any size.
_WARM_UP = 3  # Steps before the timed ones.
# Inputs and labels, each one array or several.
Data = tuple[Any, Any]


@dataclasses.dataclass(frozen=True)
class Step:
  """A step of a fit.

  Attributes:
    seconds: Seconds since the end of the step before.
    loss: Mean loss of the epoch so far.
  """

  seconds: float
  loss: float


def batch(model: keras.Model) -> Data:
  """Returns random inputs and labels in the shapes of a model."""
  random = np.random.default_rng(0)
  batch = model.inputs[0].shape[0] or BATCH

  def shape_of(tensor: keras.KerasTensor) -> tuple[int, ...]:
    return tuple(training_step.known_shape(tensor.shape, batch))

  inputs = [_numbers(random, shape_of(i), i.dtype, 2) for i in model.inputs]
  labels = []
  for output, loss in zip(model.outputs, _losses(model)):
    shape = shape_of(output)
    is_class = 'sparse' in str(getattr(loss, 'name', loss)).lower()
    labels.append(
        _numbers(random, shape[:-1], 'int32', shape[-1]
                ) if is_class else _numbers(random, shape, 'float32', 2))
  if isinstance(model.loss, dict):
    return _one_or_all(inputs), dict(zip(model.output_names, labels))
  return _one_or_all(inputs), _one_or_all(labels)


def _losses(model: keras.Model) -> Sequence[Any]:
  """Returns the losses by output."""
  if isinstance(model.loss, dict):
    return [model.loss.get(name) for name in model.output_names]
  if isinstance(model.loss, (list, tuple)):
    return model.loss
  return [model.loss] * len(model.outputs)


def _one_or_all(items: list[np.ndarray]) -> np.ndarray | tuple[np.ndarray, ...]:
  return items[0] if len(items) == 1 else tuple(items)


def _numbers(random: np.random.Generator, shape: tuple[int, ...], dtype: str,
             below: int) -> np.ndarray:
  if 'int' in dtype:
    return random.integers(0, below, shape).astype(dtype)
  return random.random(shape).astype(dtype)


def run(model: keras.Model, data: Data, steps: int) -> list[Step]:
  """Trains a model by `fit`, and returns the steps."""
  ends: list[tuple[float, float]] = []

  class Clock(keras.callbacks.Callback):
    """Records the ends of steps."""

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
      loss = float(logs['loss'])
      ends.append((time.perf_counter(), loss))

  dataset = tf.data.Dataset.from_tensors(data).repeat(steps)
  start = time.perf_counter()
  model.fit(dataset, epochs=1, verbose=0, callbacks=[Clock()])
  begins = [start, *(end for end, _ in ends)]
  return [Step(end - begin, loss) for begin, (end, loss) in zip(begins, ends)]


def steps_s(model: keras.Model, data: Data, steps: int) -> list[float]:
  """Returns the seconds of steps [steps], after some warm-up steps."""
  return [step.seconds for step in run(model, data, _WARM_UP + steps)
         ][_WARM_UP:]


def in_a_row_s(model: keras.Model, iterator: Any, steps: int) -> float:
  """Mean seconds of steps in a row. Only the last loss is read.

  Args:
    model: The model whose train function is called.
    iterator: Iterator over batches.
    steps: Number of steps.
  """
  begin = time.perf_counter()
  for _ in range(steps):
    logs = model.train_function(iterator)
  float(logs['loss'])
  return (time.perf_counter() - begin) / steps

"""Seconds of a step of Keras' `fit` outside of its graph.

  python -m benchmarks.fit_step [--json]

The same empty work runs in four ways: as a function, as a function that reads
the next batch, as the train function of the smallest model, and in `fit`.
Seconds are processor seconds of the calling thread. They contain neither the
work of other threads nor waiting. The result is the least of several rounds,
because a disturbance can only make a round longer.
"""

from __future__ import annotations

import json
import time
from typing import Any, Callable

from absl import app
from absl import flags
import keras
import numpy as np
import tensorflow as tf

_JSON = flags.DEFINE_bool('json', False, 'Print JSON.')
_ROUNDS = flags.DEFINE_integer('rounds', 7, 'How often each is timed.',
                               lower_bound=1)
_STEPS = flags.DEFINE_integer('steps', 300, 'Steps of a round.', lower_bound=1)


def thread_seconds(run: Callable[[int], Any]) -> float:
  """Seconds of the calling thread per step. `run` runs a number of steps."""
  run(5)
  found = []
  for _ in range(_ROUNDS.value):
    start = time.thread_time()
    run(_STEPS.value)
    found.append((time.thread_time() - start) / _STEPS.value)
  return min(found)


def figures() -> dict[str, float]:
  """Returns the seconds of a step by kind of caller."""
  batch = tf.zeros((1, 1)), tf.zeros((1, 1))
  data = tf.data.Dataset.from_tensors(batch).repeat()
  batches = iter(data)
  model = _smallest()
  model.make_train_function()
  constant = tf.constant(0.)
  return {
      'function':
          _calls(tf.function(lambda: constant)),
      'function of an iterator':
          _calls(tf.function(lambda: next(batches))),
      'train function':
          _calls(lambda: model.train_function(batches)),
      'fit':
          thread_seconds(lambda steps: _fit(model, steps, verbose=0)),
      'fit, progress bar':
          thread_seconds(lambda steps: _fit(model, steps, verbose=1)),
  }


def _smallest() -> keras.Model:
  """Returns a model with one input and one output number."""
  features = keras.Input((1,), batch_size=1)
  model = keras.Model(features, keras.layers.Dense(1)(features))
  model.compile('sgd', 'mse', jit_compile=False)
  return model


def _calls(function: Callable[[], Any]) -> float:

  def run(steps: int) -> None:
    for _ in range(steps):
      function()

  return thread_seconds(run)


def _fit(model: keras.Model, steps: int, verbose: int) -> None:
  zeros = np.zeros((steps, 1), np.float32)
  model.fit(zeros, zeros, batch_size=1, verbose=verbose, shuffle=False)


def main(argv: list[str]) -> None:
  """Prints the figures."""
  if len(argv) > 1:
    raise app.UsageError(f'Nothing is known of "{argv[1]}".')
  found = figures()
  if _JSON.value:
    print(json.dumps(found))
    return
  for name, seconds in found.items():
    print(f'{name:25s} {seconds * 1e6:7.0f} us')


if __name__ == '__main__':
  app.run(main)

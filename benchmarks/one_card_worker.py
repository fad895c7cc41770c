"""Child process of `benchmarks.one_card`: runs one model in one way.

  python -m benchmarks.one_card_worker MODEL WAY STEPS

The last line of the output is the result as JSON.
"""

from __future__ import annotations

import importlib
import json
import statistics
import sys
from typing import Any

_REPEATS = 5  # Rows of steps that are timed.


def main(model: str, way: str, steps: str) -> None:
  """Measures."""
  import tensorflow as tf

  from benchmarks import one_card_ways
  from benchmarks.gpu import here
  lines = here.Lines()
  cards = tf.config.list_physical_devices('GPU')
  chosen_way = one_card_ways.WAYS[way]
  if not chosen_way.needs_card:
    for card in cards:
      tf.config.experimental.set_memory_growth(card, True)
  if chosen_way.option:
    tf.config.optimizer.set_experimental_options(
        {'gdp_placement': chosen_way.option})
  found = _measured(tf, model, chosen_way, int(steps))
  print(
      json.dumps({**found, 'peak_bytes': _peak_bytes(tf),
                  'lines': lines.lines}))


def _measured(tf: Any, path: str, way: Any, steps: int) -> dict[str, Any]:
  """Returns seconds of a step and of the first step, and the final way."""
  import keras

  from benchmarks import timed_fits
  keras.utils.set_random_seed(0)
  module, _, function = path.partition(':')
  model = getattr(importlib.import_module(module), function)()
  if not way.lets_keras_choose:
    model.jit_compile = False
  data = tf.data.Dataset.from_tensors(timed_fits.batch(model)).repeat()
  iterator = iter(data)
  model.make_train_function()
  first_s = timed_fits.in_a_row_s(model, iterator, 1)
  timed_fits.in_a_row_s(model, iterator, way.warm)
  rows = [
      timed_fits.in_a_row_s(model, iterator, steps) for _ in range(_REPEATS)
  ]
  return {
      'step_s': statistics.median(rows), 'first_s': first_s,
      'chosen': _chosen(model)
  }


def _chosen(model: Any) -> str:
  """Returns the way of the steps, and their devices if they are placed."""
  report = getattr(model.train_function, 'report', None)
  found = report() if report else None
  if found is not None and found.placed_ops:
    counts = ', '.join(f'{d} {n}' for d, n in found.placed_ops.items())
    return f'{found.way}: {counts}'
  if found is None:
    return 'with XLA' if model.jit_compile else 'without XLA'
  return str(found.way).replace('as it was', 'without XLA')


def _peak_bytes(tf: Any) -> int | None:
  """Bytes of the peaks of all logical GPUs together; None without a GPU."""
  gpus = tf.config.list_logical_devices('GPU')
  return sum(
      tf.config.experimental.get_memory_info(f'GPU:{i}')['peak']
      for i in range(len(gpus))) if gpus else None


if __name__ == '__main__':
  main(*sys.argv[1:])

"""Steps of Keras models on one device, and the graphs that the pass receives.

  python -m benchmarks.gpu.steps DEVICE OUT_DIR STEPS SECONDS MODEL ...

Runs as a process of its own. Writes OUT_DIR/steps.json after each model, and
OUT_DIR/graphs/MODEL.pb. Models that are in the file already are not measured
again.
"""

from __future__ import annotations

import glob
import os
import pathlib
import shutil
import statistics
import sys
import tempfile
import time
from typing import Any

_WARM = 4  # Steps before the timed ones.
_ALONE = 8  # Steps that are timed one by one.
_REPEATS = 5  # Rows of steps that are timed as a whole.


def main(device: str, out_dir: str, steps: str, seconds: str, *names:
         str) -> None:
  """Measures the models that are not in the file."""
  out = pathlib.Path(out_dir)
  (out / 'graphs').mkdir(parents=True, exist_ok=True)
  path = out / 'steps.json'
  until = time.monotonic() + float(seconds)
  import tensorflow as tf

  from benchmarks.gpu import here
  here.make_devices(tf, device, 1)
  here.go_through(names, path, until,
                  lambda name: _measured(tf, name, out, int(steps)))


def _measured(tf: Any, name: str, out: pathlib.Path,
              steps: int) -> dict[str, Any]:
  """Returns the seconds of a step, and writes the graph."""
  import keras

  from benchmarks import timed_fits
  from benchmarks.gpu import here
  keras.utils.set_random_seed(0)
  model = here.model(name)
  data = tf.data.Dataset.from_tensors(timed_fits.batch(model)).repeat()
  iterator = iter(data)
  begin = time.perf_counter()
  graph = _captured(tf, model, iterator,
                    out / 'graphs' / f'{here.short(name)}.pb')
  first_s = time.perf_counter() - begin
  timed_fits.in_a_row_s(model, iterator, _WARM)
  rows = [
      timed_fits.in_a_row_s(model, iterator, steps) for _ in range(_REPEATS)
  ]
  alone = [timed_fits.in_a_row_s(model, iterator, 1) for _ in range(_ALONE)]
  return {
      'graph': graph, 'step_s': statistics.median(rows),
      'alone_s': statistics.median(alone), 'all_s': rows, 'first_s': first_s
  }


def _captured(tf: Any, model: Any, iterator: Any, path: pathlib.Path) -> str:
  """Runs a step with the option in mode 'report', which writes the graph."""
  from gdp_grappler import environment
  with tempfile.TemporaryDirectory() as folder:
    os.environ[environment.CAPTURE_DIR] = folder
    _option(tf, {'mode': 'report', 'placer': 'round_robin', 'cache': False})
    model.make_train_function()
    float(model.train_function(iterator)['loss'])
    del os.environ[environment.CAPTURE_DIR]
    _option(tf, False)
    found = glob.glob(f'{folder}/**/*.pb', recursive=True)
    if not found:
      raise RuntimeError('the pass has captured no graph')
    shutil.copy(max(found, key=os.path.getsize), path)
  return str(path)


def _option(tf: Any, value: Any) -> None:
  tf.config.optimizer.set_experimental_options({'gdp_placement': value})


if __name__ == '__main__':
  main(*sys.argv[1:])

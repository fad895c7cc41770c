"""Losses of models placed on a CPU and two logical GPUs, and not placed.

  python -m benchmarks.gpu.losses DEVICE OUT_DIR STEPS SECONDS MODEL ...

Runs as a process of its own, with deterministic ops. Writes OUT_DIR/losses.json
after each model. Models that are in the file already do not run again.
"""

from __future__ import annotations

import pathlib
import sys
import time
from typing import Any

# Any legal placement has to keep the numbers.
_OPTION = {
    'placer': 'random', 'keep_best': False, 'guard': False, 'cache': False,
    'min_ops': 4
}


def main(device: str, out_dir: str, steps: str, seconds: str, *names:
         str) -> None:
  """Runs the models that are not in the file."""
  path = pathlib.Path(out_dir) / 'losses.json'
  path.parent.mkdir(parents=True, exist_ok=True)
  until = time.monotonic() + float(seconds)
  import tensorflow as tf

  from benchmarks import plugin
  from benchmarks.gpu import here
  plugin.require()
  here.make_devices(tf, device, 2)
  tf.config.experimental.enable_op_determinism()
  notices = here.Lines()
  here.go_through(names, path, until,
                  lambda name: _compared(tf, name, int(steps), notices))


def _compared(tf: Any, name: str, steps: int, notices: Any) -> dict[str, Any]:
  off = _losses(tf, name, steps, False)
  notices.lines.clear()
  placed = _losses(tf, name, steps, _OPTION)
  said = [line for line in notices.lines if 'placed by' in line]
  return {
      'equal': off == placed, 'off': off, 'placed': placed,
      'said': (said or notices.lines or [''])[0], 'was_placed': bool(said)
  }


def _losses(tf: Any, name: str, steps: int, option: Any) -> list[str]:
  """Returns the losses of some steps, exact to the last bit."""
  import keras

  from benchmarks import timed_fits
  from benchmarks.gpu import here
  tf.config.optimizer.set_experimental_options({'gdp_placement': option})
  keras.utils.set_random_seed(0)
  model = here.model(name)
  return [
      step.loss.hex()
      for step in timed_fits.run(model, timed_fits.batch(model), steps)
  ]


if __name__ == '__main__':
  main(*sys.argv[1:])

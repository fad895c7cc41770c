"""Trains a model that one logical card cannot hold, with and without placement.

  python -m benchmarks.gpu.too_big GPU OUT_DIR

There are two logical cards of 5 GB each. The weights, slots and gradients of
the layers take about 9 GB. Writes too_big.json: for 'off' and 'on' the losses
or the error, and the peak of memory of each card. With CPU in place of GPU the
program trains a small model, which fits.
"""

from __future__ import annotations

import contextlib
import json
import pathlib
import subprocess
import sys
from typing import Any

from gdp_grappler import errors

_CARD_MEGABYTES = 5000  # Memory of each logical GPU.
# Weights of a layer are the square of its width: 268 MB, 0.3 MB in a dry run.
_WIDTHS = {'GPU': 8192, 'CPU': 256}
# With weights, gradients and Adam's two slots 4 x 8 x 268 MB, 1.7 times the
# memory of a card.
_LAYERS = 8
_BATCH = 64  # Examples per step.
_STEPS = 8  # Steps of an epoch.
_WAYS = ('off', 'on')
_LONGEST_S = 120.  # Seconds after which a way is stopped.


def main(arguments: list[str]) -> int:
  """Runs both ways in processes of their own, or only the named way here."""
  device, out_dir, *way = arguments
  if way:
    print(json.dumps(_trained(device, way[0] == 'on')))
    return 0
  found = {way: _of_process(device, out_dir, way) for way in _WAYS}
  path = pathlib.Path(out_dir) / 'too_big.json'
  path.write_text(json.dumps(found, indent=1))
  return 0


def _of_process(device: str, out_dir: str, way: str) -> dict[str, Any]:
  command = [sys.executable, '-m', __spec__.name, device, out_dir, way]
  try:
    done = subprocess.run(command, capture_output=True, text=True, check=False,
                          timeout=_LONGEST_S)
  except subprocess.TimeoutExpired:
    return {'error': f'longer than {_LONGEST_S:g} s'}
  if done.returncode:
    return {'error': done.stderr.strip()[-500:]}
  return json.loads(done.stdout.strip().splitlines()[-1])


def _trained(device: str, is_on: bool) -> dict[str, Any]:
  import tensorflow as tf

  import gdp_grappler
  card = tf.config.list_physical_devices(device)[0]
  part = tf.config.LogicalDeviceConfiguration(
      memory_limit=_CARD_MEGABYTES if device == 'GPU' else None)
  tf.config.set_logical_device_configuration(card, [part] * 2)
  scope: Any = contextlib.nullcontext()
  if is_on:
    tf.config.optimizer.set_experimental_options({'gdp_placement': True})
    scope = gdp_grappler.made_on_host()
  try:
    with scope:
      model = _model(_WIDTHS[device])
    losses = _fit(model, _WIDTHS[device])
  except tf.errors.ResourceExhaustedError as error:
    return {'error': errors.first_line(error)[:300]}
  result: dict[str, Any] = {'losses': losses}
  if device == 'GPU':
    result['peak_bytes'] = [
        int(tf.config.experimental.get_memory_info(f'GPU:{i}')['peak'])
        for i in range(2)
    ]
  return result


def _model(width: int) -> Any:
  import keras
  keras.utils.set_random_seed(1)
  model = keras.Sequential(
      [keras.Input((width,), batch_size=_BATCH)]
      + [keras.layers.Dense(width, 'relu') for _ in range(_LAYERS)]
      + [keras.layers.Dense(1)])
  model.compile('adam', 'mse', jit_compile=False)
  return model


def _fit(model: Any, width: int) -> list[float]:
  import numpy as np
  x = np.random.default_rng(0).normal(size=(_BATCH * _STEPS, width))
  y = np.zeros((_BATCH * _STEPS, 1), 'f')
  history = model.fit(x.astype('f'), y, batch_size=_BATCH, epochs=2, verbose=0)
  return [float(loss) for loss in history.history['loss']]


if __name__ == '__main__':
  sys.exit(main(sys.argv[1:]))

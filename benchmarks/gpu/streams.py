"""Times `fit` on a card, whole and in parts, with options of TensorFlow.

  python -m benchmarks.gpu.streams DEVICE OUT_DIR STEPS SECONDS MODEL ...

Each way has a process of its own, because TensorFlow reads these options only
when it starts. Writes OUT_DIR/streams_WAY.json after each model, and
OUT_DIR/streams.json with all ways. Existing results are not measured again.
DEVICE CPU means a dry run on logical CPUs, on which the options have no effect.
"""

from __future__ import annotations

import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
from typing import Any, Callable, Iterable

_ONE = '--way'


def private_threads(options: Any) -> None:
  """Requests separate threads for each logical GPU."""
  del options
  os.environ['TF_GPU_THREAD_MODE'] = 'gpu_private'


def copy_streams(options: Any) -> None:
  """Requests two streams for copies between GPUs.

  Args:
    options: `GPUOptions`, changed in place, here and in the functions below.
  """
  options.experimental.num_dev_to_dev_copy_streams = 2


def merged_streams(options: Any) -> None:
  """Puts copies between GPUs on the compute stream."""
  merge = options.experimental.stream_merge_options
  merge.merge_device_to_device_stream = True


# Each way has the number of logical GPUs of the card, and a function that
# changes TensorFlow's options, or None.
WAYS: dict[str, tuple[int, Callable[[Any], None] | None]] = {
    'whole': (1, None),
    'split_2': (2, None),
    'split_4': (4, None),
    'split_2_private_threads': (2, private_threads),
    'split_2_copy_streams': (2, copy_streams),
    'split_2_merged_streams': (2, merged_streams),
}


def main(device: str, out_dir: str, steps: str, seconds: str, *names:
         str) -> None:
  """Runs all ways one after the other."""
  until = time.monotonic() + float(seconds)
  found: dict[str, Any] = {}
  for way in WAYS:
    left_s = until - time.monotonic()
    if left_s > 0:
      subprocess.run([
          sys.executable, '-m', 'benchmarks.gpu.streams', _ONE, way, device,
          out_dir, steps, f'{left_s:.0f}', *names
      ], check=False)
    path = _path(out_dir, way)
    if path.exists():
      for model, row in json.loads(path.read_text()).items():
        found[_key(model, way)] = row
  (pathlib.Path(out_dir)
   / 'streams.json').write_text(json.dumps(found, indent=1) + '\n')


def keys(models: Iterable[str]) -> tuple[str, ...]:
  """Returns the keys of streams.json when all is measured.

  Args:
    models: Short names of the models.
  """
  return tuple(_key(model, way) for model in models for way in WAYS)


def _key(model: str, way: str) -> str:
  return f'{model}.{way}'


def run_way(way: str, device: str, out_dir: str, steps: str, seconds: str,
            *names: str) -> None:
  """Runs one way, in a process that has not started TensorFlow."""
  from benchmarks.gpu import here
  parts, lever = WAYS[way]
  until = time.monotonic() + float(seconds)
  path = _path(out_dir, way)
  path.parent.mkdir(parents=True, exist_ok=True)
  import tensorflow as tf

  from benchmarks import plugin
  plugin.require()
  if lever is not None:
    set_lever(lever)
  if device == here.CPU:
    here.make_devices(tf, device, parts)
  option = False if parts == 1 else {'split': parts, 'cache': False}
  tf.config.optimizer.set_experimental_options({'gdp_placement': option})
  notices = here.Lines()
  here.go_through(names, path, until,
                  lambda name: _timed(name, int(steps), notices))


def set_lever(lever: Callable[[Any], None]) -> None:
  """Changes the options with which TensorFlow creates its GPUs."""
  from tensorflow.python.eager import context
  stock = context.Context._compute_gpu_options

  def changed(self: Any) -> Any:
    options = stock(self)
    lever(options)
    return options

  context.Context._compute_gpu_options = changed


def _timed(name: str, steps: int, notices: Any) -> dict[str, Any]:
  from benchmarks import timed_fits
  from benchmarks.gpu import here
  del notices.lines[:]
  model = here.model(name)
  # The guard decides before the second half.
  seconds = timed_fits.steps_s(model, timed_fits.batch(model), 2 * steps)
  return {
      'step_s': statistics.median(seconds[steps:]), 'said': notices.lines[-3:]
  }


def _path(out_dir: str, way: str) -> pathlib.Path:
  return pathlib.Path(out_dir) / f'streams_{way}.json'


if __name__ == '__main__':
  if sys.argv[1:2] == [_ONE]:
    run_way(*sys.argv[2:])
  else:
    main(*sys.argv[1:])

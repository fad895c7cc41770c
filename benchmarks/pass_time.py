"""Prints what the plugin costs: in the pass, and on `import tensorflow`.

Run it from the repository with `python benchmarks/pass_time.py`, in an
environment where the package is installed. Columns: ops of a training graph
before Grappler prunes it, milliseconds in the pass the first time (policy
loaded before), and from the cache when the same function is instantiated again;
and processor seconds of the first time, refinement and all else, which hang
less on what else the machine does.
Then the seconds of `import tensorflow` with the plugin kept out and with it
installed but switched off, in turn, medians.
"""

import ctypes
import logging
import statistics
import subprocess
import sys
import time
import types
from typing import Any, Callable

import tensorflow as tf
from tensorflow.python.eager import context

from gdp_grappler import environment
from gdp_grappler import native
from gdp_grappler import progress
from gdp_grappler.placers import local_search
from gdp_grappler.plugin import optimizer
from gdp_grappler.processes import launching
from gdp_grappler.reports import progress_line
from gdp_grappler.reports import tables

_LAYERS = (100, 400, 900, 1800)
_REPEATS = 5
_IMPORTS = 7


class _Clocked:
  """A function of a module that adds up its processor seconds."""

  def __init__(self, module: types.ModuleType, name: str) -> None:
    """Takes the place of the function."""
    self.seconds = 0.
    self._function = getattr(module, name)
    setattr(module, name, self)

  def __call__(self, *args: Any, **kwargs: Any) -> Any:
    start = time.process_time()
    try:
      return self._function(*args, **kwargs)
    finally:
      self.seconds += time.process_time() - start


_PLACING = _Clocked(optimizer, 'optimize')
_REFINING = _Clocked(local_search, 'annealed')


def _pass_ms() -> float:
  """Spent in the pass by this process so far."""
  function = native.load_grappler().gdp_pass_nanoseconds
  function.restype = ctypes.c_int64
  return function() / 1e6


def _train_step(num_layers: int) -> Callable[[tf.Tensor], tf.Tensor]:
  """Gradient descent on `num_layers` dense layers of 8 units; 12 ops each."""
  weights = [tf.Variable(tf.eye(8)) for _ in range(num_layers)]
  rate = tf.Variable(1e-3)

  @tf.function
  def step(x: tf.Tensor) -> tf.Tensor:
    with tf.GradientTape() as tape:
      for weight in weights:
        x = tf.tanh(tf.matmul(x, weight) * 0.5 + 0.1)
      loss = tf.reduce_sum(x)
    for weight, gradient in zip(weights, tape.gradient(loss, weights)):
      weight.assign_sub(rate * gradient)
    return loss

  return step


def _measure(num_layers: int) -> list[str]:
  step, x = _train_step(num_layers), tf.ones((8, 8))
  context.enable_graph_collection()
  before, _PLACING.seconds, _REFINING.seconds = _pass_ms(), 0., 0.
  step(x)
  first = _pass_ms() - before
  tf.identity(1.)
  graphs = context.export_run_metadata().function_graphs
  ops = max(len(g.pre_optimization_graph.node) for g in graphs)
  context.disable_graph_collection()
  cached = []
  for _ in range(_REPEATS):
    context.context().clear_kernel_cache()
    before = _pass_ms()
    step(x)
    cached.append(_pass_ms() - before)
  return [
      f'{ops:,}', f'{first:.0f}', f'{statistics.median(cached):.1f}',
      f'{_REFINING.seconds:.2f}', f'{_PLACING.seconds - _REFINING.seconds:.2f}'
  ]


def _import_seconds(disable: str = '0') -> float:
  start = time.perf_counter()
  subprocess.run([sys.executable, '-c', 'import tensorflow'], check=True,
                 stderr=subprocess.DEVNULL,
                 env=launching.environment({environment.DISABLE: disable}))
  return time.perf_counter() - start


def main() -> None:
  """Prints the two tables."""
  tf.config.set_logical_device_configuration(
      tf.config.list_physical_devices('CPU')[0],
      [tf.config.LogicalDeviceConfiguration()] * 4)
  logging.getLogger('gdp_grappler').setLevel(logging.WARNING)
  tf.config.optimizer.set_experimental_options(
      {'gdp_placement': {'keep_best': False}})
  rows = [[
      'ops', 'first ms', 'cached ms', 'refining, CPU s', 'all else, CPU s'
  ]]
  with progress_line.shown('pass_time'):
    progress.doing('loading the policy')
    _measure(10)
    rows += progress.of_each('placing', _LAYERS, _measure,
                             lambda layers: f'{layers} layers')
  print(tables.titled('In the pass', rows))
  with progress_line.shown('pass_time'):
    _import_seconds()
    pairs = progress.of_each(
        'importing TensorFlow both ways', range(_IMPORTS), lambda _:
        (_import_seconds(disable='1'), _import_seconds()))
  out, off = (statistics.median(side) for side in zip(*pairs))
  ratio = statistics.median(b / a for a, b in pairs)
  print(f'import tensorflow: {out:.2f} s without, {off:.2f} s with the plugin '
        f'switched off; ratio {ratio:.3f}')


if __name__ == '__main__':
  main()

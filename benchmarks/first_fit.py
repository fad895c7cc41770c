r"""What a user waits for the first `fit` of a program, measured.

Run it from the repository, in an environment where the package is installed:

  python -m benchmarks.first_fit --json

Programs: a model of 60 small layers, and a TCN (causal, dilated convolutions
with shortcuts). Each is compiled with one and with two steps in a call
(`steps_per_execution`), and runs in fresh processes, in turn with each option:

  one CPU, off     the option is off
  one CPU, on      the option is on, and there is nothing to choose
  two CPUs, off    two logical CPUs, the option is off
  two CPUs, on     they share their cores, so no placement can pay
  two cards, on    a cluster file calls the two CPUs two cards; a search finds
                   no gain
  two cards, plan  a layer map moves the variables of half of the layers

Prints a list of {"program", "steps", "option", "wait_s", "cpu_s", "said_s",
"traces"}: seconds of the first `fit` of one call, processor seconds of it,
seconds that the lines say were spent, and how often Keras' step was traced,
medians of some runs. Also {"ratio"}: the median of the quotients of processor
seconds and those of the same devices with the option off, run after run.
Without --json, a table, which with --page=FILE replaces the one in a page of
Markdown, between two comments.
"""

from __future__ import annotations

import dataclasses
import itertools
import logging
import pathlib
import re
import statistics
import sys
import tempfile
import time
from typing import Any, Callable, Sequence

import keras
import tensorflow as tf

from benchmarks import plugin
from benchmarks import tables
from gdp_grappler import environment
from gdp_grappler import progress
from gdp_grappler.cluster import connected_devices
from gdp_grappler.processes import calls

layers = keras.layers
_TITLE = 'First fit'
_FIGURES = ('wait_s', 'cpu_s', 'said_s', 'traces')
_TIMEOUT_S = 3600.
_BATCH = 8
_LAYERS = 60
# Of the option that it is compared with, by option.
_COMPARED = {
    'one CPU, off': 'one CPU, off', 'one CPU, on': 'one CPU, off',
    'two CPUs, off': 'two CPUs, off', 'two CPUs, on': 'two CPUs, off',
    'two cards, on': 'two CPUs, off', 'two cards, plan': 'two CPUs, off'
}
_Row = dict[str, Any]


def measure(program: str, steps: int, option: str) -> dict[str, float]:
  """The figures of one run, in a process that has done nothing else.

  Args:
    program: One of `_PROGRAMS`.
    steps: In a call.
    option: One of `_COMPARED`.
  """
  devices, _, how = option.partition(', ')
  if devices != 'one CPU':
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices('CPU')[0],
        [tf.config.LogicalDeviceConfiguration()] * 2)
  said = _Said()
  logging.getLogger('gdp_grappler').addHandler(said)
  model = _PROGRAMS[program]()
  model.compile('adam', 'mse', steps_per_execution=steps, jit_compile=False)
  inputs = tf.ones((steps * _BATCH, *model.input_shape[1:]))
  targets = tf.zeros((steps * _BATCH, *model.output_shape[1:]))
  with tempfile.TemporaryDirectory() as folder:
    if how != 'off':
      tf.config.optimizer.set_experimental_options(
          {'gdp_placement': _option(devices, how, model, folder)})
    start, start_cpu = time.perf_counter(), time.process_time()
    model.fit(inputs, targets, batch_size=_BATCH, verbose=0)
    return {
        'wait_s': time.perf_counter() - start,
        'cpu_s': time.process_time() - start_cpu, 'said_s': said.spent_s,
        'traces': model.traces
    }


def _option(devices: str, how: str, model: keras.Model,
            folder: str) -> dict[str, Any]:
  """The value of `gdp_placement`."""
  result: dict[str, Any] = {'cache': False}
  if devices == 'two cards':
    result['cluster'] = _cards(folder)
  if how == 'plan':
    weighty = [layer.name for layer in model.layers if layer.weights]
    moved = weighty[len(weighty) // 2:]
    result['plan'] = {name: 'CPU:1' for name in moved}
  return result


class _Said(logging.Handler):
  """Adds up what the lines of a program say was spent."""

  def __init__(self) -> None:
    super().__init__()
    self.spent_s = 0.

  def emit(self, record: logging.LogRecord) -> None:
    for spent in re.findall(r'([\d.e+]+) ms spent', record.getMessage()):
      self.spent_s += float(spent) / 1e3


class _Counted(keras.Model):
  """Counts how often Keras traces its step."""

  traces = 0

  def train_step(self, data: Any) -> Any:
    self.traces += 1
    return super().train_step(data)


def _cards(folder: str) -> str:
  """A file that describes this machine's two CPUs as two cards."""
  cluster = connected_devices.local_cluster([
      f'/job:localhost/replica:0/task:0/device:CPU:{index}'
      for index in range(2)
  ])
  devices = tuple(
      dataclasses.replace(device, memory=device.name, compute=device.name)
      for device in cluster.devices)
  path = pathlib.Path(folder) / 'cards.json'
  path.write_text(
      dataclasses.replace(cluster, devices=devices).to_json(), encoding='utf-8')
  return str(path)


def _small_layers() -> keras.Model:
  inputs = outputs = keras.Input((16,))
  for _ in range(_LAYERS):
    outputs = layers.Dense(16, 'relu')(outputs)
  return _Counted(inputs, outputs, name='small_layers')


def _tcn() -> keras.Model:
  inputs = outputs = keras.Input((64, 8))
  for level in range(8):
    hidden = outputs
    for _ in range(2):
      hidden = layers.Conv1D(8, 3, dilation_rate=2**(level % 4),
                             padding='causal', activation='relu')(hidden)
    outputs = layers.Add()([outputs, hidden])
  return _Counted(inputs, layers.Dense(1)(outputs), name='tcn')


_PROGRAMS: dict[str, Callable[[], keras.Model]] = {
    'small_layers': _small_layers, 'tcn': _tcn
}


def _rows(program: str, steps: int, runs: int) -> list[_Row]:
  found: dict[str, list[dict[str, float]]] = {}
  for _, option in itertools.product(range(runs), _COMPARED):
    found.setdefault(option, []).append(
        calls.call(f'{__package__}.first_fit:measure', program, steps, option,
                   timeout_s=_TIMEOUT_S,
                   environment={environment.DISABLE: '0'}))
  return [{
      'program': program, 'steps': steps, 'option': option,
      **_medians(runs_of, found[_COMPARED[option]])
  } for option, runs_of in found.items()]


def _medians(runs: Sequence[dict[str, float]],
             compared: Sequence[dict[str, float]]) -> dict[str, float]:
  result = {
      figure: statistics.median(run[figure] for run in runs)
      for figure in _FIGURES
  }
  result['ratio'] = statistics.median(
      run['cpu_s'] / other['cpu_s'] for run, other in zip(runs, compared))
  return result


def _table(programs: Sequence[str], runs: int) -> tables.Table:
  plugin.require()
  of_each = progress.of_each('fitting',
                             list(itertools.product(programs, (1, 2))),
                             lambda one: _rows(*one, runs))
  rows = [row for of_one in of_each for row in of_one]
  return tables.Table('the first fit, measured',
                      ('program', 'steps', 'option', *_FIGURES, 'ratio'), [[
                          row['program'],
                          str(row['steps']), row['option'],
                          *(f'{row[figure]:.4g}'
                            for figure in (*_FIGURES, 'ratio'))
                      ] for row in rows], rows)


main = tables.program(
    'first_fit', __doc__, _TITLE,
    lambda given: _table(given.programs, given.runs),
    tables.option('--programs', nargs='+', choices=_PROGRAMS,
                  default=list(_PROGRAMS)),
    tables.option('--runs', type=int, default=5))

if __name__ == '__main__':
  sys.exit(main())

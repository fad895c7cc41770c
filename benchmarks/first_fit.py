r"""What a user waits for the first `fit` when steps share a call, measured.

Run it from the repository, in an environment where the package is installed:

  python -m benchmarks.first_fit --json

Programs: a model of 60 small layers, and a TCN (causal, dilated convolutions
with shortcuts), with `steps_per_execution=2`. Each runs in fresh processes, in
turn without the option, with it over two CPUs that share their cores (`on`),
and with it over two CPUs that a cluster file describes as two cards (`cards`).
Prints a list of {"program", "option", "wait_s", "cpu_s", "said_s", "traces"}:
seconds of the first `fit` of one call, processor seconds of it, seconds that
the line says were spent, and how often Keras' step was traced, medians of some
runs. Without --json, a table, which with --page=FILE replaces the one in a page
of Markdown, between two comments.
"""

from __future__ import annotations

import dataclasses
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
_OPTIONS = ('off', 'on', 'cards')
_FIGURES = ('wait_s', 'cpu_s', 'said_s', 'traces')
_TIMEOUT_S = 3600.
_PER_CALL, _BATCH = 2, 8
_Row = dict[str, Any]


def main(argv: Sequence[str] | None = None) -> int:
  """Prints the table or the list.

  Args:
    argv: Arguments after the program's name; `sys.argv` if None.

  Returns:
    0, or 2 for bad input.
  """
  options = tables.parser('first_fit', __doc__)
  options.add_argument('--runs', type=int, default=5)
  options.add_argument('--programs', nargs='+', choices=_PROGRAMS,
                       default=list(_PROGRAMS))
  arguments = tables.parse(options, argv)
  return tables.show(arguments, _TITLE,
                     lambda: _table(arguments.programs, arguments.runs))


def measure(program: str, option: str) -> dict[str, float]:
  """The figures of one run, in a process that has done nothing else.

  Args:
    program: One of `_PROGRAMS`.
    option: One of `_OPTIONS`.
  """
  tf.config.set_logical_device_configuration(
      tf.config.list_physical_devices('CPU')[0],
      [tf.config.LogicalDeviceConfiguration()] * 2)
  said = _Said()
  logging.getLogger('gdp_grappler').addHandler(said)
  with tempfile.TemporaryDirectory() as folder:
    if option != 'off':
      cluster = {'cluster': _cards(folder)} if option == 'cards' else {}
      tf.config.optimizer.set_experimental_options(
          {'gdp_placement': {**cluster, 'cache': False}})
    model = _PROGRAMS[program]()
    model.compile('adam', 'mse', steps_per_execution=_PER_CALL,
                  jit_compile=False)
    shape = (_PER_CALL * _BATCH, *model.input_shape[1:])
    targets = tf.zeros((_PER_CALL * _BATCH, *model.output_shape[1:]))
    start, start_cpu = time.perf_counter(), time.process_time()
    model.fit(tf.ones(shape), targets, batch_size=_BATCH, verbose=0)
    return {
        'wait_s': time.perf_counter() - start,
        'cpu_s': time.process_time() - start_cpu, 'said_s': said.spent_s,
        'traces': model.traces
    }


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
  devices = [
      dataclasses.replace(device, memory=device.name, compute=device.name)
      for device in cluster.devices
  ]
  path = pathlib.Path(folder) / 'cards.json'
  path.write_text(
      dataclasses.replace(cluster, devices=tuple(devices)).to_json(),
      encoding='utf-8')
  return str(path)


def _small_layers() -> keras.Model:
  inputs = outputs = keras.Input((16,))
  for _ in range(60):
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


def _rows(program: str, runs: int) -> list[_Row]:
  found: dict[str, list[dict[str, float]]] = {option: [] for option in _OPTIONS}
  for _ in range(runs):
    for option in _OPTIONS:
      found[option].append(
          calls.call(f'{__package__}.first_fit:measure', program, option,
                     timeout_s=_TIMEOUT_S,
                     environment={environment.DISABLE: '0'}))
  return [{'program': program, 'option': option, **_medians(found[option])}
          for option in _OPTIONS]


def _medians(runs: Sequence[dict[str, float]]) -> dict[str, float]:
  return {
      figure: statistics.median(run[figure] for run in runs)
      for figure in _FIGURES
  }


def _table(programs: Sequence[str], runs: int) -> tables.Table:
  plugin.require()
  of_programs = progress.of_each('fitting', programs,
                                 lambda program: _rows(program, runs))
  rows = [row for of_program in of_programs for row in of_program]
  return tables.Table(
      'the first fit with two steps in a call, measured',
      ('program', 'option', *_FIGURES), [[
          row['program'], row['option'], *(f'{row[figure]:.4g}'
                                           for figure in _FIGURES)
      ] for row in rows], rows)


if __name__ == '__main__':
  sys.exit(main())

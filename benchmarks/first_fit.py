"""Seconds of the first `fit` of a program with and without the option.

Run it from the repository, in an environment where the package is installed:

  python -m benchmarks.first_fit --json

The program fits a Keras model of 60 small layers, with one and with two steps
in a call (`steps_per_execution`). It has one CPU, or two logical CPUs, which
share their cores. With both, the option does not change the graph. Each program
runs in fresh processes, in turn with the option off and on. Prints a list of
{"devices", "steps", "off_s", "on_s", "on / off", "ours_s", "share", "said_s",
"off_traces", "on_traces"}, medians of several runs:

  off_s, on_s   processor seconds of the first `fit`, of one call
  on / off      ratio of two runs that follow one another
  ours_s        processor seconds of this package's functions in `on_s`
  share         `ours_s` over the rest of `on_s`. One process has both, so the
                load of the machine changes this less than "on / off"
  said_s        wall-clock seconds in the lines that the package prints
  traces        number of traces of Keras' step

Without --json, prints a table. With --page=FILE the table replaces the table
between two comments of a page in Markdown.
"""

from __future__ import annotations

import argparse
import itertools
import logging
import re
import statistics
import sys
import time
from typing import Any, Sequence

import keras
import tensorflow as tf
from tensorflow.python.eager.polymorphic_function import polymorphic_function

from benchmarks import part_times
from benchmarks import plugin
from benchmarks import tables
from gdp_grappler import environment
from gdp_grappler import progress
from gdp_grappler.plugin import host
from gdp_grappler.plugin.fitting import keras_function
from gdp_grappler.processes import calls

_TITLE = 'First fit'
_FIGURES = ('off_s', 'on_s', 'on / off', 'ours_s', 'share', 'said_s',
            'off_traces', 'on_traces')
_TIMEOUT_S = 600.  # Seconds for the process of one `fit`.
_BATCH = 8  # Examples per step.
_UNITS = 16  # Width of a layer. Small, so that steps take little time.
_LAYERS = 60  # Dense layers of the model, unless given.
_DEVICES = 'one CPU', 'two CPUs'
_STEPS = 1, 2  # Steps of a `fit`, unless given.
_Row = dict[str, Any]
# TensorFlow waits for this package from a call of the pass or of Keras' train
# function on. The time of TensorFlow's own functions inside such a call does
# not count.
_PARTS: dict[str, Sequence[part_times.Function]] = {
    'ours': [(host.Host, 'answer'), (keras_function.KerasFunction, '__call__')],
    'theirs': [(polymorphic_function.Function, '__call__')],
}


def measure(devices: str, steps: int, num_layers: int,
            on: bool) -> dict[str, float]:
  """Returns the figures of one run, in a process that has done nothing else.

  Args:
    devices: One of `_DEVICES`.
    steps: Number of steps in a call.
    num_layers: Number of layers of the model.
    on: Whether the option is on.
  """
  if devices == 'two CPUs':
    plugin.cut_cpu(2)
  said = _Said()
  logging.getLogger('gdp_grappler').addHandler(said)
  # The clocks come before the option, because the option keeps `Host.answer`.
  with part_times.clocked(_PARTS if on else {'ours': []}) as seconds:
    if on:
      tf.config.optimizer.set_experimental_options(
          {'gdp_placement': {'cache': False}})
    model = _model(num_layers)
    model.compile('adam', 'mse', steps_per_execution=steps, jit_compile=False)
    x = tf.ones((steps * _BATCH, _UNITS))
    start = time.process_time()
    model.fit(x, x, batch_size=_BATCH, verbose=0)
    return {
        'cpu_s': time.process_time() - start, 'ours_s': seconds['ours'],
        'said_s': said.spent_s, 'traces': model.traces
    }


class _Said(logging.Handler):
  """Adds up the seconds that the lines of a program report."""

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


def _model(num_layers: int) -> keras.Model:
  inputs = outputs = keras.Input((_UNITS,))
  for _ in range(num_layers):
    outputs = keras.layers.Dense(_UNITS, 'relu')(outputs)
  return _Counted(inputs, outputs, name='small_layers')


def _row(devices: str, steps: int, num_layers: int, runs: int) -> _Row:
  found: dict[bool, list[dict[str, float]]] = {False: [], True: []}
  for _, on in itertools.product(range(runs), found):
    found[on].append(
        calls.call(f'{__package__}.first_fit:measure', devices, steps,
                   num_layers, on, timeout_s=_TIMEOUT_S,
                   environment={environment.DISABLE: '0'}))
  return {'devices': devices, 'steps': steps, **_medians(*found.values())}


def _medians(off: Sequence[dict[str, float]],
             on: Sequence[dict[str, float]]) -> dict[str, float]:
  pairs = [_figures(*pair) for pair in zip(off, on)]
  return {
      figure: statistics.median(pair[figure] for pair in pairs)
      for figure in _FIGURES
  }


def _figures(off: dict[str, float], on: dict[str, float]) -> dict[str, float]:
  """Figures of two runs, one after the other."""
  values = (off['cpu_s'], on['cpu_s'], on['cpu_s'] / off['cpu_s'], on['ours_s'],
            on['ours_s'] / (on['cpu_s'] - on['ours_s']), on['said_s'],
            off['traces'], on['traces'])
  return dict(zip(_FIGURES, values))


def _table(given: argparse.Namespace) -> tables.Table:
  plugin.require()
  rows = progress.of_each('fitting',
                          list(itertools.product(given.devices, given.steps)),
                          lambda case: _row(*case, given.layers, given.runs))
  cells = [[
      row['devices'],
      str(row['steps']), *(f'{row[figure]:.3g}' for figure in _FIGURES)
  ] for row in rows]
  return tables.Table('the first fit, measured',
                      ('devices', 'steps', *_FIGURES), cells, rows)


main = tables.program(
    'first_fit', __doc__, _TITLE, _table,
    tables.option('--devices', nargs='+', choices=_DEVICES, default=_DEVICES),
    tables.option('--steps', nargs='+', type=int, default=_STEPS),
    tables.option('--layers', type=int, default=_LAYERS),
    tables.option('--runs', type=int, default=3))

if __name__ == '__main__':
  sys.exit(main())

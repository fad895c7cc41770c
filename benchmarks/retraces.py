r"""Measures the cost of the option for programs whose graphs stay the same.

Run it from the repository, in an environment where the package is installed:

  python -m benchmarks.retraces --json

The machine is cut into two logical CPUs, over which no placement pays. There
are two programs: a training `tf.function` that is traced anew for each size of
its batches, and a Keras model that is compiled and fitted again and again. Each
runs in fresh processes, in turn with the option off and on.

Prints a list of {"program", "option", "first_s", "step_s", "retraces_s",
"rss_mb"}: processor seconds of the first call, of one later call, and of all
retraces, and the memory of the process at the end. They are medians of several
runs. Rows of the option "on / off" have the ratios. Without --json, prints a
table. With --page=FILE the table replaces the table between two comments of a
page in Markdown.
"""

from __future__ import annotations

import gc
import os
import statistics
import sys
import time
from typing import Any, Callable

import keras
import tensorflow as tf

from benchmarks import dense_step
from benchmarks import plugin
from benchmarks import tables
from gdp_grappler import environment
from gdp_grappler import progress
from gdp_grappler.processes import calls

_TITLE = 'Retraces'
_FIGURES = ('first_s', 'step_s', 'retraces_s', 'rss_mb')
_TIMEOUT_S = 3600.  # Seconds for one program.
_STEPS = 200  # Timed steps, and as many before them.
_LAYERS = 40  # Weights of a program.
_Row = dict[str, Any]
# Runs a number of steps; if the second argument is true, after a new trace.
_Program = Callable[[int, bool], object]


def measure(program: str, option: str, retraces: int) -> dict[str, float]:
  """Returns the figures of one run, in a process that has done nothing else.

  Args:
    program: One of `_PROGRAMS`.
    option: 'on' or 'off'.
    retraces: Number of retraces.
  """
  plugin.cut_cpu(2)
  if option == 'on':
    tf.config.optimizer.set_experimental_options({'gdp_placement': True})
  run = _PROGRAMS[program]()
  first_s = _seconds(lambda: run(1, False))
  run(_STEPS, False)  # The guard of `fit` decides here.
  step_s = _seconds(lambda: run(_STEPS, False)) / _STEPS
  retraces_s = _seconds(lambda: [run(1, True) for _ in range(retraces)])
  return {
      'first_s': first_s, 'step_s': step_s, 'retraces_s': retraces_s,
      'rss_mb': _rss_mb()
  }


def _function() -> _Program:
  """Makes a program that runs a training step of dense layers."""
  step = dense_step.make(_LAYERS)
  batches = [tf.ones((8, dense_step.UNITS))]

  def run(steps: int, anew: bool) -> None:
    if anew:
      batches[0] = tf.ones((len(batches[0]) + 1, dense_step.UNITS))
    for _ in range(steps):
      step(batches[0])

  return run


def _fit() -> _Program:
  """Makes a program that fits a perceptron of Keras."""
  model = keras.Sequential([keras.Input((dense_step.UNITS,))] + [
      keras.layers.Dense(dense_step.UNITS, 'relu') for _ in range(_LAYERS // 4)
  ])
  x = tf.ones((8 * _STEPS, dense_step.UNITS))

  def compile_model() -> None:
    model.compile('adam', 'mse', jit_compile=False)

  def run(steps: int, anew: bool) -> None:
    if anew:
      compile_model()
    model.fit(x, x, batch_size=8, steps_per_epoch=steps, verbose=0)

  compile_model()
  return run


_PROGRAMS: dict[str, Callable[[],
                              _Program]] = {'function': _function, 'fit': _fit}


def _seconds(job: Callable[[], object]) -> float:
  """Returns processor seconds of a job, over all threads."""
  start = time.process_time()
  job()
  return time.process_time() - start


def _rss_mb() -> float:
  """Returns the memory of this process after a garbage collection."""
  gc.collect()
  with open('/proc/self/statm', encoding='ascii') as file:
    pages = int(file.read().split()[1])
  return pages * os.sysconf('SC_PAGE_SIZE') / 1e6


def _rows(program: str, retraces: int, runs: int) -> list[_Row]:
  """Returns the rows of off, of on, and of their ratio."""
  options = ('off', 'on')
  found: dict[str, list[dict[str, float]]] = {option: [] for option in options}
  for _ in range(runs):
    for option in options:
      found[option].append(
          calls.call(f'{__package__}.retraces:measure', program, option,
                     retraces, timeout_s=_TIMEOUT_S,
                     environment={environment.DISABLE: '0'}))
  medians = {
      option: {
          figure: statistics.median(run[figure] for run in runs_of)
          for figure in _FIGURES
      } for option, runs_of in found.items()
  }
  medians['on / off'] = {
      figure: medians['on'][figure] / medians['off'][figure]
      for figure in _FIGURES
  }
  return [{'program': program, 'option': option, **figures}
          for option, figures in medians.items()]


def _table(retraces: int, runs: int) -> tables.Table:
  plugin.require()
  of_programs = progress.of_each('tracing', _PROGRAMS,
                                 lambda program: _rows(program, retraces, runs))
  rows = [row for of_program in of_programs for row in of_program]
  return tables.Table(
      'graphs that are left alone, measured', ('program', 'option', *_FIGURES),
      [[
          row['program'], row['option'], *(f'{row[figure]:.4g}'
                                           for figure in _FIGURES)
      ] for row in rows], rows)


main = tables.program('retraces', __doc__, _TITLE,
                      lambda given: _table(given.retraces, given.runs),
                      tables.option('--retraces', type=int, default=300),
                      tables.option('--runs', type=int, default=3))

if __name__ == '__main__':
  sys.exit(main())

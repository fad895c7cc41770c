"""Events for TensorBoard: statistics of iterations, and placements."""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
from typing import Any, Protocol

import numpy as np
import tensorflow as tf

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.reports import tensorboard
from gdp_grappler.reports import units
from placer_model import run_folder
from placer_model.training import task as task_lib

_REMEDY = (f'Free some space and run {run_folder.SAME_COMMAND} to go on from '
           'the last checkpoint.')


class _Trainer(Protocol):

  @property
  def state(self) -> Any:
    ...

  def best_placement(self) -> placement_lib.Placement:
    ...


class Summaries:
  """Writes the events of one graph into one directory.

  At its opening and closing, it writes the best placement found by then: the
  graph with its devices, and the simulated timeline. All methods raise a
  GdpError if they cannot write.
  """

  def __init__(self, directory: pathlib.Path, task: task_lib.Task,
               trainer: _Trainer) -> None:
    """Opens the event file.

    Args:
      directory: Directory that TensorBoard reads.
      task: The graph and its cluster.
      trainer: Trainer of the graph.
    """
    self._directory, self._task, self._trainer = directory, task, trainer
    with self._plain_errors():
      self._writer = tf.summary.create_file_writer(str(directory),
                                                   flush_millis=5000)
    self._show_best()

  def write(self, report: Any) -> None:
    """Writes the finite numbers of a report, and its decisions.

    Args:
      report: A dataclass of numbers, one of them `iteration`. Each number is
        written under the name of its field. A tuple [D] says how often each
        device was chosen.
    """
    with self._plain_errors(), self._writer.as_default(step=report.iteration):
      for field in dataclasses.fields(report):
        value = getattr(report, field.name)
        if isinstance(value, tuple):
          tensorboard.decisions(field.name, np.array(value))
        elif np.isfinite(value) and field.name != 'iteration':
          tf.summary.scalar(field.name, value)

  def close(self) -> None:
    """Writes all pending events."""
    with self._plain_errors():
      self._writer.close()
    self._show_best()

  def _show_best(self) -> None:
    state, task = self._trainer.state, self._task
    if state.best_decisions is None:
      return
    placement = self._trainer.best_placement()
    schedule = task.simulator.schedule(task.graph, placement)
    tensorboard.write(self._directory, task.graph, placement, schedule, [
        f'{task.graph.name} on {task.cluster.name}, the best placement '
        f'after iteration {state.iteration}: '
        f'{units.ms(schedule.step_time_s)} (simulated)'
    ], state.iteration)

  def _plain_errors(self) -> contextlib.AbstractContextManager[None]:
    return tensorboard.plain_errors(self._directory, _REMEDY)

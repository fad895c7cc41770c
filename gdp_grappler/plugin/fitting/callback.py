"""`gdp_grappler.PlacementCallback`: devices and step times by epoch."""

from __future__ import annotations

import dataclasses
import math
import os
import time
from typing import Any, Mapping

from gdp_grappler.plugin import notices
from gdp_grappler.plugin.fitting import ways
from gdp_grappler.reports import units


@dataclasses.dataclass(frozen=True)
class EpochReport:
  """Figures of an epoch of a fit.

  Attributes:
    epoch: Number of the epoch, from 0.
    placed_ops: Numbers of ops of the train step by device, such as 120 for
      'GPU:0'. Empty if the step runs as TensorFlow placed it.
    moved_variables: Number of variables that are not on the device on which
      they were made.
    predicted_s: Simulated seconds of a step with these devices; None without a
      plan.
    measured_s: Mean seconds of a step in the epoch, without the first call.
  """

  epoch: int
  placed_ops: Mapping[str, int]
  moved_variables: int
  predicted_s: float | None
  measured_s: float | None


class PlacementCallback:
  """Prints the devices and the time of a step after each epoch.

  The callback works with Keras 3 and tf_keras, so it is derived from neither.

    model.fit(x, y, callbacks=[gdp_grappler.PlacementCallback('logs')])
  """

  # For tf_keras: the callback needs no values of tensors.
  _supports_tf_logs = True

  def __init__(self, log_dir: str | os.PathLike[str] | None = None,
               verbose: bool = True) -> None:
    """Creates the callback.

    Args:
      log_dir: Folder of figures that TensorBoard reads; None writes no figures.
      verbose: Whether to print a line per epoch.
    """
    self.epochs: list[EpochReport] = []
    self._log_dir = None if log_dir is None else os.fspath(log_dir)
    self._verbose = verbose
    self._writer: Any = None
    self._model: Any = None
    self._clock = _StepClock()

  def __getattr__(self, name: str) -> Any:
    if name.startswith('on_'):
      return _ignore
    raise AttributeError(name)

  def set_model(self, model: Any) -> None:
    """See `keras.callbacks.Callback`: keeps the model."""
    self._model = model

  def set_params(self, params: Any) -> None:
    """See `keras.callbacks.Callback`."""

  def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
    """See `keras.callbacks.Callback`: restarts the clock."""
    del epoch, logs
    self._clock = _StepClock()

  def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
    """See `keras.callbacks.Callback`: `batch` is the last one of a call."""
    del logs
    self._clock.tick(batch)

  def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
    """See `keras.callbacks.Callback`: reports the epoch."""
    del logs
    made = getattr(self._model.train_function, 'report', None)
    known = made() if made else None
    report = EpochReport(epoch, {}, 0, None, self._clock.step_s)
    if known is not None:
      report = dataclasses.replace(report, placed_ops=known.placed_ops,
                                   moved_variables=known.moved_variables,
                                   predicted_s=_predicted_s(known))
    self.epochs.append(report)
    if self._verbose:
      notices.say(_line(report))
    if self._log_dir is not None:
      self._write(report)

  def on_train_end(self, logs: Any = None) -> None:
    """See `keras.callbacks.Callback`: closes the file of figures."""
    del logs
    if self._writer is not None:
      self._writer.close()
      self._writer = None

  def _write(self, report: EpochReport) -> None:
    import tensorflow as tf
    if self._writer is None:
      self._writer = tf.summary.create_file_writer(self._log_dir)
    with self._writer.as_default():
      for name, value in _scalars(report).items():
        # `tf.summary.scalar` needs TensorBoard. A machine that trains may not
        # have it.
        tf.summary.write(f'placement/{name}', tf.constant(value, tf.float32),
                         report.epoch, _metadata())

  # tf_keras reads these attributes before it calls the methods.

  def _implements_train_batch_hooks(self) -> bool:
    return True

  def _implements_test_batch_hooks(self) -> bool:
    return False

  def _implements_predict_batch_hooks(self) -> bool:
    return False


class _StepClock:
  """Measures the mean time from the end of a step to the end of the next."""

  def __init__(self) -> None:
    self._first: tuple[int, float] | None = None
    self._last: tuple[int, float] | None = None

  def tick(self, batch: int) -> None:
    self._last = batch, time.perf_counter()
    self._first = self._first or self._last

  @property
  def step_s(self) -> float | None:
    if not self._first or not self._last or self._first == self._last:
      return None
    steps = self._last[0] - self._first[0]
    return (self._last[1] - self._first[1]) / steps


def _predicted_s(known: Any) -> float | None:
  """The prediction of a step as it runs; None if there is none.

  Args:
    known: A `course.FitReport`.
  """
  if known.placed_ops:
    return known.predicted_s
  # Steps with XLA, and steps that exceed a memory, have no prediction.
  before_s = known.predicted_before_s
  is_known = known.way == ways.FitWay.AS_IT_WAS.value and before_s is not None
  return before_s if is_known and math.isfinite(before_s) else None


def _line(report: EpochReport) -> str:
  devices = ', '.join(f'{d} {n}' for d, n in report.placed_ops.items())
  placed = (f'{devices} ops, {report.moved_variables} variables moved'
            if devices else 'as TensorFlow placed it')
  return (f'epoch {report.epoch + 1}: step {placed}; predicted '
          f'{_ms(report.predicted_s)}, measured {_ms(report.measured_s)}')


def _ms(seconds: float | None) -> str:
  return '-' if seconds is None else units.ms(seconds, 3)


def _scalars(report: EpochReport) -> dict[str, float]:
  values = {
      'placed_ops': sum(report.placed_ops.values()),
      'moved_variables': report.moved_variables,
      'predicted_step_ms': report.predicted_s and report.predicted_s * 1e3,
      'measured_step_ms': report.measured_s and report.measured_s * 1e3
  }
  return {name: value for name, value in values.items() if value is not None}


def _metadata() -> Any:
  """Says that a value is for TensorBoard's plugin of scalars."""
  from tensorflow.core.framework import summary_pb2
  result = summary_pb2.SummaryMetadata(data_class=summary_pb2.DATA_CLASS_SCALAR)
  result.plugin_data.plugin_name = 'scalars'
  return result


def _ignore(*unused_args: Any, **unused_kwargs: Any) -> None:
  """Does nothing, for the rest of the interface of callbacks."""

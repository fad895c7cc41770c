"""Reports of iterations as TensorBoard scalars."""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
from typing import Iterator

import numpy as np
import tensorflow as tf

from gdp_grappler import errors
from placer_model.training import trainer as trainer_lib


class Summaries:
  """Events under one directory.

  All methods raise a GdpError if they cannot write.
  """

  def __init__(self, directory: pathlib.Path) -> None:
    self._directory = directory
    with self._plain_errors():
      self._writer = tf.summary.create_file_writer(str(directory),
                                                   flush_millis=5000)

  def write(self, report: trainer_lib.Report) -> None:
    """Every finite number of a report, under the name of its field."""
    with self._plain_errors(), self._writer.as_default(step=report.iteration):
      for field in dataclasses.fields(report):
        value = getattr(report, field.name)
        if field.name != 'iteration' and np.isfinite(value):
          tf.summary.scalar(field.name, value)

  def close(self) -> None:
    """Writes what is left."""
    with self._plain_errors():
      self._writer.close()

  @contextlib.contextmanager
  def _plain_errors(self) -> Iterator[None]:
    try:
      yield
    except tf.errors.OpError as error:
      reason = error.message.strip().splitlines()[0].rsplit('; ', 1)[-1]
      raise errors.GdpError(
          f'Cannot write TensorBoard events to {self._directory}: {reason}. '
          'Free some space and run the same command to go on from the last '
          'checkpoint.') from error

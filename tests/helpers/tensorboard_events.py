"""Reads events that were written for TensorBoard."""

from __future__ import annotations

import pathlib
from typing import Iterator

import numpy as np
import tensorflow as tf


def _events(folder: pathlib.Path) -> Iterator[tf.compat.v1.Event]:
  for path in sorted(folder.glob('events.*')):
    for record in tf.data.TFRecordDataset(str(path)):
      yield tf.compat.v1.Event.FromString(record.numpy())


def values(folder: pathlib.Path) -> dict[str, tuple[int, np.ndarray]]:
  """Returns the last step and the value of each tag."""
  return {
      value.tag: (event.step, tf.make_ndarray(value.tensor))
      for event in _events(folder) for value in event.summary.value
  }


def plugins(folder: pathlib.Path) -> dict[str, str]:
  """Returns the plugin of each tag."""
  return {
      value.tag: value.metadata.plugin_data.plugin_name
      for event in _events(folder) for value in event.summary.value
  }


def graphs(folder: pathlib.Path) -> list[tf.compat.v1.GraphDef]:
  """Returns all graphs."""
  return [
      tf.compat.v1.GraphDef.FromString(event.graph_def)
      for event in _events(folder) if event.graph_def
  ]

"""The model names that the hardware of this machine reports."""

from __future__ import annotations

import pathlib
import platform
import re

from gdp_grappler import errors
from gdp_grappler.cluster import cluster as cluster_lib


def model(device: str) -> str:
  """Model name of a device of this machine, given by its full name.

  Raises:
    MeasurementError: there is no such GPU.
  """
  if cluster_lib.device_type(device) == 'GPU':
    import tensorflow as tf
    cards = tf.config.list_physical_devices('GPU')
    number = int(device.rsplit(':', 1)[1])
    if number >= len(cards):
      raise errors.MeasurementError(
          f'This machine has no {device}. Profile on one that has it.')
    return tf.config.experimental.get_device_details(cards[number]).get(
        'device_name', 'GPU')
  return cpu_model()


def cpu_model() -> str:
  """Model name of the processor."""
  try:
    text = pathlib.Path('/proc/cpuinfo').read_text(encoding='utf-8')
  except OSError:  # Not Linux.
    return platform.processor() or platform.machine()
  match = re.search(r'^model name\s*:\s*(.+)$', text, re.MULTILINE)
  return match[1].strip() if match else platform.machine()

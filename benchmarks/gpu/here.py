"""Common parts of the processes of `benchmarks.gpu`."""

from __future__ import annotations

import importlib
import json
import logging
import os
import pathlib
import subprocess
import sys
import time
from typing import Any, Callable, Sequence

from gdp_grappler import errors

CPU = 'CPU'
_PART_MEGABYTES = 12_000  # Largest memory of a logical GPU.

_PROBE = ('import tensorflow as tf; '
          'print("gdp_gpus", len(tf.config.list_physical_devices("GPU")))')


def has_card() -> bool:
  """Whether there is a GPU. A child looks, so this process takes no card."""
  done = subprocess.run([sys.executable, '-c', _PROBE], capture_output=True,
                        text=True, check=False)
  return any(
      line.startswith('gdp_gpus') and line.split()[1] != '0'
      for line in done.stdout.splitlines())


def make_devices(tf: Any, device: str, count: int) -> None:
  """Cuts the first card, or in a dry run the CPU, into logical devices.

  Args:
    tf: TensorFlow, which has made no devices yet.
    device: 'GPU' or 'CPU'.
    count: Number of logical devices. The CPU gets one more, which stands for
      the host.
  """
  from benchmarks import plugin
  cards = tf.config.list_physical_devices(device)
  if device == CPU:
    plugin.cut_cpu(count + 1)
  elif count > 1:
    limit = tf.config.LogicalDeviceConfiguration(
        memory_limit=_part_megabytes(count))
    tf.config.set_logical_device_configuration(cards[0], [limit] * count)
  else:
    for card in cards:
      tf.config.experimental.set_memory_growth(card, True)


def _part_megabytes(count: int) -> int:
  """Megabytes of each logical GPU. Leaves memory for other processes."""
  from gdp_grappler.cluster import nvml
  cards = nvml.installed().cards()
  known = cards[0].memory_bytes if cards else None
  return min(_PART_MEGABYTES, int(.8 * (known or 16 << 30) / count) >> 20)


def model(name: str) -> Any:
  """Makes the compiled model of 'module:function', without XLA."""
  module, _, function = name.partition(':')
  result = getattr(importlib.import_module(module), function)()
  result.jit_compile = False
  return result


def short(name: str) -> str:
  """'cnn' of 'benchmarks.keras_models:cnn'."""
  return name.rpartition(':')[2]


class Lines(logging.Handler):
  """Collects the lines that the package prints from now on."""

  def __init__(self) -> None:
    super().__init__()
    self.lines: list[str] = []
    logger = logging.getLogger('gdp_grappler')
    logger.addHandler(self)
    logger.setLevel(logging.INFO)
    logger.propagate = False

  def emit(self, record: logging.LogRecord) -> None:
    """Keeps the line."""
    self.lines.append(record.getMessage())


def go_through(names: Sequence[str], path: pathlib.Path, until: float,
               measure: Callable[[str], dict[str, Any]]) -> None:
  """Measures the models that a file lacks, and adds each result to the file.

  Args:
    names: Names of models.
    path: JSON file with results by the short name of the model.
    until: Time by `time.monotonic`. No model is begun after it.
    measure: Measures one model.
  """
  import keras
  known = json.loads(path.read_text()) if path.exists() else {}
  for name in names:
    if short(name) in known:
      continue
    if time.monotonic() > until:
      break
    try:
      known[short(name)] = measure(name)
    except Exception as error:  # A model that fails has a line in the table.
      known[short(name)] = {'error': errors.described(error, 300)}
    write(path, known)
    print(short(name), known[short(name)], flush=True)
    keras.backend.clear_session()
  write(path, known)


def read(path: pathlib.Path) -> dict[str, Any]:
  """Returns the object in a JSON file; {} without a usable file."""
  try:
    return dict(json.loads(path.read_text()))
  except (FileNotFoundError, ValueError):
    return {}


def write(path: pathlib.Path, known: dict[str, Any]) -> None:
  """Writes a JSON file. After an error no partial file remains."""
  temporary = path.with_suffix('.new')
  temporary.write_text(json.dumps(known, indent=1) + '\n')
  os.replace(temporary, path)

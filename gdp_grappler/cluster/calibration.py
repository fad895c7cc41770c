"""The calibration of one card with one driver and one TensorFlow version.

A calibration file is one JSON object:

* `format`: 'gdp_calibration', `version`: 1.
* `card`, `driver`, `tensorflow`: card and versions; `device_type`: 'GPU' or
  'CPU'.
* `figures`: measured seconds or bytes per second, by a name of `FIGURES`.
* `kernels`: objects with the fields of `Kernel`.
* `done`: names of measured steps; `left_out`: lines about steps and kernels
  that were not measured, with the reason.
* `digest`: digest of all other fields. Remove it if you change a figure by
  hand.

The cache folder of a user (`cache`) has a calibration for each card, driver and
TensorFlow. The cluster `local` finds it there.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
import pathlib
import re
from typing import Any, Callable, Mapping

import numpy as np

from gdp_grappler import cache
from gdp_grappler import digests
from gdp_grappler import errors
from gdp_grappler import files
from gdp_grappler import sealed_files

_FORMAT = sealed_files.Format('gdp_calibration', 1, 'calibration',
                              'gdp calibrate --output=FILE', 16 << 20)
_TYPES = ('CPU', 'GPU')
# End of a line of `left_out` if time ran out.
NO_TIME = 'no time left'
UNNAMED = 'GPU'  # The name of a card that has none.
_MOST_KERNELS = 100_000  # Largest number of kernels in a file.
LARGEST = 1e18  # Larger figures are errors.

# Names of figures, and their descriptions for tables. Figures are seconds,
# unless the name says bytes per second or devices.
FIGURES = {
    'empty_step_s': 'a step that does nothing',
    'launching_op_s': 'from one op that launches a kernel to the next',
    'cudnn_op_s': 'from one op that asks cuDNN to the next',
    'other_op_s': 'from one op that launches no kernel to the next',
    'small_kernel_s': 'from one of the smallest kernels to the next, as the '
                      'stream runs them',
    'gap_s': 'between two kernels of one stream',
    'side_by_side_op_s': 'from one launching op to the next, of all logical '
                         'devices of the card together',
    'side_by_side_devices': 'number of logical devices in that measurement',
    'hop_s': 'from one logical device of the card to another, nothing else '
             'running',
    'busy_hop_s': 'the same after running kernels, without their time',
    'card_hop_s': 'from one card to another, nothing else running',
    'busy_card_hop_s': 'the same after running kernels, without their time',
    'host_hop_s': 'from the CPU to the device, or back, nothing else running',
    'busy_host_hop_s': 'the same after running kernels, without their time',
    'copy_issue_s': 'from one copy that a thread issues to the next',
    'to_device_bytes_per_s': 'from the CPU',
    'from_device_bytes_per_s': 'to the CPU',
    'between_devices_bytes_per_s': 'within the card',
    'between_cards_bytes_per_s': 'from one card to another',
}


@dataclasses.dataclass(frozen=True)
class Kernel:
  """The measured time of one execution of an op on the device.

  Attributes:
    op_type: Type of the op.
    flops: FLOPs of the op, see `OpGraph.flops`.
    io_bytes: Bytes read and written, see `OpGraph.io_bytes`.
    seconds: Seconds from the start of the op to the start of the next op on
      the stream, with the gap between them.
  """

  op_type: str
  flops: float
  io_bytes: float
  seconds: float


@dataclasses.dataclass(frozen=True)
class Calibration:
  """The results of a calibration.

  Attributes:
    card: Name that the card reports, such as 'NVIDIA H100 80GB HBM3'.
    driver: Version of the driver; '' if unknown.
    tensorflow: Version of TensorFlow.
    device_type: 'GPU'; 'CPU' if a CPU was calibrated in place of a card.
    figures: Pairs of a name of `FIGURES` and its value, sorted by name.
    kernels: Kernels in the order in which they were measured.
    done: Names of measured steps.
    left_out: Lines about steps and kernels that were not measured, with the
      reason.
    digest: Digest of all other fields.
  """

  card: str
  driver: str
  tensorflow: str
  device_type: str = 'GPU'
  figures: tuple[tuple[str, float], ...] = ()
  kernels: tuple[Kernel, ...] = dataclasses.field(default=(), repr=False)
  done: tuple[str, ...] = dataclasses.field(default=(), repr=False)
  left_out: tuple[str, ...] = dataclasses.field(default=(), repr=False)
  # `repr` shows the digest in place of thousands of figures.
  digest: str = dataclasses.field(init=False, compare=False)

  def __post_init__(self) -> None:
    figures = tuple(sorted(dict(self.figures).items()))
    object.__setattr__(self, 'figures', figures)
    object.__setattr__(self, 'digest', digests.of(self.fields()))

  def figure(self, name: str) -> float | None:
    """Returns one of `FIGURES`; None if it was not measured."""
    return dict(self.figures).get(name)

  @property
  def left_out_for_time(self) -> tuple[str, ...]:
    """Lines about steps for which no time was left."""
    return tuple(why for why in self.left_out if why.endswith(NO_TIME))

  def fields(self) -> dict[str, Any]:
    """The fields as JSON values."""
    return {
        **_FORMAT.head(), 'card': self.card, 'driver': self.driver,
        'tensorflow': self.tensorflow, 'device_type': self.device_type,
        'figures': dict(self.figures),
        'kernels': [dataclasses.asdict(kernel) for kernel in self.kernels],
        'done': list(self.done), 'left_out': list(self.left_out)
    }

  def to_text(self) -> str:
    """The text of the file, which `parse` reads."""
    return _FORMAT.to_text(self.fields())

  def save(self, path: str | os.PathLike[str]) -> None:
    """Writes the file that `load` reads.

    Raises:
      GdpError: the file cannot be written.
    """
    files.write_atomically(path, self.to_text())

  @functools.cached_property
  def columns(self) -> Mapping[str, np.ndarray]:
    """float64 [P, 3] by op type: FLOPs, bytes and seconds of its kernels."""
    rows: dict[str, list[tuple[float, float, float]]] = {}
    for kernel in self.kernels:
      rows.setdefault(kernel.op_type, []).append(
          (kernel.flops, kernel.io_bytes, kernel.seconds))
    return {op_type: np.array(found) for op_type, found in rows.items()}


def load(path: str | os.PathLike[str]) -> Calibration:
  """Reads a calibration.

  Raises:
    GdpError: the file is missing, damaged or no calibration.
  """
  return parse(_FORMAT.read(path), path)


def parse(data: bytes, path: str | os.PathLike[str]) -> Calibration:
  """Reads the text that `Calibration.to_text` returned.

  Args:
    data: The text.
    path: Path of the file, for messages.

  Raises:
    GdpError: the text is damaged or no calibration.
  """
  return _FORMAT.parsed(data, path, _parsed)


def from_fields(content: Any, path: str | os.PathLike[str]) -> Calibration:
  """Reads the parsed JSON object; otherwise like `parse`.

  Raises:
    GdpError: the object is damaged or no calibration.
  """
  return _FORMAT.built(content, path, _parsed)


def cached(card: str, driver: str, tensorflow: str, tell: Callable[[str], None],
           folder: str | os.PathLike[str] | None = None) -> Calibration | None:
  """The cached calibration of a card; None if there is none.

  Args:
    card: Name that the card reports.
    driver: Version of the driver.
    tensorflow: Version of TensorFlow.
    tell: Function that gets a line for the user if a file cannot be used.
    folder: Folder of the cache; by default `environment.cache_folder()`.
  """
  path = _path(card, driver, tensorflow, folder)
  data = cache.kept(path, tell)
  if data is None:
    return None
  try:
    result = parse(data, path)
  except errors.GdpError as error:
    tell(str(error))
    return None
  same = (result.card, result.driver, result.tensorflow) == (card, driver,
                                                             tensorflow)
  return result if same else None


def keep(calibration: Calibration, tell: Callable[[str], None],
         folder: str | os.PathLike[str] | None = None) -> pathlib.Path:
  """Writes a calibration into the cache, and returns the path of its file.

  Args:
    calibration: The calibration.
    tell: Function that gets a line for the user if this fails.
    folder: Folder of the cache, see `cached`.
  """
  path = _path(calibration.card, calibration.driver, calibration.tensorflow,
               folder)
  cache.keep(path, calibration.to_text(), tell)
  return path


def _path(card: str, driver: str, tensorflow: str,
          folder: str | os.PathLike[str] | None) -> pathlib.Path:
  """Path of a calibration, unique by a digest and readable by the card."""
  key = hashlib.sha256(repr((card, driver, tensorflow)).encode()).hexdigest()
  name = re.sub(r'\W+', '_', card).strip('_').lower()[:40]
  return cache.path('calibrations', f'{name}-{key[:16]}.json', folder=folder)


def _parsed(content: Mapping[str, Any]) -> Calibration:
  if content['device_type'] not in _TYPES:
    raise ValueError(f'device_type is {errors.shown(content["device_type"])}')
  figures = content['figures']
  if not isinstance(figures, dict):
    raise ValueError('figures is no object')
  unknown = sorted(set(figures) - set(FIGURES))
  if unknown:
    raise ValueError(f'figures has the unknown "{unknown[0]}"')
  kernels = content['kernels']
  if not isinstance(kernels, list) or len(kernels) > _MOST_KERNELS:
    raise ValueError('kernels is no list of a size that makes sense')
  return Calibration(sealed_files.text(content, 'card'),
                     sealed_files.text(content, 'driver'),
                     sealed_files.text(content, 'tensorflow'),
                     content['device_type'],
                     tuple((name, _figure(figures, name)) for name in figures),
                     tuple(map(_parsed_kernel, kernels)),
                     sealed_files.texts(content, 'done'),
                     sealed_files.texts(content, 'left_out'))


def _parsed_kernel(content: Any) -> Kernel:
  if not isinstance(content, dict):
    raise ValueError('kernels has an entry that is no object')
  seconds = _figure(content, 'seconds')
  if not seconds:
    raise ValueError('seconds of a kernel is 0')
  return Kernel(sealed_files.text(content,
                                  'op_type'), _figure(content, 'flops'),
                _figure(content, 'io_bytes'), seconds)


def _figure(content: Mapping[str, Any], field: str) -> float:
  value = content[field]
  if isinstance(value, bool) or not isinstance(value, (int, float)):
    raise ValueError(f'{field} is no number')
  if not 0 <= value <= LARGEST:
    raise ValueError(f'{field} is out of range')
  return float(value)

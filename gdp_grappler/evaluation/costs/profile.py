"""Measured seconds of the ops of a graph, and the file that keeps them.

A profile file is one JSON object:

* `format`: 'gdp_profile', `version`: 2.
* `graph`, `fingerprint`, `tensorflow`, `batch_size`: the graph that ran, the
  version of TensorFlow, and the batch size.
* `op_names`, `op_types`, `flops`, `io_bytes`: [N], the graph's ops as
  `OpGraph` has them. Costs of ops are matched and interpolated by these fields.
* `devices`: one object for each device that was measured, with the fields of
  `DeviceProfile`.
* `digest`: digest of all other fields. Remove it if you change a figure by
  hand.

Times are in seconds, sizes in bytes.
"""

from __future__ import annotations

import dataclasses
import os
from typing import Any, Mapping

import numpy as np

from gdp_grappler import files
from gdp_grappler import sealed_files

_FORMAT = sealed_files.Format('gdp_profile', 2, 'profile',
                              'gdp profile GRAPH --output=FILE')
_LARGEST_S = 1e6  # Larger numbers of seconds are errors.


@dataclasses.dataclass(frozen=True, eq=False)
class DeviceProfile:
  """Steps of a graph with all its ops on one device, one op after the other.

  `seconds.sum() + visits.sum() * visit_s + empty_step_s == step_s`, up to
  rounding: the untraced step gives the sum, and tracing gives the share of each
  op. On a GPU this equation does not hold: `seconds` are the seconds of
  kernels without the gaps between them, the host launches further kernels at
  the same time, and `visit_s` is 0.

  Attributes:
    name: Full name of the device.
    type: 'CPU' or 'GPU'.
    model: Model name that the hardware reports.
    cores: CPU cores that the process was pinned to; () if it was not pinned.
    pool: Number of threads that ran ops in parallel in the untraced step. In
      the traced steps each op ran alone.
    steps: Number of traced steps of which medians are taken.
    step_s: Median of the untraced step. On one core, only steps count that no
      other program interrupted. If these are too few, CPU time counts.
    empty_step_s: Median of a step without ops; part of `step_s`.
    disturbed: Share of the time in which other programs ran on the same core.
      `step_s` does not contain this time, but other programs also evict data
      from caches.
    scale: Factor that was applied to the traced seconds of ops, because tracing
      slows ops down; 1 if it did not.
    visit_s: The executor's seconds for an op besides its kernel.
    seconds: float64 [N], scaled seconds of all executions of an op in one step;
      0 for ops that tracing did not record.
    executions: float64 [N], executions of an op in one step.
    workspace_bytes: int64 [N], largest temporary memory of an execution.
    bus: Name of the memory bus; '' if it was not measured. Devices of one bus
      slow each other down.
    contention: Relative slowdown of the step while one other device of the
      bus runs the same step.
    untimed: Indices of ops that could not be timed. Their seconds are 0 and
      have no meaning.
  """

  name: str
  type: str
  model: str
  cores: tuple[int, ...]
  pool: int
  steps: int
  step_s: float
  empty_step_s: float
  disturbed: float
  scale: float
  visit_s: float
  seconds: np.ndarray
  executions: np.ndarray
  workspace_bytes: np.ndarray
  bus: str = ''
  contention: float = 0.
  untimed: tuple[int, ...] = ()

  @property
  def timed(self) -> np.ndarray:
    """bool [N], whether the seconds of an op are known."""
    result = np.ones(len(self.seconds), bool)
    result[list(self.untimed)] = False
    return result

  @property
  def visits(self) -> np.ndarray:
    """float64 [N], how often the executor visits an op in one step."""
    return np.maximum(self.executions, 1.)


@dataclasses.dataclass(frozen=True, eq=False)
class Profile:
  """Profiles of one graph on some devices.

  Attributes:
    graph: Name of the graph for users.
    fingerprint: `OpGraph.fingerprint` of the graph.
    tensorflow: Version of TensorFlow that ran the steps.
    batch_size: Size of dimensions that the graph leaves open.
    op_names: [N]
    op_types: [N]
    flops: float64 [N]
    io_bytes: float64 [N]
    devices: Profiles of one or more devices.
  """

  graph: str
  fingerprint: str
  tensorflow: str
  batch_size: int
  op_names: tuple[str, ...]
  op_types: tuple[str, ...]
  flops: np.ndarray
  io_bytes: np.ndarray
  devices: tuple[DeviceProfile, ...]

  def of(self, name: str, kind: str) -> DeviceProfile | None:
    """The profile of a device, or else the first one of its type.

    Args:
      name: Full name of the device.
      kind: 'CPU' or 'GPU'.
    """
    same_type = [d for d in self.devices if d.type == kind]
    named = [d for d in same_type if d.name == name]
    return next(iter(named or same_type), None)

  def save(self, path: str | os.PathLike[str]) -> None:
    """Writes the file that `load` reads.

    Raises:
      GdpError: the file cannot be written.
    """
    files.write_atomically(path, self.to_text())

  def to_text(self) -> str:
    """The text of the file, which `parse` reads."""
    return _FORMAT.to_text({**_FORMAT.head(), **_plain(self)})


def load(path: str | os.PathLike[str]) -> Profile:
  """Reads a profile.

  Raises:
    GdpError: the file is missing, damaged or no profile.
  """
  return parse(_FORMAT.read(path), path)


def parse(data: bytes, path: str | os.PathLike[str]) -> Profile:
  """Reads the text that `Profile.to_text` returned.

  Args:
    data: The text.
    path: Path of the file, for messages.

  Raises:
    GdpError: the text is damaged or no profile.
  """
  return _FORMAT.parsed(data, path, _parsed)


def _plain(item: Profile | DeviceProfile) -> dict[str, Any]:
  """The fields of a dataclass as JSON values."""
  result = {}
  for field in dataclasses.fields(item):
    value = getattr(item, field.name)
    if isinstance(value, np.ndarray):
      value = value.tolist()
    elif field.name == 'devices':
      value = [_plain(device) for device in value]
    result[field.name] = value
  return result


def _parsed(content: Mapping[str, Any]) -> Profile:
  names = sealed_files.texts(content, 'op_names')
  n = len(names)
  if len(set(names)) < n:
    raise ValueError('op_names has a name twice')
  types = sealed_files.texts(content, 'op_types')
  if len(types) != n:
    raise ValueError(f'op_types has {len(types)} entries for {n} ops')
  devices = content['devices']
  if not isinstance(devices, list) or not devices:
    raise ValueError('devices is empty')
  return Profile(sealed_files.text(content, 'graph'),
                 sealed_files.text(content, 'fingerprint'),
                 sealed_files.text(content, 'tensorflow'),
                 _count(content, 'batch_size', 1), names, types,
                 _figures(content, 'flops', n, np.inf),
                 _figures(content, 'io_bytes', n, np.inf),
                 tuple(_parsed_device(device, n) for device in devices))


def _parsed_device(content: Mapping[str, Any], n: int) -> DeviceProfile:
  if not isinstance(content, dict):
    raise ValueError('devices has an entry that is no object')

  def seconds(field: str) -> float:
    return float(_figures({field: [content[field]]}, field, 1, _LARGEST_S)[0])

  cores = content['cores']
  if not isinstance(cores, list):
    raise ValueError('cores is no list')
  return DeviceProfile(
      sealed_files.text(content, 'name'), sealed_files.text(content, 'type'),
      sealed_files.text(content, 'model'),
      tuple(_count({'cores': c}, 'cores', 0) for c in cores),
      _count(content, 'pool', 1), _count(content, 'steps', 1),
      seconds('step_s'), seconds('empty_step_s'), seconds('disturbed'),
      seconds('scale'), seconds('visit_s'),
      _figures(content, 'seconds', n, _LARGEST_S),
      _figures(content, 'executions', n, 1e12),
      _figures(content, 'workspace_bytes', n, 2.**62).astype(np.int64),
      sealed_files.text(content, 'bus'), seconds('contention'),
      _untimed(content, n))


def _untimed(content: Mapping[str, Any], n: int) -> tuple[int, ...]:
  """Indices of ops; files of earlier releases do not have the field."""
  values = content.get('untimed', [])
  if not isinstance(values, list):
    raise ValueError('untimed is no list')
  result = tuple(_count({'untimed': v}, 'untimed', 0) for v in values)
  if any(number >= n for number in result):
    raise ValueError(f'untimed has a number of {n} or more')
  return result


def _count(content: Mapping[str, Any], field: str, least: int) -> int:
  value = content[field]
  if isinstance(value, bool) or not isinstance(value, int) or value < least:
    raise ValueError(f'{field} is {value!r}')
  return value


def _figures(content: Mapping[str, Any], field: str, n: int,
             largest: float) -> np.ndarray:
  """float64 [n] from 0 to `largest`, finite."""
  try:
    result = np.array(content[field], np.float64)
  except (TypeError, ValueError, OverflowError) as error:
    raise ValueError(f'{field} has a value that is no number') from error
  if result.shape != (n,):
    raise ValueError(f'{field} does not have {n} numbers')
  if not (np.isfinite(result) & (result >= 0) & (result <= largest)).all():
    raise ValueError(f'{field} has a number out of range')
  result.setflags(write=False)
  return result

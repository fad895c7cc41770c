"""Devices, the links between them, and named clusters."""

from __future__ import annotations

import dataclasses
import functools
import json
import pathlib
import re

import numpy as np

from gdp_grappler import errors

# Of any figure; larger ones are mistakes and overflow.
_LARGEST = 1e18
_TASK = '/job:localhost/replica:0/task:0'


@dataclasses.dataclass(frozen=True)
class Device:
  """One device as TensorFlow sees it.

  Attributes:
    name: Full name, '/job:localhost/replica:0/task:0/device:GPU:0'.
    type: 'CPU' or 'GPU'.
    memory_bytes: Capacity of its memory.
    peak_flops: Arithmetic operations per second at best.
    efficiency: Share of `peak_flops` that dense kernels really reach.
    bandwidth_bytes_per_s: Of its own memory.
    launch_s: Seconds the executor needs to start one op.
    compute: Devices with the same value take turns: they are cut from one
      physical device.
    memory: Devices with the same value share one memory.
    slots: How many ops it runs at a time: 1 for the compute stream of a GPU,
      the width of the thread pool for a host. The figures above are what each
      of them gets.
    copy_s: Seconds of its compute that it spends on each transfer or message it
      sends or receives; 0 where an engine of its own does that.
    copy_bytes_per_s: Rate at which its compute moves the bytes of transfers;
      None where copy engines do that beside compute.
  """

  name: str
  type: str
  memory_bytes: int
  peak_flops: float
  efficiency: float
  bandwidth_bytes_per_s: float
  launch_s: float
  compute: str
  memory: str
  slots: int = 1
  copy_s: float = 0.
  copy_bytes_per_s: float | None = None

  @property
  def short_name(self) -> str:
    """'GPU:0'."""
    return self.name.rsplit('device:', 1)[-1]


@dataclasses.dataclass(frozen=True)
class Link:
  """One direction between two devices.

  Attributes:
    source: Full name of the sending device.
    target: Full name of the receiving device.
    latency_s: Seconds before the first byte arrives.
    bandwidth_bytes_per_s: Of a transfer that has the link for itself.
    channels: Up to 8 wires, copy engines or network cards; a transfer occupies
      all of them, and each carries one transfer at a time.
  """

  source: str
  target: str
  latency_s: float
  bandwidth_bytes_per_s: float
  channels: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Cluster:
  """D devices, all linked with all. The first CPU is the host.

  Attributes:
    name: What users call it.
    devices: [D]
    links: One for each ordered pair of devices.
    step_s: Seconds a step takes that does nothing: the call of the session and
      its messages to the workers.

  Raises:
    ClusterError: no device, no CPU, a name twice, a missing link or a figure
      out of range.
  """

  name: str
  devices: tuple[Device, ...]
  links: tuple[Link, ...]
  step_s: float = 0.

  def __post_init__(self):
    object.__setattr__(self, 'devices', tuple(self.devices))
    object.__setattr__(self, 'links', tuple(self.links))
    for device in self.devices:
      self._check_texts(device, 'name', 'type', 'compute', 'memory')
    for link in self.links:
      self._check_texts(link, 'source', 'target', 'channels')
    names = [d.name for d in self.devices]
    if not any(d.type == 'CPU' for d in self.devices):
      raise self._error('it has no CPU device, and every TensorFlow process '
                        'has one', 'add one')
    for name in names:
      if names.count(name) > 1:
        raise self._error(f'device "{name}" is listed twice', 'remove one')
    for device in self.devices:
      self._check_positive(device, 'memory_bytes', 'peak_flops', 'efficiency',
                           'bandwidth_bytes_per_s')
      self._check_positive(device, 'launch_s', strictly=False)
    for link in self.links:
      self._check_positive(link, 'bandwidth_bytes_per_s')
      self._check_positive(link, 'latency_s', strictly=False)
      if not 1 <= len(link.channels) <= 2:
        raise self._error(f'the link {link.source} -> {link.target} has '
                          f'{len(link.channels)} channels', 'give 1 or 2')
    linked = {(l.source, l.target) for l in self.links}
    for source in names:
      for target in names:
        if source != target and (source, target) not in linked:
          raise self._error(f'the link {source} -> {target} is missing',
                            'add it')
    for source, target in linked:
      if source not in names or target not in names:
        raise self._error(f'the link {source} -> {target} names an unknown '
                          'device', 'list the device or drop the link')

  @property
  def num_devices(self) -> int:
    return len(self.devices)

  @functools.cached_property
  def device_names(self) -> tuple[str, ...]:
    """[D] full names."""
    return tuple(d.name for d in self.devices)

  @functools.cached_property
  def host(self) -> int:
    """Index of the device that feeds, fetches and handles strings."""
    return next(i for i, d in enumerate(self.devices) if d.type == 'CPU')

  @functools.cached_property
  def compute_units(self) -> np.ndarray:
    """int32 [D], devices with the same number take turns computing."""
    return _numbered([d.compute for d in self.devices])

  @functools.cached_property
  def memory_pools(self) -> np.ndarray:
    """int32 [D], devices with the same number share one memory."""
    return _numbered([d.memory for d in self.devices])

  @functools.cached_property
  def pool_bytes(self) -> np.ndarray:
    """int64 [P], capacity of each memory pool: that of its largest device."""
    result = np.zeros(self.memory_pools.max() + 1, np.int64)
    for pool, device in zip(self.memory_pools, self.devices):
      result[pool] = max(result[pool], device.memory_bytes)
    return result

  @functools.cached_property
  def link_arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Latencies [D, D] in s, bytes/s [D, D] and channels int32 [D, D, 2].

    The diagonal has no latency, infinite bandwidth and channel -1. A link
    with one channel has it twice.
    """
    d = self.num_devices
    latency, bandwidth = np.zeros((d, d)), np.full((d, d), np.inf)
    channels = np.full((d, d, 2), -1, np.int32)
    index = {name: i for i, name in enumerate(self.device_names)}
    wires = sorted({c for link in self.links for c in link.channels})
    for link in self.links:
      key = index[link.source], index[link.target]
      latency[key] = link.latency_s
      bandwidth[key] = link.bandwidth_bytes_per_s
      channels[key] = [wires.index(link.channels[0]),
                       wires.index(link.channels[-1])]
    return latency, bandwidth, channels

  def device_index(self, name: str) -> int:
    """Index of a device given as 'GPU:0', '/gpu:0' or in full.

    Raises:
      ClusterError: there is no such device.
    """
    wanted = canonical_device(name)
    for index, full in enumerate(self.device_names):
      if wanted == full or (not wanted.startswith('/job:')
                            and full.endswith(wanted)):
        return index
    raise errors.ClusterError(
        f'Device "{name}" is not in cluster "{self.name}". It has: '
        + ', '.join(d.short_name for d in self.devices) + '.')

  def to_json(self) -> str:
    """The cluster as text that `load_cluster` reads back."""
    return json.dumps(dataclasses.asdict(self), indent=2)

  def _error(self, why: str, remedy: str) -> errors.ClusterError:
    return errors.ClusterError(
        f'Cluster "{self.name}" is not usable: {why}; {remedy}.')

  def _check_positive(self, item, *fields, strictly=True):
    for field in fields:
      value = getattr(item, field)
      label = getattr(item, 'name', None) or f'{item.source} -> {item.target}'
      if (isinstance(value, bool) or not isinstance(value, (int, float))
          or not 0 <= value <= _LARGEST or (strictly and value == 0)):
        raise self._error(f'{label} has {field} = {value!r}',
                          f'give a positive number up to {_LARGEST:.0e}')

  def _check_texts(self, item, *fields):
    for field in fields:
      value = getattr(item, field)
      texts = value if isinstance(value, tuple) else (value,)
      if not all(isinstance(text, str) and text for text in texts):
        raise self._error(f'{type(item).__name__.lower()} has {field} = '
                          f'{value!r}', 'give a text')


def canonical_device(name: str) -> str:
  """'/job:localhost/replica:0/task:0/device:GPU:0' or '/device:GPU:0'.

  Accepts full names, partial names ('/device:GPU:0', '/gpu:0') and short ones
  ('GPU:0', 'gpu:0'). The name of another task keeps its task.

  Raises:
    ClusterError: the text is not a device name.
  """
  match = re.fullmatch(
      r'(/job:[^/]+/replica:\d+/task:\d+)?(?:/?device:|/)?'
      r'([A-Za-z]+):(\d+)', name)
  if not match:
    raise errors.ClusterError(
        f'"{name}" is not a device name. Write for example "GPU:0" or '
        f'"{_TASK}/device:GPU:0".')
  task, kind, number = match.groups()
  return f'{task or ""}/device:{kind.upper()}:{int(number)}'


def device_type(name: str) -> str:
  """'GPU' for '/job:localhost/replica:0/task:0/device:GPU:0'; '' for ''."""
  return name.rsplit('device:', 1)[-1].split(':')[0].lstrip('/').upper()


def local_name(kind: str, number: int) -> str:
  """Full name of a device of this process, from 'GPU', 0."""
  return f'{_TASK}/device:{kind}:{number}'


def from_json(text: str, origin: str) -> Cluster:
  """Reads what `Cluster.to_json` wrote.

  Args:
    text: JSON.
    origin: Where it came from, for the error message.

  Raises:
    ClusterError: not JSON, a missing or unknown field, or a wrong figure.
  """
  try:
    fields = json.loads(text)
    devices = tuple(Device(**d) for d in fields['devices'])
    links = tuple(Link(**{**l, 'channels': tuple(l['channels'])})
                  for l in fields['links'])
    return Cluster(str(fields['name']), devices, links)
  except errors.ClusterError as error:
    raise errors.ClusterError(f'{origin}: {error}') from error
  except (ValueError, TypeError, KeyError) as error:
    raise errors.ClusterError(
        f'{origin} is not a cluster file: {type(error).__name__}: {error}. '
        'It is JSON with "name", "devices" and "links"; '
        '`gdp cluster 2xP100` prints an example.') from error


def read_cluster_file(path: str) -> Cluster:
  """Reads a cluster file.

  Raises:
    ClusterError: the file is missing or wrong.
  """
  try:
    text = pathlib.Path(path).read_text()
  except OSError as error:
    raise errors.ClusterError(
        f'Cannot read cluster file {path}: {error.strerror}.') from error
  except UnicodeDecodeError as error:
    raise errors.ClusterError(
        f'{path} is not a cluster file: it is not text.') from error
  return from_json(text, path)


def _numbered(labels: list[str]) -> np.ndarray:
  order = list(dict.fromkeys(labels))
  return np.array([order.index(label) for label in labels], np.int32)

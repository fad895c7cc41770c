"""Devices, the links between them, and named clusters."""

from __future__ import annotations

import dataclasses
import functools
import json
import re
from typing import Sequence

import numpy as np

from gdp_grappler import errors
from gdp_grappler.cluster import calibration as calibration_lib
from gdp_grappler.cluster import validation

SYNCHRONOUS, ASYNCHRONOUS = validation.LAUNCHES
_UNBOUNDED_BYTES = np.iinfo(np.int64).max
_TASK = '/job:localhost/replica:0/task:0'
_HOSTED = re.compile(r'([A-Za-z]\w*)/(\d+)/([A-Za-z]+:\d+)')
_JOB_AND_TASK = re.compile(r'/job:([^/]+)/replica:0/task:(\d+)')


@dataclasses.dataclass(frozen=True)
class Device:
  """One device as TensorFlow sees it.

  Attributes:
    name: Full name, '/job:localhost/replica:0/task:0/device:GPU:0'.
    type: 'CPU' or 'GPU'.
    memory_bytes: Memory that TensorFlow can allocate. Devices that share a
      memory have the same number.
    peak_flops: Largest number of arithmetic operations per second.
    efficiency: Share of `peak_flops` that dense kernels really reach, up to 1.
    bandwidth_bytes_per_s: Bandwidth of the device's memory.
    launch_s: Seconds of an op beside its work: the start of an op on a CPU, the
      smallest kernel on a GPU.
    compute: Devices with the same value take turns, such as the logical CPUs of
      a process. Logical GPUs of one card have different values; see `card`.
    memory: Devices with the same value share one memory.
    slots: Number of ops that run in parallel: 1 for the compute stream of a
      GPU, 2 or more for most CPUs (`device_figures.SLOTS_PER_SOCKET`). Rates
      above are per slot.
    copy_s: Seconds of compute for each transfer or message that the device
      sends or receives; 0 if it has copy engines.
    copy_bytes_per_s: Rate at which its compute moves the bytes of transfers;
      None if copy engines do this in parallel to compute.
    launch: `SYNCHRONOUS`: an op is done when it has run, as on a CPU.
      `ASYNCHRONOUS`: the executor takes an op as done when it is on the
      device's compute stream, as on a GPU; see `simulator`. Such a device has
      one slot and copy engines.
    dispatch_s: Seconds of an executor's thread for an op with a kernel.
    visit_s: Seconds of an executor's thread for an op without a kernel.
    copy_dispatch_s: Seconds of a thread to issue a copy to another device.
    lock_s: Seconds of each launch in which the thread holds the lock of the
      driver's context, so that launches take turns; at most `dispatch_s`.
    gap_s: Seconds between two kernels of the compute stream.
    switch_s: Seconds that each other busy stream of its context adds to a gap.
    callback_s: Seconds from the end of a copy on one of its streams to the
      dispatch of the ops that wait for the copy, if TensorFlow's event manager
      finds the end at its first look.
    poll_s: Mean seconds added to `callback_s` if the manager has to look again.
    context: Devices with the same value share a context of the driver: they are
      logical devices of one card in one process. '' means that devices with the
      same `compute` share one.
    card: Asynchronous devices with the same value are logical devices of one
      card: each has a compute stream of its own, and kernels of different
      streams share the card's multiprocessors and bandwidth. '' means that the
      device has the whole card. `peak_flops` and `bandwidth_bytes_per_s` are
      those of the whole card.
    resident_threads: Number of threads that its multiprocessors hold. 0 if it
      is unknown; any kernel then fills the card.
    memory_margin: Share of `memory_bytes` that plans leave free, because the
      allocator loses memory to gaps between tensors.
    float16_rate: Rate of dense kernels of float16, as a multiple of
      `peak_flops`; None if unknown (see `type_rates`).
    bfloat16_rate: The same for bfloat16.
    float64_rate: The same for float64.
    winograd_rate: The same for float32 convolutions by Winograd's algorithm.
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
  launch: str = SYNCHRONOUS
  dispatch_s: float = 0.
  visit_s: float = 0.
  copy_dispatch_s: float = 0.
  lock_s: float = 0.
  gap_s: float = 0.
  switch_s: float = 0.
  callback_s: float = 0.
  poll_s: float = 0.
  context: str = ''
  card: str = ''
  resident_threads: int = 0
  memory_margin: float = 0.
  float16_rate: float | None = None
  bfloat16_rate: float | None = None
  float64_rate: float | None = None
  winograd_rate: float | None = None

  @property
  def asynchronous(self) -> bool:
    """Whether ops are put on a stream, which runs them later."""
    return self.launch == ASYNCHRONOUS

  @property
  def hop_s(self) -> float:
    """Seconds from the end of a copy to the dispatch of its consumers."""
    return self.callback_s + self.poll_s

  @property
  def short_name(self) -> str:
    """'GPU:0'."""
    return short_name(self.name)

  @property
  def named_type(self) -> str:
    """'GPU', as the name says."""
    return device_type(self.name)


@dataclasses.dataclass(frozen=True)
class Link:
  """One direction between two devices.

  Attributes:
    source: Full name of the sending device.
    target: Full name of the receiving device.
    latency_s: Seconds before the first byte arrives.
    bandwidth_bytes_per_s: Rate of a transfer that uses the link alone.
    channels: Up to 8 wires, copy engines or network cards. A transfer occupies
      all of them, and each of them carries one transfer at a time.
  """

  source: str
  target: str
  latency_s: float
  bandwidth_bytes_per_s: float
  channels: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Calibrated:
  """The calibration of some devices of a cluster.

  Attributes:
    devices: Full names of the devices.
    calibration: Calibration of a card of the same kind.
  """

  devices: tuple[str, ...]
  calibration: calibration_lib.Calibration


@dataclasses.dataclass(frozen=True)
class Cluster:
  """D devices with a link between each two. The first CPU is the host.

  Attributes:
    name: Name of the cluster for users.
    devices: [D]
    links: One for each ordered pair of devices.
    step_s: Seconds of a step without ops: the call of the session and its
      messages to the workers.
    notes: Sentences for the user: which figures are assumed, which are
      measured, and how well.
    calibrated: Results of `gdp calibrate`, by which kernels are priced. A
      device is in at most one of them.

  Raises:
    ClusterError: there is no CPU, a name appears twice or contradicts its
      type, devices disagree on a shared memory, a link is missing, or a figure
      is out of range.
  """

  name: str
  devices: tuple[Device, ...]
  links: tuple[Link, ...]
  step_s: float = 0.
  notes: tuple[str, ...] = dataclasses.field(default=(), compare=False)
  calibrated: tuple[Calibrated, ...] = ()

  def __post_init__(self) -> None:
    for field in ('devices', 'links', 'notes', 'calibrated'):
      object.__setattr__(self, field, tuple(getattr(self, field)))
    validation.check(self)

  @property
  def num_devices(self) -> int:
    """D."""
    return len(self.devices)

  @functools.cached_property
  def device_names(self) -> tuple[str, ...]:
    """[D], full names."""
    return tuple(d.name for d in self.devices)

  @functools.cached_property
  def device_labels(self) -> tuple[str, ...]:
    """[D], short names, with hosts if short names are not unique."""
    return labels(self.device_names)

  @functools.cached_property
  def hosts(self) -> tuple[str, ...]:
    """Tasks that have devices, such as '/job:worker/replica:0/task:1'."""
    return tuple(dict.fromkeys(map(task, self.device_names)))

  @functools.cached_property
  def host(self) -> int:
    """Index of the host: the device of feeds, fetches and strings."""
    return next(i for i, d in enumerate(self.devices) if d.type == 'CPU')

  @functools.cached_property
  def accelerators(self) -> tuple[int, ...]:
    """Indices of the GPUs, or of all devices if there is no GPU."""
    gpus = tuple(i for i, d in enumerate(self.devices) if d.type == 'GPU')
    return gpus or tuple(range(self.num_devices))

  @functools.cached_property
  def compute_units(self) -> np.ndarray:
    """int32 [D], numbers of compute units, on which devices take turns."""
    return _numbered([d.compute for d in self.devices])

  @functools.cached_property
  def contexts(self) -> np.ndarray:
    """int32 [D], numbers of contexts of the driver, which devices may share."""
    return _numbered([d.context or d.compute for d in self.devices])

  @functools.cached_property
  def cut_cards(self) -> np.ndarray:
    """int32 [D], numbers of cards that are cut into several devices.

    The number is -1 for a device that is the only one of its card here.
    """
    cards = [device.card for device in self.devices]
    cut = [c for c in dict.fromkeys(cards) if c and cards.count(c) > 1]
    return np.array([cut.index(c) if c in cut else -1 for c in cards], np.int32)

  @functools.cached_property
  def memory_pools(self) -> np.ndarray:
    """int32 [D], numbers of memory pools, which devices may share."""
    return _numbered([d.memory for d in self.devices])

  @functools.cached_property
  def pool_bytes(self) -> np.ndarray:
    """int64 [P], bytes that a plan may use of each memory pool.

    If devices share a memory, the largest of their margins counts.
    """
    result = np.full(self.memory_pools.max() + 1, _UNBOUNDED_BYTES)
    for pool, device in zip(self.memory_pools, self.devices):
      usable = int(device.memory_bytes * (1 - device.memory_margin))
      # Other code computes shares of this number, so it must not be 0.
      result[pool] = min(result[pool], max(usable, 1))
    return result

  @functools.cached_property
  def link_arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Latencies [D, D] in s, bytes/s [D, D] and channels int32 [D, D, C].

    The diagonal has latency 0, infinite bandwidth and channel -1. C is the
    largest number of channels of a link. Other links repeat their last channel.
    """
    d = self.num_devices
    latency, bandwidth = np.zeros((d, d)), np.full((d, d), np.inf)
    most = max((len(link.channels) for link in self.links), default=1)
    channels = np.full((d, d, most), -1, np.int32)
    index = {name: i for i, name in enumerate(self.device_names)}
    names = sorted({c for link in self.links for c in link.channels})
    wires = {name: i for i, name in enumerate(names)}
    for link in self.links:
      key = index[link.source], index[link.target]
      latency[key] = link.latency_s
      bandwidth[key] = link.bandwidth_bytes_per_s
      padded = link.channels + link.channels[-1:] * (most - len(link.channels))
      channels[key] = [wires[channel] for channel in padded]
    return latency, bandwidth, channels

  def calibration(self, device: str) -> calibration_lib.Calibration | None:
    """Calibration of a device, given by its full name; None if it has none."""
    return next((
        part.calibration for part in self.calibrated if device in part.devices),
                None)

  def device_index(self, name: str) -> int:
    """Index of a device given as 'GPU:0', 'worker/1/GPU:0' or in full.

    Without a host the first device of this name is meant.

    Raises:
      ClusterError: there is no such device.
    """
    wanted = canonical_device(name)
    for index, full in enumerate(self.device_names):
      if wanted == full or (not wanted.startswith('/job:') and
                            full.endswith(wanted)):
        return index
    own = [d for d in self.device_names if task(d) == task(wanted)]
    if wanted.startswith('/job:') and not own:
      hosts = dict.fromkeys(map(host, self.device_names))
      raise errors.ClusterError(
          f'Device "{name}" is on a host that is not in cluster "{self.name}". '
          f'Its hosts are {", ".join(hosts)}.')
    raise errors.ClusterError(
        f'Device "{name}" is not in cluster "{self.name}". '
        + (f'{host(wanted)} has: {", ".join(map(short_name, own))}.'
           if own else f'It has: {", ".join(self.device_labels)}.'))

  def to_json(self) -> str:
    """The cluster as JSON text, which `cluster_json` reads."""
    fields = dataclasses.asdict(dataclasses.replace(self, calibrated=()))
    del fields['calibrated']
    if self.calibrated:
      fields['calibrated'] = [{
          'devices': list(part.devices),
          'calibration': part.calibration.fields()
      } for part in self.calibrated]
    return json.dumps(fields, indent=2)


def canonical_device(name: str) -> str:
  """'/job:localhost/replica:0/task:0/device:GPU:0' or '/device:GPU:0'.

  The function accepts full names, partial names ('/device:GPU:0', '/gpu:0'),
  short names ('GPU:0', 'gpu:0'), and names with a host: 'worker/1/GPU:0' and
  '/job:worker/task:1/gpu:0' are GPU:0 of task 1 of job "worker". The result has
  a task if the name has one.

  Raises:
    DeviceNameError: the text is not a device name.
  """
  hosted = _HOSTED.fullmatch(name) if isinstance(name, str) else None
  if hosted:
    job, number, name = hosted.groups()
    return f'/job:{job}/replica:0/task:{int(number)}{canonical_device(name)}'
  match = re.fullmatch(
      r'(?:(/job:[^/]+)(/replica:\d+)?(/task:\d+))?(?:/?device:|/)?'
      r'([A-Za-z]+):(\d+)', str(name))
  if not match:
    raise errors.DeviceNameError(
        f'"{name}" is not a device name. Write for example "GPU:0", '
        f'"worker/1/GPU:0" or "{_TASK}/device:GPU:0".')
  job, replica, number_of_task, kind, number = match.groups()
  host = f'{job}{replica or "/replica:0"}{number_of_task}' if job else ''
  return f'{host}/device:{kind.upper()}:{int(number)}'


def device_type(name: str) -> str:
  """'GPU' for '/job:localhost/replica:0/task:0/device:GPU:0'; '' for ''."""
  return name.rsplit('device:', 1)[-1].split(':')[0].lstrip('/').upper()


def task(name: str) -> str:
  """'/job:worker/replica:0/task:1' of a full name of a device."""
  return name.split('/device:')[0]


def short_name(name: str) -> str:
  """'GPU:0' of a full name of a device."""
  return name.rsplit('device:', 1)[-1]


def labels(names: Sequence[str]) -> tuple[str, ...]:
  """Short names of devices, with hosts if short names are not unique."""
  short = tuple(map(short_name, names))
  if len(set(short)) == len(short):
    return short
  return tuple(map(host_label, names))


def host_label(name: str) -> str:
  """'worker/1/GPU:0' of a full name of a device."""
  return f'{host(name)}/{short_name(name)}'


def host(name: str) -> str:
  """'worker/1' of a full name of a device."""
  match = _JOB_AND_TASK.fullmatch(task(name))
  return f'{match[1]}/{match[2]}' if match else task(name)


def local_name(kind: str, number: int) -> str:
  """Full name of a device of this process, given as 'GPU' and 0."""
  return f'{_TASK}/device:{kind}:{number}'


def _numbered(labels: list[str]) -> np.ndarray:
  order = {label: i for i, label in enumerate(dict.fromkeys(labels))}
  return np.array([order[label] for label in labels], np.int32)

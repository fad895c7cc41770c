"""A cluster in the order of the native library: the GPUs, then the host."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from gdp_grappler import errors
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import validation

# With more threads, emulated steps stay the same.
_THREADS_PER_DEVICE = 6


@dataclasses.dataclass(frozen=True)
class Machine:
  """A host with GPUs, all in one process.

  Attributes:
    cluster: Cluster of D devices.

  Raises:
    MeasurementError: the cluster has no GPU, not exactly one host, or devices
      that share a card, a compute unit or a memory, as emulated devices cannot.
  """

  cluster: cluster_lib.Cluster

  def __post_init__(self) -> None:
    types = [device.type for device in self.cluster.devices]
    gpus = types.count('GPU')
    if not gpus or len(types) - gpus != 1:
      raise self._unsuited(f'has {gpus} GPUs and {len(types) - gpus} hosts; '
                           'one process emulates GPUs of one host')
    shared = [
        device.short_name
        for device, unit, pool in zip(self.cluster.devices, self.cluster.
                                      compute_units, self.cluster.memory_pools)
        if np.count_nonzero(self.cluster.compute_units == unit) > 1 or
        np.count_nonzero(self.cluster.memory_pools == pool) > 1
    ]
    shared += [
        device.short_name
        for device, card in zip(self.cluster.devices, self.cluster.cut_cards)
        if card >= 0
    ]
    if shared:
      raise self._unsuited(f'has parts of devices ({", ".join(shared)}); '
                           'emulated devices are whole')

  @functools.cached_property
  def order(self) -> np.ndarray:
    """int [D], indices of the cluster's devices: the GPUs, then the host."""
    is_host = [device.type == 'CPU' for device in self.cluster.devices]
    return np.argsort(is_host, kind='stable')

  @functools.cached_property
  def session_devices(self) -> tuple[str, ...]:
    """[D], TensorFlow's name of each device of the cluster."""
    names = [''] * self.cluster.num_devices
    for number, device in enumerate(self.order[:-1]):
      names[device] = cluster_lib.local_name('GPU', number)
    names[self.order[-1]] = cluster_lib.local_name('CPU', 0)
    return tuple(names)

  @property
  def memory_bytes(self) -> list[int]:
    """[D - 1], memory of each GPU."""
    return [self.cluster.devices[i].memory_bytes for i in self.order[:-1]]

  @property
  def host_times(self) -> np.ndarray:
    """float64 [D - 1, 9], seconds of the host for each GPU.

    The columns are `validation.HOST_TIMES`, and the time from the issue of a
    copy until the first look of the event manager. As in the simulator, the
    latter is twice the latency of a link, here the GPU's longest latency.
    """
    gpus = self.order[:-1]
    times = [[
        getattr(self.cluster.devices[gpu], name)
        for name in validation.HOST_TIMES
    ] for gpu in gpus]
    first_look_s = 2 * self.cluster.link_arrays[0][gpus].max(axis=1)
    return np.column_stack([np.array(times, np.float64), first_look_s])

  @property
  def contexts(self) -> np.ndarray:
    """int64 [D - 1], number of the driver's context of each GPU."""
    _, numbers = np.unique(self.cluster.contexts[self.order[:-1]],
                           return_inverse=True)
    return numbers.astype(np.int64)

  @property
  def host_slots(self) -> int:
    """Number of ops that the host runs in parallel."""
    return self.cluster.devices[self.order[-1]].slots

  @property
  def inter_op_threads(self) -> int:
    """Number of threads at which hardly an op waits for a thread.

    Each tensor that arrives at a GPU gets a thread, which dispatches the ops
    that wait for the tensor. A GPU whose ops have all been enqueued blocks one
    thread until they have run. Each running op of the host blocks one thread,
    too.
    """
    return _THREADS_PER_DEVICE * self.cluster.num_devices + self.host_slots

  @property
  def links(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Latencies in s and rates in bytes/s, float64 [D, D], and channels.

    Devices are in the order of `order`. Channels are int64 [D, D, L]; -1 means
    no channel, as from a device to itself.
    """
    latency_s, bytes_per_s, channels = self.cluster.link_arrays
    grid = np.ix_(self.order, self.order)
    return (latency_s[grid], bytes_per_s[grid], channels[grid].astype(np.int64))

  def _unsuited(self, reason: str) -> errors.MeasurementError:
    return errors.MeasurementError(
        f'Cluster "{self.cluster.name}" cannot be emulated: it {reason}. Take '
        'one such as 4xP100.')

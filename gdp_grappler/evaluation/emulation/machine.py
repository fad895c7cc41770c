"""A cluster as emulated GPUs see it: the GPUs, then the host."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from gdp_grappler import errors
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import validation


@dataclasses.dataclass(frozen=True)
class Machine:
  """A host with GPUs, all in one process.

  Attributes:
    cluster: Its D devices.

  Raises:
    MeasurementError: it has no GPU, more than one host, or devices that share
      what emulated ones cannot share.
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
      raise self._unsuited(f'has devices cut from one ({", ".join(shared)}); '
                           'emulated ones are whole')

  @functools.cached_property
  def order(self) -> np.ndarray:
    """int [D], indices of the cluster's devices: the GPUs, then the host."""
    is_host = [device.type == 'CPU' for device in self.cluster.devices]
    return np.argsort(is_host, kind='stable')

  @functools.cached_property
  def session_devices(self) -> tuple[str, ...]:
    """[D], what TensorFlow calls each device of the cluster."""
    names = [''] * self.cluster.num_devices
    for number, device in enumerate(self.order[:-1]):
      names[device] = cluster_lib.local_name('GPU', number)
    names[self.order[-1]] = cluster_lib.local_name('CPU', 0)
    return tuple(names)

  @property
  def memory_bytes(self) -> list[int]:
    """[D - 1], of the GPUs."""
    return [self.cluster.devices[i].memory_bytes for i in self.order[:-1]]

  @property
  def host_times(self) -> np.ndarray:
    """Of the GPUs, float64 [D - 1, 9]: `validation.HOST_TIMES` and one more.

    That is from the issue of a copy until the event manager first looks; as in
    the simulator, twice the latency of a link.
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
    """int64 [D - 1], GPUs with the same number share a driver's context."""
    _, numbers = np.unique(self.cluster.contexts[self.order[:-1]],
                           return_inverse=True)
    return numbers.astype(np.int64)

  @property
  def host_slots(self) -> int:
    """How many ops the host runs at a time."""
    return self.cluster.devices[self.order[-1]].slots

  @property
  def inter_op_threads(self) -> int:
    """Enough that no op waits for a thread.

    A GPU whose ops have all been enqueued blocks one until they have run, and
    so does each op of the host; two more serve what arrives.
    """
    return self.cluster.num_devices + 1 + self.host_slots

  @property
  def links(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Latencies in s and bytes/s, float64 [D, D], and channels in `order`.

    Channels are int64 [D, D, L]; a device has none to itself, -1.
    """
    latency_s, bytes_per_s, channels = self.cluster.link_arrays
    grid = np.ix_(self.order, self.order)
    return (latency_s[grid], bytes_per_s[grid], channels[grid].astype(np.int64))

  def _unsuited(self, reason: str) -> errors.MeasurementError:
    return errors.MeasurementError(
        f'Cluster "{self.cluster.name}" cannot be emulated: it {reason}. Take '
        'one such as 4xP100.')

"""A slow, simple version of simulated transfers.

A part of `reference_simulator`.
"""

from __future__ import annotations

import dataclasses

from gdp_grappler.cluster import cluster as cluster_lib


@dataclasses.dataclass
class Transfer:
  """A tensor (or None, a control edge) on its way to another device.

  Times are None until they are known. From `start` to `end` the tensor is on
  the link. From `taken_up` to `done` it is in both memories. On a stream it
  waits for its `earliest` start, which is not before it was `issued`. It is for
  ops of the device `reader`, which may read in the memory of their host.
  """
  tensor: int | None
  op: int
  source: int
  target: int
  reader: int
  bytes: int
  taken_up: float | None = None
  issued: float | None = None
  earliest: float | None = None
  start: float | None = None
  end: float | None = None
  done: float | None = None
  over: bool = False
  arrived: bool = False


class Wires:
  """All transfers of a step, and the links and streams they are on.

  Attributes:
    transfers: In the order of their requests.
    streams: Copies by (device, kind), in the order of their issue.
    filled: End of the last kernel in the stream, by compute unit.
  """

  def __init__(self, cluster: cluster_lib.Cluster, poll_factors=None):
    """Makes the links of a step without transfers.

    Args:
      cluster: The cluster.
      poll_factors: Factor of `poll_s` by op; None means 1.
    """
    self._poll_factors = poll_factors
    self._cluster = cluster
    self.transfers: list[Transfer] = []
    self.streams: dict[tuple[int, int], list[Transfer]] = {}
    self.filled = dict.fromkeys(cluster.compute_units.tolist(), 0.0)

  def streamed(self, transfer: Transfer) -> bool:
    """Whether an asynchronous device takes part."""
    return any(self._cluster.devices[device].asynchronous
               for device in (transfer.source, transfer.target))

  def issue(self, transfer: Transfer, now: float, issued: float) -> None:
    """Requests a transfer, or puts it on a stream once it is issued."""
    transfer.taken_up = now
    if not self.streamed(transfer):
      self._request(transfer, now)
      transfer.taken_up, transfer.done = transfer.start, transfer.end
      return
    sends, receives = (self._cluster.devices[device].asynchronous
                       for device in (transfer.source, transfer.target))
    transfer.issued = issued
    waits = [transfer.issued]
    if sends:
      waits.append(self.filled[self._cluster.compute_units[transfer.source]])
    if receives and (transfer.bytes or not sends):
      waits.append(self.filled[self._cluster.compute_units[transfer.target]])
    transfer.earliest = max(waits)
    stream = ((transfer.source, 0 if receives else 1) if sends else
              (transfer.target, 2))
    self.streams.setdefault(stream, []).append(transfer)

  def due(self, stream: tuple[int, int]) -> float | None:
    """Returns the start of the first copy of a stream that has not started."""
    copies = self.streams[stream]
    first = next((t for t in copies if t.start is None), None)
    if first is None:
      return None
    return max([first.earliest]
               + [t.end for t in copies if t.start is not None and t.bytes])

  def start_copy(self, stream: tuple[int, int], now: float) -> None:
    """Starts the first copy of a stream that has not started."""
    transfer = next(t for t in self.streams[stream] if t.start is None)
    self._request(transfer, now)
    device = self._cluster.devices[stream[0]]
    hop = device.callback_s
    if transfer.end - transfer.issued > 2 * self._link(transfer).latency_s:
      factors = self._poll_factors
      hop += device.poll_s * (1 if factors is None else factors[transfer.op])
    transfer.done = transfer.end + hop

  def is_sending(self, device: int, now: float) -> bool:
    """Whether a device has a running or due copy to asynchronous devices."""
    copies = self.streams.get((device, 0), [])
    return any(t.start is None or (t.bytes and t.end > now) for t in copies)

  def copy_seconds(self, device: int, transfer: Transfer) -> float:
    """Returns the seconds of a device's own work for a transfer."""
    figures = self._cluster.devices[device]
    if figures.copy_bytes_per_s is None:
      return figures.copy_s
    return figures.copy_s + transfer.bytes / figures.copy_bytes_per_s

  def _request(self, transfer: Transfer, now: float) -> None:
    link = self._link(transfer)
    start, duration = now, link.latency_s
    if transfer.bytes:
      duration = link.latency_s + transfer.bytes / link.bandwidth_bytes_per_s
      for other in self.transfers:
        if other.bytes and other.end is not None and (
            set(self._link(other).channels) & set(link.channels)):
          start = max(start, other.end)
    transfer.start, transfer.end = start, start + duration

  def _link(self, transfer: Transfer) -> cluster_lib.Link:
    names = self._cluster.device_names
    return next(l for l in self._cluster.links
                if (l.source, l.target) == (names[transfer.source],
                                            names[transfer.target]))

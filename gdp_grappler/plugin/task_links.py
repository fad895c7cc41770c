"""The links to the tasks that this process is connected to.

For programs that called `tf.config.experimental_connect_to_host` or
`_to_cluster`. `fit` times the links before its first step. Until then the
figures that `cluster/remote_devices` assumes hold.
"""

from __future__ import annotations

import dataclasses
from typing import Mapping, Sequence

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import max_memory
from gdp_grappler.cluster import resolve
from gdp_grappler.evaluation.link_timing import ping_pong

_NOTE = 'measured: the network between tasks'


@dataclasses.dataclass(frozen=True)
class Wire:
  """A whole transfer from one task to another takes latency + bytes / rate.

  Attributes:
    latency_s: Seconds.
    bytes_per_s: Of large tensors.
  """

  latency_s: float
  bytes_per_s: float


class TaskLinks:
  """Wires between tasks, in both directions alike."""

  def __init__(self) -> None:
    """Nothing is known yet."""
    self._wires: dict[frozenset[str], Wire] = {}

  def know(self, wires: Mapping[frozenset[str], Wire]) -> None:
    """Takes what was timed, in place of what was known.

    Args:
      wires: By the two tasks, such as '/job:worker/replica:0/task:1'.
    """
    self._wires = dict(wires)

  def cluster(
      self, name: str | None, names: Sequence[str],
      limits: max_memory.MaxMemory | None = None) -> cluster_lib.Cluster:
    """What an option's cluster is, with what was timed of our own one.

    Args:
      name: Of a preset or file; None for that of this process.
      names: Of devices that the program has.
      limits: What placements may use of its memories.

    Raises:
      ClusterError: there is none of that name.
    """
    result = resolve.resolve(name or resolve.LOCAL, names, limits or ())
    return self._applied(result) if is_own(name) else result

  def _applied(self, cluster: cluster_lib.Cluster) -> cluster_lib.Cluster:
    by_name = {device.name: device for device in cluster.devices}
    links = []
    for link in cluster.links:
      ends = by_name[link.source], by_name[link.target]
      wire = self._wires.get(frozenset(cluster_lib.task(e.name) for e in ends))
      links.append(link if wire is None else ping_pong.
                   of_transfers(link, wire.latency_s, wire.bytes_per_s, ends))
    if links == list(cluster.links):
      return cluster
    return dataclasses.replace(cluster, links=tuple(links),
                               notes=(*cluster.notes, _NOTE))


def is_own(name: str | None) -> bool:
  """Whether an option's cluster is what this process has."""
  return name is None or name == resolve.LOCAL


# Of this process.
KNOWN = TaskLinks()

"""The links to the tasks that this process is connected to.

A program connects by `tf.config.experimental_connect_to_host` or `_to_cluster`.
`fit` times the links before its first step, a server before it places the first
graph. Until then the links have the figures that `cluster/remote_devices`
assumes.
"""

from __future__ import annotations

import dataclasses
from typing import Mapping, Sequence, TYPE_CHECKING

from gdp_grappler import errors
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import max_memory
from gdp_grappler.cluster import resolve
from gdp_grappler.evaluation.link_timing import ping_pong

if TYPE_CHECKING:
  from gdp_grappler.plugin import settings as settings_lib

_NOTE = 'measured: the network between tasks'


@dataclasses.dataclass(frozen=True)
class Wire:
  """A link between two tasks. A transfer takes latency + bytes / rate.

  Attributes:
    latency_s: Latency, in seconds.
    bytes_per_s: Rate for large tensors.
  """

  latency_s: float
  bytes_per_s: float


class TaskLinks:
  """Timed links between tasks. A link has the same figures both ways."""

  def __init__(self) -> None:
    """Creates the object without links."""
    self._wires: dict[frozenset[str], Wire] = {}

  def know(self, wires: Mapping[frozenset[str], Wire]) -> None:
    """Replaces the links by timed ones.

    Args:
      wires: Links by pairs of tasks, such as '/job:worker/replica:0/task:1'.
    """
    self._wires = dict(wires)

  def cluster(
      self, name: str | None, names: Sequence[str],
      limits: max_memory.MaxMemory | None = None) -> cluster_lib.Cluster:
    """Returns the cluster of an option; that of this process has timed links.

    Args:
      name: Name of a preset or file. None means the cluster of this process.
      names: Names of the devices of the program.
      limits: Limits on the memories that placements may use.

    Raises:
      ClusterError: there is no cluster of that name.
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
  """Whether the cluster of an option is that of this process."""
  return name is None or name == resolve.LOCAL


# The links of this process.
KNOWN = TaskLinks()


def of(settings: settings_lib.Settings,
       names: Sequence[str]) -> cluster_lib.Cluster:
  """Returns the cluster of an option, with the links of this process.

  Args:
    settings: The user's option.
    names: Names of the devices of the program.

  Raises:
    ClusterError: there is no cluster of that name.
  """
  return KNOWN.cluster(settings.cluster, names, settings.max_memory)


def known_of(settings: settings_lib.Settings,
             names: Sequence[str]) -> cluster_lib.Cluster | None:
  """Returns the cluster of an option; None if an error prevents that.

  The placement of a graph reports the error.

  Args:
    settings: The user's option.
    names: Names of the devices of the program.
  """
  try:
    return of(settings, names)
  except errors.GdpError:
    return None

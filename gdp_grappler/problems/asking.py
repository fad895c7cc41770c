"""Requests by `tf.device` for devices that a cluster has or lacks."""

from __future__ import annotations

import collections
from typing import Any, Callable, TYPE_CHECKING

from gdp_grappler import errors
from gdp_grappler import spelling
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.graph import assumptions
from gdp_grappler.graph import op_graph
from gdp_grappler.graph.legality import asked
from gdp_grappler.reports import units

if TYPE_CHECKING:
  from gdp_grappler.graph import source_graph


def kept(found: source_graph.SourceGraph, pins: str,
         cluster: cluster_lib.Cluster,
         tell: Callable[[str], None]) -> source_graph.SourceGraph:
  """Returns a graph whose ops ask only for devices of the cluster.

  Args:
    found: The graph. Its ops may ask for any devices.
    pins: One of `assumptions.PINS`. 'ignore' removes all requests for devices.
    cluster: The cluster that the graph is placed on.
    tell: Function that is called with a line for each requested device that the
      cluster lacks.
  """
  if not any(asked.count(found)):
    return found
  if pins == assumptions.PINS_IGNORED:
    return asked.kept(found, lambda _: '')
  lacking: collections.Counter[str] = collections.Counter()

  def keep(node: Any) -> str:
    try:
      name = cluster_lib.canonical_device(asked.device(node))
    except errors.ClusterError:
      return ''  # The op's device string names no single device.
    try:
      cluster.device_index(name)
    except errors.ClusterError:
      lacking[_label(name, cluster)] += 1
      return ''
    return name

  result = asked.kept(found, keep)
  for device, number in lacking.items():
    tell(f'{found.name}: {units.count(number, "op")} '
         f'{"asks" if number == 1 else "ask"} for {device}, which cluster '
         f'"{cluster.name}" does not have, and {"is" if number == 1 else "are"}'
         ' placed as if without tf.device.')
  return result


def tell_kept(graph: op_graph.OpGraph, tell: Callable[[str], None]) -> None:
  """Tells the user how many ops stay on the devices of their requests.

  Args:
    graph: The graph as it was read. Requests that cannot be granted do not
      count, such as that of an op whose variable is on another device.
    tell: Function that is called with a line, or not at all.
  """
  count = int(graph.user_pins.sum())
  if count:
    tell(f'{graph.name}: {units.count(count, "op")} '
         f'{"stays" if count == 1 else "stay"} on the device that tf.device '
         f'asked for ({spelling.argument("pins", assumptions.PINS_IGNORED)} '
         f'lets {"it" if count == 1 else "them"} move).')


def _label(name: str, cluster: cluster_lib.Cluster) -> str:
  """Returns a name for a missing device, or for its missing host."""
  hosts = {cluster_lib.task(device.name) for device in cluster.devices}
  if '/job:' not in name or cluster_lib.task(name) in hosts:
    return cluster_lib.short_name(name)
  return cluster_lib.host_label(name)

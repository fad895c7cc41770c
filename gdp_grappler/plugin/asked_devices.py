"""Finds the devices that a program requested by `tf.device`, for the pass."""

from __future__ import annotations

import contextvars
from typing import Any, Callable, TYPE_CHECKING
import weakref

from gdp_grappler import errors
from gdp_grappler.plugin import notices

if TYPE_CHECKING:
  from gdp_grappler.cluster import cluster as cluster_lib
  from gdp_grappler.graph import source_graph
  from gdp_grappler.graph.sources import wishes
  from gdp_grappler.plugin import settings as settings_lib

# The graph of the session that this thread runs.
_graph = contextvars.ContextVar[Any]('graph', default=None)
_of_graphs: weakref.WeakKeyDictionary[Any, tuple[int, wishes.Wishes]] = (
    weakref.WeakKeyDictionary())


def of(graph_id: str) -> wishes.Wishes:
  """Returns the requests for the graph that this thread is optimizing.

  Args:
    graph_id: The runtime's name of the graph.
  """
  from gdp_grappler.graph.sources import wishes
  if wishes.is_function(graph_id):
    return wishes.of_function(graph_id)
  if (graph := _graph.get()) is not None:
    return _of_session(graph, graph_id)
  return wishes.UNKNOWN


def in_session(run: Callable[..., Any], session: Any, *args: Any,
               **kwargs: Any) -> Any:
  """Runs steps by a method of sessions, and records the graph of the session.

  Args:
    run: The method.
    session: The session.
    *args: Other arguments of the method.
    **kwargs: Further arguments of the method.
  """
  token = _graph.set(session.graph)
  try:
    return run(session, *args, **kwargs)
  finally:
    _graph.reset(token)


def _of_session(graph: Any, graph_id: str) -> wishes.Wishes:
  from gdp_grappler.graph.sources import wishes
  version, found = _of_graphs.get(graph, (None, wishes.NONE))
  if version != graph.version:
    found = wishes.of_graph(graph, graph_id)
    _of_graphs[graph] = graph.version, found
  return found


def with_feasible_requests(
    source: source_graph.SourceGraph,
    settings: settings_lib.Settings) -> source_graph.SourceGraph:
  """Returns a graph with only the requests that can be kept.

  Three kinds of requests are dropped. The first has an incomplete name of a
  device. The second is for a device that exists here, but TensorFlow chose
  another one, because the op cannot be on the requested device. The third is
  for a device that the cluster lacks; the user gets a warning.
  """
  from gdp_grappler.cluster import cluster as cluster_lib
  from gdp_grappler.graph.legality import asked
  from gdp_grappler.plugin import task_links
  if not any(asked.count(source)):
    return source
  cluster = task_links.known_of(settings, source.devices)
  if cluster is None:
    return source
  here = {cluster_lib.canonical_device(name) for name in source.devices}
  here |= {name.removeprefix(cluster_lib.task(name)) for name in here}

  def keep(node: Any) -> str:
    name = canonical(asked.device(node))
    if not name:
      return ''
    is_there = node.device.endswith(name)
    if name in here and not is_there:
      return ''
    name = node.device if is_there else name
    if has(cluster, name):
      return name
    warn_of_missing(name, node.name, settings)
    return ''

  return asked.kept(source, keep)


def canonical(name: str) -> str:
  """Returns a device's name as in clusters; '' for an incomplete name."""
  from gdp_grappler.cluster import cluster as cluster_lib
  try:
    return cluster_lib.canonical_device(name)
  except errors.ClusterError:
    return ''


def has(cluster: cluster_lib.Cluster, device: str) -> bool:
  """Whether a cluster has a device."""
  try:
    cluster.device_index(device)
  except errors.ClusterError:
    return False
  return True


def request_source() -> str:
  """Returns a text that names what puts ops on devices, such as tf.device.

  A strategy of tf.distribute with one replica runs steps under tf.device. In
  the graph the strategy's scope and a scope of the user look the same. So the
  text names tf.device and the class of the program's latest strategy.
  """
  from tensorflow.python.distribute import distribute_lib
  gauge = distribute_lib.distribution_strategy_gauge
  strategy = gauge.get_cell('V2').value() or gauge.get_cell('V1').value()
  return f'{strategy} or tf.device' if strategy else 'tf.device'


def warn_of_missing(device: str, who: str,
                    settings: settings_lib.Settings) -> None:
  """Warns once that a requested device is missing."""
  from gdp_grappler.cluster import cluster as cluster_lib
  where = (f'cluster "{settings.cluster}"'
           if settings.cluster else 'this program')
  name = cluster_lib.short_name(device)
  if (name, where) in _warned:
    return
  _warned.add((name, where))
  notices.warn_once(
      f'tf.device asks for {name}, which {where} does not have (first by '
      f'"{who}"): ops that ask for it are placed as if they did not')


_warned: set[tuple[str, str]] = set()

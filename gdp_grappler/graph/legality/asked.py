"""Devices that a program asked for by `tf.device`.

TensorFlow's placer leaves no trace of what was asked for. So whoever has a
graph and knows writes it to the nodes. There it is kept like a pin, except
where that is impossible: TensorFlow would put such an op elsewhere as well.
"""

from __future__ import annotations

from typing import Callable, Sequence

import numpy as np
from tensorflow.core.framework import graph_pb2
from tensorflow.core.framework import node_def_pb2

from gdp_grappler.graph import source_graph
from gdp_grappler.graph.legality import pins
from gdp_grappler.graph.legality import rounding

ATTRIBUTE = pins.ASKED_ATTRIBUTE


def device(node: node_def_pb2.NodeDef) -> str:
  """What was asked for a node; '' for nothing."""
  if ATTRIBUTE not in node.attr:
    return ''
  return node.attr[ATTRIBUTE].s.decode(errors='replace')


def mark(graph_def: graph_pb2.GraphDef, asked: Callable[[node_def_pb2.NodeDef],
                                                        str]) -> None:
  """Writes to each node what was asked for it, unless that is ''."""
  for node in graph_def.node:
    wish = asked(node)
    if wish:
      node.attr[ATTRIBUTE].s = wish.encode()


def of_file(source: source_graph.SourceGraph) -> source_graph.SourceGraph:
  """A graph that nobody has placed yet, with its devices as wishes.

  Where every op has a device, a program has placed the graph: those are where
  ops are, and not what somebody asked for.
  """
  devices = [node.device for node in source.graph_def.node]
  if not any(devices) or all(devices):
    return source
  result = _copy(source)
  mark(result.graph_def, lambda node: node.device)
  return result


def count(source: source_graph.SourceGraph) -> tuple[int, int]:
  """Variables, and other ops, that something was asked for."""
  marked = [node for node in source.graph_def.node if ATTRIBUTE in node.attr]
  variables = sum(map(pins.is_variable_argument, marked))
  return variables, len(marked) - variables


def kept(
    source: source_graph.SourceGraph,
    keep: Callable[[node_def_pb2.NodeDef], str]) -> source_graph.SourceGraph:
  """A graph with the wishes that can be kept alone.

  Args:
    source: Any graph; itself if there are no wishes.
    keep: The device of a node with a wish, as a cluster knows it; '' where the
      wish cannot be kept.
  """
  if not any(ATTRIBUTE in node.attr for node in source.graph_def.node):
    return source
  result = _copy(source)
  for node in result.graph_def.node:
    if ATTRIBUTE in node.attr:
      name = keep(node)
      if name:
        node.attr[ATTRIBUTE].s = name.encode()
      else:
        del node.attr[ATTRIBUTE]
  return result


def _copy(source: source_graph.SourceGraph) -> source_graph.SourceGraph:
  graph_def = graph_pb2.GraphDef()
  graph_def.CopyFrom(source.graph_def)
  return source_graph.SourceGraph(source.name, graph_def, source.feeds,
                                  source.fetches, source.devices,
                                  source.fingerprint)


def impossible(asked: Sequence[str], fixed: Sequence[str], groups: np.ndarray,
               allowed_types: np.ndarray) -> np.ndarray:
  """bool [N], ops whose wish cannot be kept by all of their group.

  Args:
    asked: [N], '' for no wish.
    fixed: [N], full names of devices that ops must have anyway, else ''.
    groups: int [N], of ops that share a device.
    allowed_types: bool [N, types], kernels.
  """
  wishes: dict[int, set[str]] = {}
  for op in [i for i, wish in enumerate(asked) if wish]:
    wishes.setdefault(int(groups[op]), set()).add(asked[op])
  if not wishes:
    return np.zeros(len(asked), bool)
  torn = {group for group, several in wishes.items() if len(several) > 1}
  for op in np.flatnonzero(np.isin(groups, list(wishes))).tolist():
    group = int(groups[op])
    wish = next(iter(wishes[group]))
    kind = rounding.device_type(wish)
    elsewhere = fixed[op] and not fixed[op].endswith(wish)
    if elsewhere or kind < 0 or not allowed_types[op, kind]:
      torn.add(group)
  return np.isin(groups, list(torn)) & np.array([bool(a) for a in asked])

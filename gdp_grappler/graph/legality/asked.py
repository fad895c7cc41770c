"""Devices that a program requested by `tf.device`.

TensorFlow's placer leaves no trace of such requests. So code that has a graph
before placement writes them to an attribute of the nodes. A request acts like a
pin. Impossible requests are dropped, because TensorFlow would also put such an
op on another device.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Callable, Sequence

import numpy as np
from tensorflow.core.framework import graph_pb2
from tensorflow.core.framework import node_def_pb2

from gdp_grappler.graph import source_graph
from gdp_grappler.graph.legality import pins
from gdp_grappler.graph.legality import rounding

ATTRIBUTE = pins.ASKED_ATTRIBUTE

# Elements up to which TensorFlow makes a constant of an eager value; see
# `_EAGER_CONST_THRESHOLD` of `func_graph.py`.
_MOST_CAPTURED = 128


def device(node: node_def_pb2.NodeDef) -> str:
  """Returns the device that a node requests; '' for none."""
  if ATTRIBUTE not in node.attr:
    return ''
  return node.attr[ATTRIBUTE].s.decode(errors='replace')


def mark(graph_def: graph_pb2.GraphDef, asked: Callable[[node_def_pb2.NodeDef],
                                                        str]) -> None:
  """Writes requests to nodes, except requests that are ''.

  Small constants have none. TensorFlow makes a constant of each small eager
  value that a function uses, and gives it the device of the value.
  """
  for node in graph_def.node:
    wish = '' if _is_small_constant(node) else asked(node)
    if wish:
      node.attr[ATTRIBUTE].s = wish.encode()


def _is_small_constant(node: node_def_pb2.NodeDef) -> bool:
  if node.op != 'Const':
    return False
  shape = node.attr['value'].tensor.tensor_shape
  return math.prod(dim.size for dim in shape.dim) <= _MOST_CAPTURED


def of_file(source: source_graph.SourceGraph) -> source_graph.SourceGraph:
  """Turns the devices of a graph that was not placed yet into requests.

  If every op has a device, a program has placed the graph. Then the devices are
  results of placement, not requests.
  """
  devices = [node.device for node in source.graph_def.node]
  if not any(devices) or all(devices):
    return source
  result = _copy(source)
  mark(result.graph_def, lambda node: node.device)
  return result


def count(source: source_graph.SourceGraph) -> tuple[int, int]:
  """Returns the numbers of variables and of other ops with a request."""
  marked = [node for node in source.graph_def.node if ATTRIBUTE in node.attr]
  variables = sum(map(pins.is_variable_argument, marked))
  return variables, len(marked) - variables


def kept(
    source: source_graph.SourceGraph,
    keep: Callable[[node_def_pb2.NodeDef], str]) -> source_graph.SourceGraph:
  """Returns a graph without the requests that cannot be granted.

  Args:
    source: Any graph. It is returned itself if it has no requests.
    keep: Function that returns the requested device of a node, with its name in
      the cluster; '' if the request cannot be granted.
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
  return dataclasses.replace(source, graph_def=graph_def)


def impossible(asked: Sequence[str], fixed: Sequence[str], groups: np.ndarray,
               allowed_types: np.ndarray) -> np.ndarray:
  """Marks ops whose request cannot be granted for their whole group, bool [N].

  Args:
    asked: [N], requested devices; '' for none.
    fixed: [N], full names of devices that ops must have for other reasons, else
      ''.
    groups: int [N], groups of ops that share a device.
    allowed_types: bool [N, types], whether there is a kernel.
  """
  wishes: dict[int, set[str]] = {}
  for op in [i for i, wish in enumerate(asked) if wish]:
    wishes.setdefault(int(groups[op]), set()).add(asked[op])
  if not wishes:
    return np.zeros(len(asked), bool)
  in_conflict = {group for group, several in wishes.items() if len(several) > 1}
  for op in np.flatnonzero(np.isin(groups, list(wishes))).tolist():
    group = int(groups[op])
    wish = next(iter(wishes[group]))
    kind = rounding.device_type(wish)
    elsewhere = fixed[op] and not fixed[op].endswith(wish)
    if elsewhere or kind < 0 or not allowed_types[op, kind]:
      in_conflict.add(group)
  return np.isin(groups, list(in_conflict)) & np.array([bool(a) for a in asked])

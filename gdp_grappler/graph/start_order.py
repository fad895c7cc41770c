"""Lets each GPU start ops in the order of the graph; see `start_order.h`."""

from __future__ import annotations

import ctypes
import functools
import re

from tensorflow.core.framework import graph_pb2

from gdp_grappler import errors
from gdp_grappler import native
from gdp_grappler.graph import name_parts

# Type and names of the nodes that are added.
_TRIGGER = 'ControlTrigger'
_ADDED = re.compile('gdp_start_order_*/')


def fix(graph_def: graph_pb2.GraphDef) -> graph_pb2.GraphDef:
  """Returns a graph whose GPUs start their ops in the order of the nodes.

  The result has further nodes at its end, and control edges from these to ops
  that have no inputs but arguments of the function. If no GPU has ops, the
  result is a copy.

  Args:
    graph_def: A graph, with the device of each node.

  Raises:
    GdpError: the graph is larger than 2 GB.
    PluginError: the native library is missing.
  """
  data, size = graph_def.SerializeToString(), ctypes.c_size_t()
  lib = _library()
  address = lib.gdp_order_starts(data, len(data), ctypes.byref(size))
  if not address:
    raise errors.GdpError('A graph of more than 2 GB cannot be written.')
  try:
    return graph_pb2.GraphDef.FromString(ctypes.string_at(address, size.value))
  finally:
    lib.gdp_delete_graph(address)


def drop(graph_def: graph_pb2.GraphDef) -> None:
  """Removes the nodes and control edges that `fix` added to a graph.

  They belong to its placement, and would be in the way of another one.

  Args:
    graph_def: A graph, which is changed.
  """
  added = {
      node.name for node in graph_def.node
      if node.op == _TRIGGER and _ADDED.match(node.name)
  }
  if not added:
    return
  kept = [node for node in graph_def.node if node.name not in added]
  for node in kept:
    inputs = [i for i in node.input if name_parts.node_of(i) not in added]
    del node.input[:]
    node.input.extend(inputs)
  copied = graph_pb2.GraphDef(node=kept)
  del graph_def.node[:]
  graph_def.node.extend(copied.node)


@functools.cache
def _library() -> ctypes.CDLL:
  lib = native.load(native.Library.GRAPPLER)
  native.declare(
      lib, {
          'gdp_order_starts': (ctypes.c_void_p, [
              ctypes.c_char_p, ctypes.c_size_t,
              ctypes.POINTER(ctypes.c_size_t)
          ]),
          'gdp_delete_graph': (None, [ctypes.c_void_p]),
      })
  return lib

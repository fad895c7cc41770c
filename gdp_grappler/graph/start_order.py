"""Lets each GPU start ops in the order of the graph; see `start_order.h`."""

from __future__ import annotations

import ctypes
import functools
from typing import Callable

from tensorflow.core.framework import graph_pb2

from gdp_grappler import errors
from gdp_grappler import native

# Type and mark of the nodes that are added.
_TRIGGER, _MARK = 'ControlTrigger', '_gdp_start_order'


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
  return _changed(graph_def, _library().gdp_order_starts)


def dropped(graph_def: graph_pb2.GraphDef) -> graph_pb2.GraphDef:
  """Returns a graph without the nodes and control edges that `fix` added.

  They belong to its placement, and would be in the way of another one. What an
  op waited for through them it then waits for directly.

  Args:
    graph_def: A graph. It is returned itself if it has no such nodes.

  Raises:
    GdpError: the graph is larger than 2 GB.
    PluginError: the native library is missing.
  """
  if not any(
      node.op == _TRIGGER and _MARK in node.attr for node in graph_def.node):
    return graph_def
  return _changed(graph_def, _library().gdp_drop_start_order)


def _changed(graph_def: graph_pb2.GraphDef,
             change: Callable[..., int]) -> graph_pb2.GraphDef:
  data, size = graph_def.SerializeToString(), ctypes.c_size_t()
  address = change(data, len(data), ctypes.byref(size))
  if not address:
    raise errors.GdpError(
        'The graph is larger than TensorFlow can read: more than 2 GB with its '
        'devices. Keep its weights in variables.')
  try:
    return graph_pb2.GraphDef.FromString(ctypes.string_at(address, size.value))
  finally:
    _library().gdp_delete_graph(address)


@functools.cache
def _library() -> ctypes.CDLL:
  lib = native.load(native.Library.GRAPPLER)
  change = (ctypes.c_void_p,
            [ctypes.c_char_p, ctypes.c_size_t,
             ctypes.POINTER(ctypes.c_size_t)])
  native.declare(
      lib, {
          'gdp_order_starts': change,
          'gdp_drop_start_order': change,
          'gdp_delete_graph': (None, [ctypes.c_void_p]),
      })
  return lib

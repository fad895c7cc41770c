"""Checks that the nodes of a graph agree with the definitions of their ops."""

from __future__ import annotations

import ctypes
import functools

from tensorflow.core.framework import graph_pb2

from gdp_grappler import native

_ROOM = 1000  # Size of the message's buffer in bytes.


def problem(graph_def: graph_pb2.GraphDef) -> str:
  """Returns why TensorFlow would reject a graph; '' if nothing is found.

  Checks the nodes of the graph and of its functions: number and types of
  inputs, control inputs after the others, and presence, kind and value of
  attributes. Attributes and ops that TensorFlow does not know are not checked.

  Args:
    graph_def: A graph from an unknown source.

  Raises:
    PluginError: the native library is missing.
  """
  data = graph_def.SerializeToString()
  why = ctypes.create_string_buffer(_ROOM)
  _library().gdp_nodes_validate(data, len(data), why, _ROOM)
  return ' '.join(why.value.decode(errors='replace').split())


@functools.cache
def _library() -> ctypes.CDLL:
  lib = native.load(native.Library.GRAPPLER)
  lib.gdp_nodes_validate.argtypes = [
      ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t
  ]
  lib.gdp_nodes_validate.restype = None
  return lib

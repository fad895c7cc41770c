"""Whether the nodes of a graph are what their ops' definitions say."""

from __future__ import annotations

import ctypes
import functools

from tensorflow.core.framework import graph_pb2

from gdp_grappler import native

_ROOM = 1000  # For what is said.


def problem(graph_def: graph_pb2.GraphDef) -> str:
  """Why a graph cannot be TensorFlow's; '' if nothing speaks against it.

  Looks at the nodes of the graph and of its functions: inputs by number and
  type, with control inputs behind the others, attributes by presence, kind and
  value. Attributes that nobody knows are passed over, as are ops that nobody
  knows.

  Args:
    graph_def: Of a stranger.

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

"""FLOPs, traffic and output sizes of ops, from Grappler's own estimator."""

from __future__ import annotations

import ctypes
import dataclasses
import functools
from typing import Any, Iterable

import numpy as np
from tensorflow.core.framework import graph_pb2
from tensorflow.core.framework import node_def_pb2
from tensorflow.core.framework import types_pb2

from gdp_grappler import errors
from gdp_grappler import native
from gdp_grappler.graph import node_table
from gdp_grappler.graph import op_kinds
from gdp_grappler.graph import recurrence_rounds
from gdp_grappler.graph import sparse_products
from gdp_grappler.graph.control_flow import lost_shapes
from gdp_grappler.graph.control_flow import stored_tensors

# Index of an output of cuDNN's recurrent ops.
_RESERVE_SPACE = 3


@dataclasses.dataclass(frozen=True, eq=False)
class OpProperties:
  """The work and the outputs of one execution of each of N ops.

  Attributes:
    flops: float64 [N], arithmetic operations.
    io_bytes: float64 [N], bytes read and written.
    output_starts: int64 [N + 1], where each op's outputs begin.
    output_bytes: int64 [T], size of each output, 0 for resource handles.
    output_ranks: int64 [T], dimensions of each output; -1 if not known.
    output_dims: int64 [sum of known ranks], dimensions of all outputs.
  """

  flops: np.ndarray
  io_bytes: np.ndarray
  output_starts: np.ndarray
  output_bytes: np.ndarray
  output_ranks: np.ndarray
  output_dims: np.ndarray

  def shape(self, op: int, output: int) -> tuple[int, ...] | None:
    """Dimensions of an output; None if their number is unknown."""
    tensor = int(self.output_starts[op]) + output
    if tensor >= self.output_starts[op + 1] or self.output_ranks[tensor] < 0:
      return None
    start, end = self._dim_starts[tensor:tensor + 2]
    return tuple(self.output_dims[start:end].tolist())

  @functools.cached_property
  def _dim_starts(self) -> np.ndarray:
    """int64 [T + 1], where the dimensions of each output begin."""
    return np.concatenate([[0], np.cumsum(np.maximum(self.output_ranks, 0))])


def estimate(table: node_table.NodeTable, unknown_dim: int) -> OpProperties:
  """Infers shapes and calls Grappler's OpLevelCostEstimator for every op.

  Args:
    table: N nodes, as Grappler or a session would get them. Its native part
      cannot be used again.
    unknown_dim: Size of dimensions that the graph does not know: the batch.

  Raises:
    InvalidGraphError: shape inference rejects the graph.
    PluginError: the native library is missing.
  """
  lib, n = _library(), len(table.nodes)
  foreign = np.flatnonzero(table.flags(_is_foreign)).tolist()
  replaced = graph_pb2.GraphDef()
  replaced.node.extend(table.nodes[op] for op in foreign)
  _replace(replaced.node)
  others = lost_shapes.substitutes(table)
  replaced.node.extend(others.values())
  places = np.array([*foreign, *others], np.int32)
  data = replaced.SerializeToString()
  handle = lib.gdp_properties_new(table.handle.address, data, len(data),
                                  places.ctypes.data, unknown_dim)
  try:
    error = lib.gdp_properties_error(handle).decode(errors='replace')
    if error:
      stored_tensors.check_order(table)
      raise errors.InvalidGraphError(
          'TensorFlow cannot infer the shapes of graph '
          f'"{table.graph_name}": {error.rstrip(".")}.')

    def array(name: str, size: int, dtype: type[np.generic]) -> np.ndarray:
      address = getattr(lib, f'gdp_properties_{name}')(handle)
      return node_table.copied(address, size, dtype)

    starts = array('starts', n + 1, np.int64)
    count = int(starts[-1])
    ranks = array('ranks', count, np.int64)
    dims = array('dims', int(ranks[ranks > 0].sum()), np.int64)
    result = OpProperties(array('flops', n, np.float64),
                          array('io_bytes', n, np.float64), starts,
                          array('bytes', count, np.int64), ranks, dims)
  finally:
    lib.gdp_properties_delete(handle)
  reserved = recurrence_rounds.reserved_bytes(table.nodes,
                                              table.each(lambda node: node.op),
                                              result.shape)
  for op, size in reserved.items():
    result.output_bytes[result.output_starts[op] + _RESERVE_SPACE] = size
  for op, (flops, io_bytes) in sparse_products.work(table,
                                                    result.shape).items():
    result.flops[op], result.io_bytes[op] = flops, io_bytes
  return result


def _is_foreign(node: node_def_pb2.NodeDef) -> bool:
  """Whether a node only connects a function with its caller."""
  return node.op in op_kinds.ARGUMENTS or node.op in op_kinds.RETURNS


def _replace(nodes: Iterable[node_def_pb2.NodeDef]) -> None:
  for node in nodes:
    if node.op in op_kinds.ARGUMENTS:
      _replace_argument(node)
    else:
      dtype = node.attr['T'].type
      node.op = 'Identity'
      node.ClearField('attr')
      node.attr['T'].type = dtype


def _replace_argument(node: Any) -> None:
  """Makes a variable's handle a VarHandleOp, any other value a Placeholder."""
  dtype = node.attr['T'].type
  shapes = list(node.attr['_handle_shapes'].list.shape)
  dtypes = list(node.attr['_handle_dtypes'].list.type)
  node.op = 'Placeholder'
  if dtype != types_pb2.DT_RESOURCE:
    shapes = list(node.attr['_output_shapes'].list.shape)
  elif len(shapes) == len(dtypes) == 1 and dtypes[0] != types_pb2.DT_INVALID:
    node.op, dtype = 'VarHandleOp', dtypes[0]
  node.ClearField('attr')
  node.attr['dtype'].type = dtype
  node.attr['shape'].shape.unknown_rank = True
  if len(shapes) == 1:
    node.attr['shape'].shape.CopyFrom(shapes[0])
  if node.op == 'VarHandleOp':
    node.attr['shared_name'].s = node.name.encode()


@functools.cache
def _library() -> ctypes.CDLL:
  lib = native.load(native.Library.GRAPPLER)
  pointer, text = ctypes.c_void_p, ctypes.c_char_p
  arrays = 'flops', 'io_bytes', 'starts', 'bytes', 'ranks', 'dims'
  native.declare(
      lib, {
          'gdp_properties_new':
              (pointer,
               [pointer, text, ctypes.c_size_t, pointer, ctypes.c_int64]),
          'gdp_properties_delete': (None, [pointer]),
          'gdp_properties_error': (text, [pointer]),
          **{f'gdp_properties_{n}': (pointer, [pointer]) for n in arrays},
      })
  return lib

"""Nodes with the shapes of tensors that loops of TensorFlow 1 store.

If a gradient of a loop is computed, the loop pushes the tensors that the
backward pass needs on stacks, and the loop of the gradient pops them. Loops
read their inputs from arrays, and write their outputs to arrays. Shape
inference does not connect the op that stores a tensor with the op that takes
it. But both ops get the handle of one stack or array. The gradient of an array,
by `TensorArrayGradV3`, is an array of the same shapes.
"""

from __future__ import annotations

from typing import Sequence

import numpy as np
from tensorflow.core.framework import node_def_pb2
from tensorflow.core.framework import types_pb2

from gdp_grappler import errors
from gdp_grappler.graph import native_graph
from gdp_grappler.graph import node_attributes
from gdp_grappler.graph import node_table
from gdp_grappler.graph import op_kinds
from gdp_grappler.graph.control_flow import values as values_lib

_ARRAYS = frozenset(('TensorArrayV3',))
# Ops that make the gradient of an array. TensorArrayGradWithShape is left out,
# because the elements of its array have more dimensions.
_GRADIENTS = frozenset(('TensorArrayGradV3',))
_READS = frozenset(('TensorArrayReadV3',))
# Ops that read several elements as one tensor.
_GATHERS = frozenset(('TensorArrayGatherV3',))
# An op that writes the rows of a tensor to an array.
_SCATTER = 'TensorArrayScatterV3'
# Ops that store, with the position of the input that is stored.
_STORES = {'TensorArrayWriteV3': 2, _SCATTER: 2}
_STORES.update(dict.fromkeys(op_kinds.STACK_PUSHES, 1))
TAKES = op_kinds.STACK_POPS | _READS | _GATHERS
# Largest depth of stacks on stacks.
_MAX_DEPTH = 20


def substitutes(table: node_table.NodeTable,
                inputs: Sequence[Sequence[values_lib.Tensor]],
                values: values_lib.Values) -> dict[int, node_def_pb2.NodeDef]:
  """Returns nodes that shape inference should get instead of `TAKES`, by op.

  Args:
    table: N nodes.
    inputs: [N], data inputs of each op.
    values: Evaluator of tensors of the graph.
  """
  if not table.types & TAKES:
    return {}
  stores = _Stores(table, inputs, values)
  result, links = {}, []
  for op in np.flatnonzero(table.flags(lambda n: n.op in TAKES)).tolist():
    store = stores.stored(op)
    if store is not None:
      result[op] = _taken(table.nodes, inputs, op, store)
      place = _STORES[table.nodes[store].op]
      links.append((inputs[store][place][0], op))
  # A step may push a tensor that it computes from a popped tensor. Then the
  # substitutes form a cycle, which shape inference would reject.
  ordered = set(_order(table, links))
  return {op: node for op, node in result.items() if op in ordered}


class _Stores:
  """The ops that store tensors in the stacks and arrays of a graph."""

  def __init__(self, table: node_table.NodeTable,
               inputs: Sequence[Sequence[values_lib.Tensor]],
               values: values_lib.Values) -> None:
    self._nodes = table.nodes
    self._inputs = inputs
    self._values = values
    self._stores: dict[int, list[int]] = {}
    stores = np.flatnonzero(table.flags(lambda node: node.op in _STORES))
    for op in stores.tolist():
      if len(inputs[op]) > _STORES[table.nodes[op].op]:
        maker, _ = values.source(inputs[op][0])
        self._stores.setdefault(maker, []).append(op)

  def stored(self, take: int, depth: int = 0) -> int | None:
    """Returns an op that stores a tensor of the shape that `take` outputs."""
    if not self._inputs[take]:
      return None
    maker = self._maker(self._inputs[take][0], depth)
    if maker is None or maker not in self._stores:
      return None
    node, stores = self._nodes[maker], self._stores[maker]
    if node.op in op_kinds.STACKS:
      return stores[0] if len(stores) == 1 else None
    shape = node_attributes.of(node, 'element_shape')
    known = shape.HasField('shape') and not shape.shape.unknown_rank
    alike = node_attributes.of(node, 'identical_element_shapes').b
    # Shape inference uses the shape of the elements if the array states it.
    if known or not alike:
      return None
    if self._nodes[take].op in _GATHERS:
      # A gather outputs several elements as one tensor. A scatter stores such a
      # tensor, and other ops store a single element.
      stores = [op for op in stores if self._nodes[op].op == _SCATTER]
    return stores[0] if stores else None

  def _maker(self, handle: values_lib.Tensor, depth: int) -> int | None:
    """Returns the op that made a stack or an array; None if unknown."""
    if depth > _MAX_DEPTH:
      return None
    op, _ = self._values.source(handle)
    kind = self._nodes[op].op
    if kind in op_kinds.STACKS or kind in _ARRAYS:
      return op
    if kind in _GRADIENTS and self._inputs[op]:
      return self._maker(self._inputs[op][0], depth + 1)
    if kind in op_kinds.STACK_POPS:
      # The stack of an inner loop is an element of a stack of the outer loop.
      push = self.stored(op, depth + 1)
      return None if push is None else self._maker(self._inputs[push][1], depth
                                                   + 1)
    return None


def _taken(nodes: Sequence[node_def_pb2.NodeDef],
           inputs: Sequence[Sequence[values_lib.Tensor]], take: int,
           store: int) -> node_def_pb2.NodeDef:
  """Returns a substitute for `take` that reads the tensor of `store`."""
  source, output = inputs[store][_STORES[nodes[store].op]]
  result = node_def_pb2.NodeDef(name=nodes[take].name, op='Identity',
                                input=[f'{nodes[source].name}:{output}'])
  name = 'elem_type' if nodes[take].op in op_kinds.STACK_POPS else 'dtype'
  dtype = node_attributes.of(nodes[take], name)
  if nodes[store].op != _SCATTER:
    result.attr['T'].CopyFrom(dtype)
    if nodes[take].op in _READS:
      # Elements of an array have the same shape, but not the same value.
      # Shape inference does not evaluate this op.
      result.op = 'Snapshot'
    return result
  result.op = 'Gather'
  result.input.extend(nodes[take].input[1:2])
  result.attr['Tparams'].CopyFrom(dtype)
  result.attr['Tindices'].type = types_pb2.DT_INT32
  return result


def check_order(table: node_table.NodeTable) -> None:
  """Checks that the only cycles of a graph are its while loops.

  Args:
    table: N nodes.

  Raises:
    InvalidGraphError: there is another cycle. The message names one node of it.
  """
  stuck = set(range(len(table.nodes))) - set(_order(table, ()))
  if not stuck:
    return
  waits = {
      to: start for start, to in _forward_edges(table).tolist()
      if {start, to} <= stuck
  }
  op, seen = min(stuck), set[int]()
  while op not in seen:  # Each of these ops waits for another one of them.
    seen.add(op)
    op = waits[op]
  raise errors.InvalidGraphError(
      f'Graph "{table.graph_name}" has a cycle that is no while loop: the op '
      f'"{table.names[op]}" waits for its own result. Cut the cycle.')


def _order(table: node_table.NodeTable,
           links: Sequence[tuple[int, int]]) -> list[int]:
  """Returns the ops in topological order, but not those behind a cycle.

  Args:
    table: N nodes.
    links: (producer, consumer), edges in addition to those of the graph.
  """
  edges = [_forward_edges(table), np.reshape(links, (-1, 2))]
  return native_graph.order(len(table.nodes), np.concatenate(edges)).tolist()


def _forward_edges(table: node_table.NodeTable) -> np.ndarray:
  """[E, 2], producers and consumers, without the back edges of while loops."""
  edges = np.asarray(table.edges)[:, [0, 2]]
  back = table.flags(lambda node: node.op in op_kinds.NEXT_ITERATIONS)
  merges = table.flags(lambda node: node.op in op_kinds.MERGES)
  return edges[~(back[edges[:, 0]] & merges[edges[:, 1]])]

"""Which ops must share a device: union-find over the rules of TensorFlow.

* Ops connected by an edge with a resource, a variant (tensor list) or a
  reference. Loops that only begin with the same empty list may be apart.
* Ops with a common `_class` constraint.
* Ops that name the same shared resource.
* All ops of a while loop and of the loops inside it. TensorFlow could split a
  frame, but would add a control loop to every device and a message per
  iteration.
* A recurrent layer of cuDNN and its gradient. The gradient reads the reserve
  space, whose contents only cuDNN knows.
* If variables may move: a variable and its optimizer's slots.
"""

from __future__ import annotations

from typing import Callable, Iterator, Mapping, Sequence

import numpy as np
from tensorflow.core.framework import node_def_pb2

from gdp_grappler.graph import node_table
from gdp_grappler.graph import op_kinds
from gdp_grappler.graph import union_find
from gdp_grappler.graph.legality import node_types

_CLASS_PREFIX = b'loc:@'
# Recurrent layers of cuDNN, and the number of their output that is the reserve
# space.
_CUDNN = frozenset(('CudnnRNN', 'CudnnRNNV2', 'CudnnRNNV3'))
_RESERVE_SPACE = 3
_CUDNN_GRADIENTS = frozenset(
    ('CudnnRNNBackprop', 'CudnnRNNBackpropV2', 'CudnnRNNBackpropV3'))


def joined(table: node_table.NodeTable,
           signatures: Sequence[node_types.Signature]) -> union_find.UnionFind:
  """Returns the sets of ops that TensorFlow or a loop keeps together.

  Args:
    table: N nodes.
    signatures: [N], types of their inputs and outputs.
  """
  nodes, edges = table.nodes, table.edges
  sets = union_find.UnionFind(len(nodes))
  with_handles = table.flags(_outputs_handle)
  begins: dict[int, list[int]] = {}
  # A reference that is read as a value may be sent, as in TensorFlow's placer
  # (core/common_runtime/colocation_graph.cc). So the type of the input decides.
  # `late_reads` joins the readers for which a copy would be too old.
  for source, output, target, place in _out_of(edges, with_handles):
    outputs = signatures[source].outputs
    if output >= len(outputs) or not node_types.is_handle(outputs[output]):
      continue
    inputs = signatures[target].inputs
    if place >= len(inputs) or node_types.is_handle(inputs[place]):
      if nodes[source].op in op_kinds.NEW_LISTS:
        begins.setdefault(source, []).append(target)
      else:
        sets.join(source, target)
  if table.types & _CUDNN:
    _join_gradients(sets, table)
  for members in _by_label(table, with_handles).values():
    sets.join_all(members)
  if table.types & op_kinds.ENTERS:
    for members in frames(nodes, edges).values():
      sets.join_all(members)
  for source, targets in begins.items():
    if not _may_be_copied(nodes, targets, sets):
      sets.join_all((source, *targets))
  return sets


def _join_gradients(sets: union_find.UnionFind,
                    table: node_table.NodeTable) -> None:
  """Joins layers of cuDNN with the ops that their reserve space reaches."""
  layers = table.flags(lambda node: node.op in _CUDNN)
  passing = table.flags(
      lambda node: node.op in op_kinds.HANDED_ON | op_kinds.MERGES)
  readers: dict[int, list[int]] = {}
  pending = []
  for source, output, target, _ in _out_of(table.edges, layers | passing):
    if passing[source]:
      readers.setdefault(source, []).append(target)
    elif output == _RESERVE_SPACE:
      pending.append((source, target))
  seen = set()  # The edges of a loop are a circle.
  while pending:
    source, target = pending.pop()
    sets.join(source, target)
    if target not in seen:
      seen.add(target)
      pending += [(source, reader) for reader in readers.get(target, ())]


def gradients_with_layers(table: node_table.NodeTable,
                          groups: np.ndarray) -> np.ndarray:
  """Marks gradients of cuDNN that share a group with a layer, bool [N].

  The reserve space of other gradients comes from another function or another
  step, so nobody knows where the layer is.

  Args:
    table: N nodes.
    groups: int [N], groups by `joined`.
  """
  layers = table.flags(lambda node: node.op in _CUDNN)
  gradients = table.flags(lambda node: node.op in _CUDNN_GRADIENTS)
  return gradients & np.isin(groups, groups[layers])


def _outputs_handle(node: node_def_pb2.NodeDef) -> bool:
  """Whether some output has a meaning only on the device that made it."""
  return any(map(node_types.is_handle, node_types.signature(node).outputs))


def _out_of(edges: Sequence[tuple[int, int, int]],
            ops: np.ndarray) -> list[tuple[int, int, int, int]]:
  """Data edges out of marked ops bool [N], and their positions among inputs."""
  array = np.asarray(edges, np.int64).reshape(-1, 3)
  places = input_places(array)
  chosen = (array[:, 1] >= 0) & ops[array[:, 0]]
  return list(zip(*array[chosen].T.tolist(), places[chosen].tolist()))


def input_places(edges: np.ndarray) -> np.ndarray:
  """Returns each edge's position among its consumer's data inputs, int64 [E].

  Args:
    edges: int [E, 3], producer, output index or -1, consumer.
  """
  data = np.flatnonzero(edges[:, 1] >= 0)
  targets = edges[data, 2]
  order = np.argsort(targets, kind='stable')
  ordered = targets[order]
  result = np.zeros(len(edges), np.int64)
  result[data[order]] = np.arange(len(data)) - np.searchsorted(ordered, ordered)
  return result


def _may_be_copied(nodes: Sequence[node_def_pb2.NodeDef],
                   targets: Sequence[int], sets: union_find.UnionFind) -> bool:
  """Whether a new list is only the start of several loops that may be apart.

  Grappler merges all ops that make an empty list of the same kind. Such a list
  has no identity, so each device can have a copy.
  """
  return (all(nodes[target].op in op_kinds.ENTERS for target in targets) and
          len({sets.find(target) for target in targets}) > 1)


def shared_lists(table: node_table.NodeTable, groups: np.ndarray) -> set[int]:
  """Returns ops that make a list for loops in other groups.

  Args:
    table: N nodes.
    groups: int [N], groups by `joined`.
  """
  if not table.types & op_kinds.NEW_LISTS:
    return set()
  lists = table.flags(lambda node: node.op in op_kinds.NEW_LISTS)
  return {
      source for source, output, target in table.edges
      if lists[source] and output >= 0 and groups[source] != groups[target]
  }


def _by_label(table: node_table.NodeTable,
              with_handles: np.ndarray) -> dict[object, list[int]]:
  """Returns ops by `_class` constraint and by shared resource."""
  result: dict[object, list[int]] = {}
  classed = table.flags(lambda node: '_class' in node.attr)
  shares = table.flags(lambda node: 'shared_name' in node.attr) & with_handles
  by_name = ({name: i for i, name in enumerate(table.names)}
             if classed.any() else {})
  for i in np.flatnonzero(classed | shares).tolist():
    node = table.nodes[i]
    attributes = node.attr
    if '_class' in attributes:
      for value in attributes['_class'].list.s:
        if value.startswith(_CLASS_PREFIX):
          label = value[len(_CLASS_PREFIX):].decode()
          result.setdefault(('class', label), []).append(i)
          if label in by_name:
            result['class', label].append(by_name[label])
    shared = attributes['shared_name'].s if shares[i] else b''
    if shared:
      container = node.attr['container'].s if 'container' in node.attr else b''
      result.setdefault((node.op, container, shared), []).append(i)
  return result


def frames(nodes: Sequence[node_def_pb2.NodeDef],
           edges: Sequence[tuple[int, int, int]]) -> dict[str, list[int]]:
  """Returns the ops of each outermost while loop, with its Enters and Exits.

  A frame begins at its Enter ops and has all ops reachable from them up to its
  Exit ops. Inner frames are part of the outermost one.
  """
  enters = [i for i, node in enumerate(nodes) if node.op in op_kinds.ENTERS]
  if not enters:
    return {}
  consumers: dict[int, list[int]] = {}
  for source, _, target in edges:
    consumers.setdefault(source, []).append(target)
  stack_of = _frame_stacks(nodes, consumers, enters)
  result: dict[str, list[int]] = {}
  for op, stack in stack_of.items():
    if stack:
      result.setdefault(stack[0], []).append(op)
  return result


def _frame_stacks(nodes: Sequence[node_def_pb2.NodeDef],
                  consumers: Mapping[int, list[int]],
                  enters: Sequence[int]) -> dict[int, tuple[str, ...]]:
  """Returns the names of the frames around each op that some Enter reaches.

  An Enter that is reachable from another one belongs to an inner loop. Ops are
  revisited when a longer stack reaches them, which happens once per level of
  nesting.
  """
  stacks: dict[int, tuple[str, ...]] = {}
  inner = {op: () for op in enters}
  pending = list(enters)
  while pending:
    op = pending.pop()
    node = nodes[op]
    outside = inner.get(op, ()) if op in inner else stacks[op]
    if op in inner:
      stack = outside + (node.attr['frame_name'].s.decode(),)
    else:
      stack = outside
    stacks[op] = stack
    passed_on = stack[:-1] if node.op in op_kinds.EXITS else stack
    for target in consumers.get(op, ()):
      known = inner[target] if target in inner else stacks.get(target, ())
      if len(passed_on) > len(known):
        if target in inner:
          inner[target] = passed_on
        else:
          stacks[target] = passed_on
        pending.append(target)
  return stacks


def join_slots(sets: union_find.UnionFind, table: node_table.NodeTable,
               variable_bytes: np.ndarray, output_bytes: np.ndarray,
               placed: bool) -> None:
  """Joins a variable with the slots that its update reads.

  Keras 3 updates m, v and the variable by separate assignments. Two variables
  of one size, larger than a scalar, belong together if there is a path from a
  read of one to an assignment of the other that has only arithmetic on tensors
  of this size.

  Args:
    sets: Sets of ops that share a device; changed in place.
    table: N nodes.
    variable_bytes: int64 [N], size of the variable of each handle op.
    output_bytes: int64 [N], bytes of all outputs of an op.
    placed: Whether devices of nodes count. Then variables on different devices
      are not joined.
  """
  nodes = table.nodes
  array = np.asarray(table.edges, np.int64).reshape(-1, 3)
  array = array[array[:, 1] >= 0]
  array = array[np.argsort(array[:, 2], kind='stable')]
  begins = np.searchsorted(array[:, 2], np.arange(len(nodes) + 1)).tolist()
  sources = array[:, 0].tolist()
  held = variable_bytes[array[:, 0]] > 0
  handle_of = dict(zip(array[held, 2].tolist(), array[held, 0].tolist()))

  def producers(op: int) -> list[int]:
    return sources[begins[op]:begins[op + 1]]

  assigns = table.flags(lambda node: node.op in op_kinds.ASSIGNMENTS)
  for op in np.flatnonzero(assigns).tolist():
    if variable_bytes[handle_of.get(op, op)] > 8:
      size = int(variable_bytes[handle_of[op]])
      for handle in _slots_behind(op, size, nodes, producers, handle_of,
                                  output_bytes):
        variable = handle_of[op]
        apart = placed and nodes[handle].device != nodes[variable].device
        if variable_bytes[handle] == size and not apart:
          sets.join(handle, variable)


def _slots_behind(assign: int, size: int, nodes: Sequence[node_def_pb2.NodeDef],
                  producers: Callable[[int],
                                      list[int]], handle_of: Mapping[int, int],
                  output_bytes: np.ndarray) -> Iterator[int]:
  """Yields handles of variables whose value reaches an assignment."""
  pending, seen = producers(assign), set()
  while pending:
    op = pending.pop()
    if op in seen:
      continue
    seen.add(op)
    if op in handle_of and nodes[op].op not in op_kinds.ASSIGNMENTS:
      yield handle_of[op]
    elif (output_bytes[op] == size and
          nodes[op].op in op_kinds.UPDATE_ARITHMETIC):
      pending.extend(producers(op))

"""Reads a GraphDef as an OpGraph, and writes devices back into a GraphDef."""

from __future__ import annotations

from concurrent import futures
import dataclasses
import math
from typing import Any, Callable, Mapping, Sequence

import numpy as np
from tensorflow.core.framework import graph_pb2
from tensorflow.core.framework import node_def_pb2
from tensorflow.core.framework import types_pb2
from tensorflow.python.framework import dtypes

from gdp_grappler import errors
from gdp_grappler.graph import assumptions
from gdp_grappler.graph import element_types
from gdp_grappler.graph import node_table
from gdp_grappler.graph import op_graph
from gdp_grappler.graph import op_kinds
from gdp_grappler.graph import op_properties
from gdp_grappler.graph import recurrence_rounds
from gdp_grappler.graph import source_graph
from gdp_grappler.graph import union_find
from gdp_grappler.graph import variable_names
from gdp_grappler.graph import winograd
from gdp_grappler.graph.control_flow import calls as calls_lib
from gdp_grappler.graph.control_flow import frames as frames_lib
from gdp_grappler.graph.control_flow import tensor_lists
from gdp_grappler.graph.legality import colocation
from gdp_grappler.graph.legality import fixed_ops
from gdp_grappler.graph.legality import fusions
from gdp_grappler.graph.legality import host_memory
from gdp_grappler.graph.legality import kernels
from gdp_grappler.graph.legality import late_reads
from gdp_grappler.graph.legality import node_types
from gdp_grappler.graph.legality import pins as pins_lib
from gdp_grappler.graph.legality import rounding
from gdp_grappler.graph.legality import slots
from gdp_grappler.graph.legality import sums


def read(source: source_graph.SourceGraph, *, live: bool = False,
         relocatable: bool = False,
         unknown_dim: int = assumptions.DEFAULT_BATCH_SIZE,
         trip_count: float = assumptions.DEFAULT_TRIP_COUNT,
         tell: Callable[[str], None] | None = None) -> op_graph.OpGraph:
  """Reads a graph and everything that restricts its placement.

  Edges that close the cycle of a while loop are replaced by control edges from
  NextIteration to the loop's Exits. So the graph has no cycle, and readers of a
  loop's result wait for the loop.

  Args:
    source: The graph, its feeds and its fetches.
    live: Whether the graph is about to run. Then variables exist, so their
      handles and all ops on them stay where they are. So do ops of random
      streams, and Grappler's fused ops keep their type of device. Ops that
      oneDNN would fuse stay together, because the fused op rounds differently.
      If not live, variables are free to move, each with its reads, updates and
      optimizer slots.
    relocatable: Whether variables that a live graph gets as arguments are free
      to move, because the caller moves them.
    unknown_dim: Size taken for every dimension that the graph does not know.
    trip_count: Iterations of while loops whose number the graph does not tell.
    tell: Function that is called with lines about loops of unknown length and
      functions that cannot be read.

  Raises:
    InvalidGraphError: the graph is empty, a node is missing, or TensorFlow
      rejects one.
  """
  assumed: list[str] = []

  # `read_body` is part of a reference cycle and is freed late. It must not keep
  # the whole graph in memory.
  empty = dataclasses.replace(source, graph_def=graph_pb2.GraphDef(), feeds=(),
                              fetches=())

  def read_body(graph_def: graph_pb2.GraphDef) -> calls_lib.Body:
    body = dataclasses.replace(empty, graph_def=graph_def)
    graph, frames = _read(body, _Freedom(live=False), unknown_dim, trip_count,
                          calls, assumed)
    return graph, frames.values.scalar if frames.values else lambda _: None

  calls = calls_lib.Calls(source.graph_def.library, read_body, tell)
  result, _ = _read(source, _Freedom(live, relocatable), unknown_dim,
                    trip_count, calls, assumed)
  if tell and assumed:
    tell(frames_lib.describe_assumed(assumed, trip_count))
  return result


@dataclasses.dataclass(frozen=True)
class _Freedom:
  """Which state may move; see `read`."""

  live: bool
  relocatable: bool = False

  @property
  def slots_follow(self) -> bool:
    """Whether variables may move, and their slots with them."""
    return not self.live or self.relocatable

  def holds(self, node: node_def_pb2.NodeDef) -> bool:
    """Whether the state that a node outputs has to stay where it is."""
    return self.live and not (self.relocatable and
                              pins_lib.is_variable_argument(node))


def _table(source: source_graph.SourceGraph) -> node_table.NodeTable:
  table = node_table.NodeTable(source.name, source.graph_def)
  if not table.nodes:
    raise errors.InvalidGraphError(
        f'Graph "{source.name}" is empty: it has no nodes. Check what was '
        'exported or captured.')
  return table


def _read(source: source_graph.SourceGraph, freedom: _Freedom, unknown_dim: int,
          trip_count: float, calls: calls_lib.Calls,
          assumed: list[str]) -> tuple[op_graph.OpGraph, frames_lib.Frames]:
  """Returns graph and control flow; adds names of loops to `assumed`."""
  table = _table(source)
  nodes, raw_edges = table.nodes, table.edges
  # Grappler's estimator takes longest and needs no Python, so it runs in
  # parallel. It runs in this thread, because this thread's allocator already
  # has most of the memory.
  with futures.ThreadPoolExecutor(1) as pool:
    asked = pool.submit(_node_facts, table, freedom.live)
    properties = op_properties.estimate(table, unknown_dim)
    signatures, sets, allowed_types, variables = asked.result()
  flops, io_bytes = properties.flops.copy(), properties.io_bytes.copy()
  types = table.each(lambda node: node.op)
  called = calls.find(nodes, types, raw_edges,
                      lambda tensor: properties.shape(*tensor))
  for op, call in called.items():
    flops[op], io_bytes[op] = call.flops, call.io_bytes
  starts, tensor_bytes = _tensors(properties, raw_edges, len(nodes), called)
  variable_bytes = _bytes_of_variables(table, unknown_dim)
  if freedom.slots_follow:
    output_bytes = np.add.reduceat(np.append(tensor_bytes, 0),
                                   starts[:-1]) * (np.diff(starts) > 0)
    colocation.join_slots(sets, table, variable_bytes, output_bytes,
                          freedom.live)
    slots.join(sets, table, variable_bytes, variables, freedom.live)
  if freedom.live:
    _keep_numbers(sets, table, source.devices)
  groups = sets.numbers()
  shared_lists = colocation.shared_lists(table, groups)
  groups, pins, user_pins = fixed_ops.pins(source, table, signatures, groups,
                                           allowed_types, freedom.live,
                                           freedom.holds)
  frames = frames_lib.analyse(nodes, raw_edges, flops,
                              lambda tensor: properties.shape(*tensor),
                              trip_count, calls_lib.numbers(called))
  assumed += frames.assumed
  copied = tensor_lists.copied(types, raw_edges)
  _fill_lists(table, frames, shared_lists, copied, starts, tensor_bytes,
              io_bytes)
  result = op_graph.OpGraph(
      name=source.name, names=tuple(table.names), op_types=tuple(types),
      tensor_ops=np.repeat(np.arange(len(nodes)), np.diff(starts)),
      tensor_bytes=tensor_bytes, flops=flops, io_bytes=io_bytes,
      param_bytes=variable_bytes, groups=groups, allowed_types=allowed_types,
      pins=tuple(pins), user_pins=user_pins, devices=tuple(
          node.device for node in nodes), executions=frames.executions,
      stateful=table.flags(lambda node: kernels.is_stateful(node.op)),
      variables=_named(variables, table, groups),
      same_numbers=rounding.same_numbers(table, groups, allowed_types, pins,
                                         source.devices),
      element_types_by_name=element_types.by_name(table, called),
      made_on_host=host_memory.made(table, starts),
      **_acyclic(table, frames, shared_lists, starts),
      **_launches(table, types, properties, copied, called))
  return result, frames


def _fill_lists(table: node_table.NodeTable, frames: frames_lib.Frames,
                shared_lists: set[int], copied: Mapping[int, tuple[int, int]],
                starts: np.ndarray, tensor_bytes: np.ndarray,
                io_bytes: np.ndarray) -> None:
  """Writes the bytes of lists, [T], and of copies to lists, [N].

  Args:
    table: N nodes.
    frames: Control flow of the nodes.
    shared_lists: Ops that make empty lists for several loops.
    copied: Result of `tensor_lists.copied`.
    starts: [N + 1], where each op's tensors begin.
    tensor_bytes: [T], sizes of tensors, which are changed.
    io_bytes: [N], bytes that ops read and write, which are changed.
  """

  def bytes_of(tensor: tuple[int, int]) -> int:
    return int(tensor_bytes[starts[tensor[0]] + tensor[1]])

  for op, tensor in copied.items():
    tensor_bytes[starts[op]] = bytes_of(tensor)
    io_bytes[op] = 2 * bytes_of(tensor)
  for op, size in tensor_lists.list_bytes(table.nodes, table.edges, frames,
                                          shared_lists, bytes_of).items():
    tensor_bytes[starts[op]] = size


def _launches(table: node_table.NodeTable, types: Sequence[str],
              properties: op_properties.OpProperties,
              copied: Mapping[int, tuple[int, int]],
              called: Mapping[int, calls_lib.CallCost]) -> dict[str, Any]:
  """Returns the fields of an `OpGraph` that say how kernels run."""
  rounds = recurrence_rounds.by_name(table.nodes, types, properties.shape)
  rounds |= calls_lib.rounds(table.nodes, called)
  for op, tensor in copied.items():
    # A kernel copies each row.
    rounds[table.names[op]] = max((1., *(properties.shape(*tensor) or ())[:1]))
  on_host = np.flatnonzero(table.flags(kernels.works_on_host)).tolist()
  saving = winograd.by_name(table, properties.shape)
  saving |= {
      table.names[op]: call.winograd_share for op, call in called.items()
      if call.winograd_share
  }
  return {
      'rounds_by_name': rounds, 'winograd_by_name': saving,
      'host_ops': frozenset(table.names[op] for op in on_host)
  }


def _keep_numbers(sets: union_find.UnionFind, table: node_table.NodeTable,
                  devices: Sequence[str]) -> None:
  """Joins ops that would compute other numbers if they were apart."""
  wishes = table.each(pins_lib.has_wish)
  fusions.join(sets, table, wishes)
  sums.join(sets, table, wishes, devices)


def _node_facts(
    table: node_table.NodeTable, live: bool
) -> tuple[list[node_types.Signature], union_find.UnionFind, np.ndarray, tuple[
    str, ...]]:
  """Returns types, sets of ops, legal types and variables of nodes."""
  signatures = table.each(node_types.signature)
  sets = colocation.joined(table, signatures)
  allowed_types = _allowed_types(table, live)
  late_reads.join(sets, table, signatures, allowed_types)
  return signatures, sets, allowed_types, _variables(table)


def _variables(table: node_table.NodeTable) -> tuple[str, ...]:
  """Returns the variable names that ops are marked with [N]; '' if none."""
  result = [''] * len(table.nodes)
  for op in np.flatnonzero(table.flags(variable_names.is_marked)).tolist():
    result[op] = variable_names.of(table.nodes[op])
  return tuple(result)


def _named(variables: tuple[str, ...], table: node_table.NodeTable,
           groups: np.ndarray) -> tuple[str, ...]:
  """Adds guessed names of variables that are arguments without a name, [N]."""
  if not table.types & op_kinds.ARGUMENTS:
    return variables
  guessed = variable_names.guessed(table.nodes, np.asarray(table.edges), groups)
  return tuple(name or guessed.get(op, '') for op, name in enumerate(variables))


def _acyclic(table: node_table.NodeTable, frames: frames_lib.Frames,
             shared_lists: set[int], starts: np.ndarray) -> dict[str, Any]:
  """Returns the fields of an `OpGraph` on edges that do not close loops."""
  exits = np.array([(s, -1, t) for s, t in frames.exits], int).reshape(-1, 3)
  edges = np.concatenate([np.asarray(table.edges), exits])
  on_host = np.append(host_memory.read(table), np.zeros(len(exits), bool))
  # Each loop that begins with a shared empty list has a list of its own. So
  # such an edge carries no tensor.
  edges[np.isin(edges[:, 0], list(shared_lists)), 1] = -1
  back = table.flags(lambda node: node.op in op_kinds.NEXT_ITERATIONS)
  merges = table.flags(lambda node: node.op in op_kinds.MERGES)
  kept = ~(back[edges[:, 0]] & merges[edges[:, 2]])
  sources, outputs, targets = edges[kept].T
  return {
      'edges': np.stack([sources, targets], axis=1),
      'edge_tensors': np.where(outputs >= 0, starts[sources] + outputs, -1),
      'read_on_host': on_host[kept] & (outputs >= 0)
  }


def write(
    graph_def: graph_pb2.GraphDef, device_strings: Sequence[str],
    control_edges: Sequence[tuple[int, int]] = ()
) -> graph_pb2.GraphDef:
  """Returns a copy of a graph with the given devices and more control edges.

  Args:
    graph_def: N nodes.
    device_strings: [N], full device name of each node.
    control_edges: int [C, 2], pairs of nodes. The second node gets the first
      one as a control input, unless it already has this input.

  Raises:
    ValueError: the number of devices is not N, or an edge leads from a node to
      itself or to a node that does not exist.
  """
  if len(device_strings) != len(graph_def.node):
    raise ValueError(f'{len(device_strings)} devices for '
                     f'{len(graph_def.node)} nodes')
  result = graph_pb2.GraphDef()
  result.CopyFrom(graph_def)
  for node, device in zip(result.node, device_strings):
    node.device = device
  for first, then in np.asarray(control_edges, int).reshape(-1, 2).tolist():
    if first == then or not (0 <= first < len(result.node) and
                             0 <= then < len(result.node)):
      raise ValueError(f'There can be no control edge from node {first} to '
                       f'node {then} of {len(result.node)}.')
    text = f'^{result.node[first].name}'
    if text not in result.node[then].input:
      result.node[then].input.append(text)
  return result


def _tensors(
    properties: op_properties.OpProperties, edges: node_table.Edges, n: int,
    called: Mapping[int, calls_lib.CallCost]) -> tuple[np.ndarray, np.ndarray]:
  """Returns where each op's tensors begin [N + 1], and the bytes of each [T].

  Shape inference does not know the outputs of some ops. Outputs that an edge
  uses are added with 0 bytes. The memory that a call holds while it runs is one
  more output, which no op reads.
  """
  counts = np.diff(properties.output_starts)
  used = np.zeros(n, np.int64)
  sources, outputs, _ = np.asarray(edges).T
  np.maximum.at(used, sources, outputs + 1)
  wanted = np.maximum(counts, used)
  for op, call in called.items():
    wanted[op] = max(wanted[op], len(call.output_bytes)) + (call.held_bytes > 0)
  starts = np.concatenate([[0], np.cumsum(wanted)])
  sizes = np.zeros(starts[-1], np.int64)
  own = np.arange(len(properties.output_bytes))
  shift = np.repeat(starts[:-1] - properties.output_starts[:-1], counts)
  sizes[own + shift] = properties.output_bytes
  for op, call in called.items():
    outputs = sizes[starts[op]:starts[op + 1]]
    known = len(call.output_bytes)
    outputs[:known] = np.where(outputs[:known] > 0, outputs[:known],
                               call.output_bytes)
    if call.held_bytes:
      outputs[-1] = call.held_bytes
  return starts, sizes


def _bytes_of_variables(table: node_table.NodeTable,
                        unknown_dim: int) -> np.ndarray:
  """Returns `_variable_bytes` of all nodes, int64 [N]."""
  return np.array(
      table.of_kinds(lambda node: _variable_bytes(node, unknown_dim)),
      np.int64)[table.kinds]


def _variable_bytes(node: node_def_pb2.NodeDef, unknown_dim: int) -> int:
  """Returns the bytes of a handle's or reference's variable, or 0."""
  if pins_lib.is_variable_argument(node):
    shapes = node.attr['_handle_shapes'].list.shape
    shape = shapes[0] if len(shapes) else None
    dtype = node.attr['_handle_dtypes'].list.type[0]
  elif node.op in op_kinds.VARIABLES:
    shape, dtype = node.attr['shape'].shape, node.attr['dtype'].type
  else:
    return 0
  if shape is None or shape.unknown_rank or dtype in (types_pb2.DT_INVALID,
                                                      types_pb2.DT_STRING,
                                                      types_pb2.DT_VARIANT):
    return 0
  elements = math.prod(unknown_dim if d.size < 0 else d.size for d in shape.dim)
  return elements * dtypes.as_dtype(dtype).size


def _allowed_types(table: node_table.NodeTable, live: bool) -> np.ndarray:
  """Returns the device types with a kernel for each op, bool [N, 2].

  The argument of a variable may be where the variable can be. The type of an
  op's own device counts as allowed in a live graph.
  """

  def with_kernel(node: node_def_pb2.NodeDef) -> tuple[bool, ...]:
    if pins_lib.is_variable_argument(node):
      return kernels.types_for_variable(
          node.attr['_handle_dtypes'].list.type[0])
    return kernels.allowed_types(node)

  allowed = np.array(table.of_kinds(with_kernel), bool)
  if live:
    own = np.array(
        table.of_kinds(lambda node: rounding.device_type(node.device)))
    keeps = np.array(table.of_kinds(pins_lib.keeps_type), bool)
    allowed[keeps & (own >= 0)] = False
    allowed[own >= 0, own[own >= 0]] = True
  # Every op runs somewhere, so an op of unknown type may be on the CPU.
  allowed[~allowed.any(axis=1), op_graph.DEVICE_TYPES.index('CPU')] = True
  return allowed[table.kinds]

"""Costs of function calls that were not inlined.

Grappler inlines calls and lowers loops and conditions to dataflow. It does not
do so if a function is compiled by XLA, if devices differ, or if the program
switched it off (`lower_using_switch_merge`). Such a call has the cost of its
function: operations and bytes of all ops of the body, times their executions,
and the peak of the memory that they hold. A loop is lowered here
(`call_bodies`), so that its trip count is found as for other loops. Of the
branches of a condition, the one with more work counts, unless constants and
shapes decide the condition. XLA fuses ops, so its traffic is smaller than the
result.
"""

from __future__ import annotations

import collections
import dataclasses
import math
from typing import Any, Callable, Collection, Mapping, Sequence

import numpy as np
from tensorflow.core.framework import graph_pb2
from tensorflow.core.framework import node_def_pb2
from tensorflow.python.framework import dtypes
from tensorflow.python.framework import tensor_util

from gdp_grappler import errors
from gdp_grappler.graph import node_attributes
from gdp_grappler.graph import op_graph
from gdp_grappler.graph import op_kinds
from gdp_grappler.graph import winograd
from gdp_grappler.graph.control_flow import call_bodies
from gdp_grappler.graph.control_flow import lost_shapes
from gdp_grappler.graph.control_flow import merges
from gdp_grappler.graph.control_flow import values as values_lib

# Type of op that calls a function which XLA compiled.
_COMPILED = 'XlaLaunch'
# The attribute with the name of the called function, by type of op.
_CALLED = {**dict.fromkeys(op_kinds.PLAIN_CALLS, 'f'), _COMPILED: 'function'}
# Types of ops that call functions. An op may also have a function's name as
# type.
KINDS = op_kinds.CALLS | _CALLED.keys()
# Ops that pass on a value. The first input of a Merge represents all its
# inputs.
_SAME_VALUE = op_kinds.SAME_VALUE | op_kinds.MERGES
# Ops, and loops, that output the variable or the list of an input.
_SAME_HANDLE = _SAME_VALUE | op_kinds.LIST_CHANGES | op_kinds.WHILES
# Ops whose memory is not held by the call.
_OUTSIDE = op_kinds.ARGUMENTS | op_kinds.VARIABLES | {'Const'}
_MAX_ELEMENTS = 1024  # Of a constant that is read.
_MAX_DEPTH = 50  # Number of ops between a value and its source.

_Inputs = dict[int, list[values_lib.Tensor]]
_ShapeOf = Callable[[values_lib.Tensor], Sequence[int] | None]


@dataclasses.dataclass(frozen=True)
class CallCost:
  """The costs of one execution of a call.

  Attributes:
    flops: Arithmetic operations.
    io_bytes: Bytes that its ops read and write.
    output_bytes: Bytes of each output.
    held_bytes: Peak of the memory that the call holds, without its outputs.
    launches: How often its ops launch kernels, one after the other.
    values: For each output its value if it is a known number, such as the last
      counter of a loop; else None.
    element_type: The one of `op_graph.ELEMENT_TYPES` with most of the
      arithmetic; '' if there is none.
    winograd_share: Share of `flops` as in `OpGraph.winograd_by_name`.
  """

  flops: float
  io_bytes: float
  output_bytes: tuple[int, ...]
  held_bytes: int
  launches: float
  values: tuple[float | None, ...] = ()
  element_type: str = ''
  winograd_share: float = 0.


# A function's body as arrays, and a function that returns a tensor's known
# number.
Body = tuple[op_graph.OpGraph, Callable[[tuple[int, int]], float | None]]


class Calls:
  """Computes the costs of calls in one graph and in its functions."""

  def __init__(self, library: Any, read: Callable[[graph_pb2.GraphDef], Body],
               tell: Callable[[str], None] | None = None) -> None:
    """Initializes Calls.

    Args:
      library: FunctionDefLibrary of the graph.
      read: Function that reads the body of a function.
      tell: Function that is called with a line about each function that cannot
        be read.

    Raises:
      InvalidGraphError: a function calls itself. TensorFlow can neither inline
        it nor infer its shapes.
    """
    self._library = library
    self._functions = {f.signature.name: f for f in library.function}
    self._bodies = call_bodies.Bodies(self._functions)
    self._read = read
    self._tell = tell
    self._known: dict[tuple[object, ...], CallCost | None] = {}
    self._refuse_recursion()

  def find(self, nodes: Sequence[node_def_pb2.NodeDef], types: Sequence[str],
           edges: Sequence[tuple[int, int, int]],
           shape_of: _ShapeOf) -> dict[int, CallCost]:
    """Returns the costs of the calls among N nodes, by node.

    Calls of functions that cannot be read are left out.

    Args:
      nodes: [N], NodeDefs.
      types: [N], types of the nodes, because access to each NodeDef is slow.
      edges: (producer, output index or -1, consumer).
      shape_of: Function that returns the shape of a tensor; None if unknown.
    """
    called = set(filter(self._is_called, set(types)))
    ops = [i for i, kind in enumerate(types) if kind in called]
    if not ops:
      return {}
    inputs: _Inputs = collections.defaultdict(list)
    for source, output, target in edges:
      if output >= 0:
        inputs[target].append((source, output))
    values = values_lib.Values(nodes,
                               [inputs.get(op, []) for op in range(len(nodes))],
                               shape_of)
    result: dict[int, CallCost | None] = {}

    def price(op: int) -> CallCost | None:
      if op not in result:
        result[op] = None  # Ends every cycle.
        result[op] = self._call(nodes[op], [
            _argument(nodes, inputs, tensor, shape_of, number)
            for tensor in inputs[op]
        ])
      return result[op]

    def number(op: int, output: int) -> float | None:
      if types[op] not in called:
        value = values.value((op, output))
        return None if value is None or value.array.ndim else values.scalar(
            (op, output))
      call = price(op)
      return None if call is None or output >= len(call.values) else (
          call.values[output])

    for op in ops:
      price(op)
    return {op: call for op, call in result.items() if call is not None}

  def _refuse_recursion(self) -> None:
    """Raises an error if a function calls itself, directly or not."""
    calls = {
        name: {
            called for node in function.node_def if self._is_called(node.op)
            for called in self._names(node)
        } for name, function in self._functions.items()
    }
    left = set(calls)
    while left:
      leaves = {name for name in left if not calls[name] & left}
      if not leaves:
        raise errors.InvalidGraphError(
            f'Function "{min(left)}" calls itself, directly or through others, '
            'so its cost is unknown. Write it as a loop.')
      left -= leaves

  def _is_called(self, op_type: str) -> bool:
    return op_type in KINDS or op_type in self._functions

  def _call(self, node: node_def_pb2.NodeDef,
            arguments: Sequence[node_def_pb2.NodeDef]) -> CallCost | None:
    names = self._names(node)
    key = (node.op in op_kinds.WHILES, *names,
           *(a.SerializeToString(deterministic=True) for a in arguments))
    if key not in self._known:
      try:
        self._known[key] = self._price(node, names, arguments)
      except (errors.InvalidGraphError, ArithmeticError, KeyError, IndexError,
              RuntimeError, TypeError, ValueError) as error:
        self._known[key] = None
        if self._tell:
          reason = str(error).strip().splitlines() or [type(error).__name__]
          self._tell(f'The function "{names[0]}" of "{node.name}" cannot be '
                     f'read ({reason[0][:200]}); its call counts as nothing.')
    return self._known[key]

  def _names(self, node: node_def_pb2.NodeDef) -> list[str]:
    """Returns the names of the functions that a node calls."""
    if node.op in self._functions:
      return [node.op]
    if node.op in _CALLED:
      return [node.attr[_CALLED[node.op]].func.name]
    if node.op in op_kinds.WHILES:
      return [node.attr[key].func.name for key in ('cond', 'body')]
    if node.op in op_kinds.IFS:
      return [
          node.attr[key].func.name for key in ('else_branch', 'then_branch')
      ]
    return [f.name for f in node.attr['branches'].list.func]

  def _price(self, node: node_def_pb2.NodeDef, names: Sequence[str],
             arguments: Sequence[node_def_pb2.NodeDef]) -> CallCost:
    if node.op in op_kinds.WHILES:
      cond, body = names
      return self._graph_cost(
          self._bodies.loop(node.name, cond, body, arguments))
    if node.op not in op_kinds.CONDITIONS:
      return self._graph_cost(self._bodies.body(names[0], arguments))
    decider, arguments = arguments[0], arguments[1:]
    if decider.op == 'Const':
      value = int(tensor_util.MakeNdarray(decider.attr['value'].tensor))
      last = len(names) - 1
      names = [names[value if 0 <= value <= last else last]]
    return max((
        self._graph_cost(self._bodies.body(name, arguments)) for name in names),
               key=lambda c: (c.flops, c.launches))

  def _graph_cost(self, nodes: Sequence[node_def_pb2.NodeDef]) -> CallCost:
    graph_def = graph_pb2.GraphDef(node=nodes)
    if any(self._is_called(node.op) for node in nodes):
      graph_def.library.CopyFrom(self._library)
    graph, number = self._read(graph_def)
    owners = _owners(graph)
    outputs, values = {}, {}
    for (source, target), tensor in zip(graph.edges.tolist(),
                                        graph.edge_tensors.tolist()):
      if graph.op_types[target] == '_Retval' and tensor >= 0:
        index = nodes[target].attr['index'].i
        # A list that is an argument has the bytes of the elements pushed on it.
        outputs[index] = int(
            max(graph.tensor_bytes[tensor], graph.tensor_bytes[owners[tensor]]))
        first = np.searchsorted(graph.tensor_ops, source)
        values[index] = number((source, tensor - int(first)))
    sizes = tuple(size for _, size in sorted(outputs.items()))
    flops = graph.flops * graph.executions
    launches = graph.rounds * graph.executions * ~(
        graph.works_on_host | graph.where_type(op_kinds.NO_KERNEL.__contains__))
    return CallCost(float(flops.sum()),
                    float((graph.io_bytes * graph.executions).sum()), sizes,
                    max(0,
                        _peak_bytes(graph, owners) - sum(sizes)),
                    float(launches.sum()),
                    tuple(value for _, value in sorted(values.items())),
                    _element_type(graph.element_types, flops),
                    winograd.share(graph, flops))


def numbers(called: Mapping[int, CallCost]) -> dict[values_lib.Tensor, float]:
  """The outputs of calls that are known numbers.

  Args:
    called: The cost of each call, by op.
  """
  return {(op, output): value for op, call in called.items()
          for output, value in enumerate(call.values) if value is not None}


def rounds(nodes: Sequence[node_def_pb2.NodeDef],
           called: Mapping[int, CallCost]) -> dict[str, float]:
  """Calls that XLA does not compile, as in `OpGraph.rounds_by_name`.

  Args:
    nodes: [N], NodeDefs.
    called: The cost of each call, by op.
  """
  return {
      nodes[op].name: max(1., call.launches) for op, call in called.items()
      if nodes[op].op != _COMPILED and
      not node_attributes.of(nodes[op], '_XlaMustCompile').b
  }


def _argument(
    nodes: Sequence[node_def_pb2.NodeDef], inputs: _Inputs,
    tensor: values_lib.Tensor, shape_of: _ShapeOf,
    number: Callable[[int, int], float | None]) -> node_def_pb2.NodeDef:
  """Returns a node without name for an argument of a call."""
  result = node_def_pb2.NodeDef(op='_Arg')
  made = _made(nodes, inputs, tensor)
  maker = nodes[made[0]]
  if maker.op == 'Const' and math.prod(
      d.size
      for d in maker.attr['value'].tensor.tensor_shape.dim) <= _MAX_ELEMENTS:
    result.op = 'Const'
    for key in ('dtype', 'value'):
      result.attr[key].CopyFrom(maker.attr[key])
    return result
  known = number(*made)
  if known is not None:
    result.op = 'Const'
    result.attr['value'].tensor.CopyFrom(
        tensor_util.make_tensor_proto(known, dtypes.float64))
    return result
  _describe_handle(nodes, inputs, tensor, result)
  shape = shape_of(tensor)
  described = result.attr['_output_shapes'].list.shape.add()
  described.unknown_rank = shape is None
  for size in shape or ():
    described.dim.add(size=size)
  return result


def _describe_handle(nodes: Sequence[node_def_pb2.NodeDef], inputs: _Inputs,
                     tensor: values_lib.Tensor,
                     argument: node_def_pb2.NodeDef) -> None:
  """Writes what is behind a handle of a variable or a list, if it is known."""
  op, output = _made(nodes, inputs, tensor, _SAME_HANDLE)
  maker = nodes[op]

  def constant(place: int) -> np.ndarray | None:
    source = nodes[_made(nodes, inputs, inputs[op][place])[0]]
    return (tensor_util.MakeNdarray(source.attr['value'].tensor)
            if source.op == 'Const' else None)

  known = None if output else lost_shapes.elements(maker, constant)
  if maker.op == 'VarHandleOp':
    known = maker.attr['dtype'].type, maker.attr['shape'].shape
  if known is not None:
    argument.attr['_handle_dtypes'].list.type.append(known[0])
    argument.attr['_handle_shapes'].list.shape.add().CopyFrom(known[1])


def _made(nodes: Sequence[node_def_pb2.NodeDef], inputs: _Inputs,
          tensor: values_lib.Tensor,
          kinds: Collection[str] = _SAME_VALUE) -> values_lib.Tensor:
  """Returns the tensor whose value or handle reaches `tensor` unchanged.

  Ops of the given kinds pass values and handles on.
  """
  for _ in range(_MAX_DEPTH):
    op, output = tensor
    place = output if nodes[op].op in op_kinds.WHILES else 0
    if nodes[op].op not in kinds or place >= len(inputs.get(op, ())):
      break
    tensor = inputs[op][place]
  return tensor


def _element_type(element_types: np.ndarray, flops: np.ndarray) -> str:
  """Returns `CallCost.element_type` of ops, given by type and FLOPs [N]."""
  return next((name for name in op_graph.ELEMENT_TYPES
               if 2 * flops[element_types == name].sum() > flops.sum()), '')


def _owners(graph: op_graph.OpGraph) -> np.ndarray:
  """Returns, for each tensor, the tensor that owns its buffer, int [T]."""
  owners = np.arange(len(graph.tensor_ops))
  first: dict[int, int] = {}
  order = merges.live_first(graph)
  for target, tensor in zip(graph.edges[order, 1].tolist(),
                            graph.edge_tensors[order].tolist()):
    if tensor >= 0:
      first.setdefault(target, tensor)
  outputs = collections.defaultdict(list)
  for tensor, op in enumerate(graph.tensor_ops.tolist()):
    outputs[op].append(tensor)
  for op in graph.topological_order.tolist():
    if graph.op_types[op] in op_kinds.ALIASES and op in first:
      owners[outputs[op]] = owners[first[op]]
  return owners


def _peak_bytes(graph: op_graph.OpGraph, owners: np.ndarray) -> int:
  """Returns the peak bytes of tensors if the ops run one by one.

  Arguments are left out, because the caller holds them.
  """
  position = np.empty(graph.num_ops, int)
  position[graph.topological_order] = np.arange(graph.num_ops)
  ends = position[graph.tensor_ops].copy()
  data = graph.edge_tensors >= 0
  np.maximum.at(ends, owners[graph.edge_tensors[data]],
                position[graph.edges[data, 1]])
  held = np.where(owners == np.arange(len(owners)), graph.tensor_bytes, 0)
  held *= np.array([
      graph.op_types[op] not in _OUTSIDE and graph.executions[op] > 0
      for op in graph.tensor_ops.tolist()
  ], bool)
  changes = np.zeros(graph.num_ops + 1, np.int64)
  np.add.at(changes, position[graph.tensor_ops], held)
  np.add.at(changes, ends + 1, -held)
  return int(np.cumsum(changes).max(initial=0))

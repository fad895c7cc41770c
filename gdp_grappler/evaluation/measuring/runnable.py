"""Makes any graph runnable by a v1 Session, on synthetic data.

A Grappler pass receives the body of a function, which has arguments in the
place of a session's variables and inputs. This module turns every argument,
placeholder and batch into a variable that is set once, so that a step spends no
time on making data. Names and devices stay, so a placement of the original
graph fits. A variable that replaces data may have no kernel on its device, such
as an int32 variable on a GPU. The variable is then on the host. The data of a
real step come from the host, too.
"""

from __future__ import annotations

import dataclasses
import math
import re
from typing import Iterable, Mapping, Sequence
import zlib

import tensorflow as tf
from tensorflow.core.framework import graph_pb2
from tensorflow.core.framework import node_def_pb2
from tensorflow.core.framework import tensor_shape_pb2
from tensorflow.core.framework import types_pb2

from gdp_grappler import errors
from gdp_grappler.graph import assumptions
from gdp_grappler.graph import op_graph
from gdp_grappler.graph import op_kinds
from gdp_grappler.graph import source_graph
from gdp_grappler.graph.legality import kernels
from gdp_grappler.graph.sources import pruning

_SUFFIX = '/gdp_value'
_INITIALIZER = 'gdp_initialize'
# Types for which no synthetic values exist.
_OPAQUE = (types_pb2.DT_RESOURCE, types_pb2.DT_VARIANT)
_GPU = re.compile(r'device:GPU:\d+$')
_ON_GPU = op_graph.DEVICE_TYPES.index('GPU')
_DRAWN = (tf.float16, tf.bfloat16, tf.float32, tf.float64, tf.int32, tf.int64)


@dataclasses.dataclass(frozen=True)
class Variable:
  """A variable of a runnable graph.

  Attributes:
    name: Name of its node, a VarHandleOp or a VariableV2.
    dtype: Type of its value.
    shape: Shape of its value.
    is_input: True if it replaces data, False if it is a weight.
    owner: Node of the original graph whose device it shares.
  """

  name: str
  dtype: tf.DType
  shape: tuple[int, ...]
  is_input: bool
  owner: str

  @property
  def size_bytes(self) -> int:
    """Bytes of its value; 0 for strings."""
    if self.dtype == tf.string:
      return 0
    return math.prod(self.shape) * self.dtype.size


@dataclasses.dataclass(frozen=True, eq=False)
class Runnable:
  """A graph for a session.

  Attributes:
    graph_def: Nodes of the original graph, some with another type, and new
      nodes.
    owners: For every node, the op of the original graph whose device it shares;
      '' if the node may have any device.
    variables: Variables that the initializer sets.
    initializer: Name of the op that sets the variables; to be run once.
    targets: Names of the ops to run for one step.
  """

  graph_def: graph_pb2.GraphDef
  owners: tuple[str, ...]
  variables: tuple[Variable, ...]
  initializer: str
  targets: tuple[str, ...]

  def placed(
      self, devices: dict[str, str], control_edges: Iterable[tuple[str,
                                                                   str]] = ()
  ) -> graph_pb2.GraphDef:
    """A copy of the graph with every op on its device.

    Args:
      devices: Device of every op of the original graph.
      control_edges: Pairs of ops of the original graph; the second waits for
        the first. Pairs with an op that a step does not run are left out.

    Raises:
      MeasurementError: an op has no device.
    """
    result = graph_pb2.GraphDef()
    result.CopyFrom(self.graph_def)
    for node, owner in zip(result.node, self.owners):
      if owner and owner not in devices:
        raise errors.MeasurementError(
            f'The placement has no device for "{owner}". Place the graph that '
            'is to be measured.')
      node.device = devices[owner] if owner else ''
    _bring_home(result)
    nodes = {node.name: node for node in result.node}
    for first, second in control_edges:
      if first in nodes and second in nodes:
        nodes[second].input.append(f'^{first}')
    return result


def _bring_home(graph_def: graph_pb2.GraphDef) -> None:
  """Moves ops without a kernel for their GPU to its host.

  Ops that use a variable have to be on the variable's device. So a variable and
  all ops that read or set it go to the host if one of them has no kernel on the
  GPU.
  """
  touching: dict[str, list[node_def_pb2.NodeDef]] = {
      node.name: [node] for node in graph_def.node
      if node.op in op_kinds.VARIABLES
  }
  single = []
  for node in graph_def.node:
    # A control edge from a variable does not use the variable.
    handle = node.input[0].partition(':')[0] if node.input else ''
    if handle in touching:
      touching[handle].append(node)
    elif node.name not in touching:
      single.append([node])
  for unit in (*touching.values(), *single):
    if not all(map(_has_kernel, unit)):
      for node in unit:
        node.device = _GPU.sub('device:CPU:0', node.device)


def _has_kernel(node: node_def_pb2.NodeDef) -> bool:
  """Whether a node has a kernel for its device; True for CPUs."""
  return not _GPU.search(node.device) or kernels.allowed_types(node)[_ON_GPU]


def convert(source: source_graph.SourceGraph,
            batch_size: int = assumptions.DEFAULT_BATCH_SIZE) -> Runnable:
  """Makes a graph runnable.

  Args:
    source: A function graph or a v1 graph. It is not changed.
    batch_size: Size of every unknown dimension of inputs, see
      `graph_def_io.read`.

  Raises:
    MeasurementError: an input has an unknown number of dimensions, or is a
      resource or variant for which no synthetic value exists.
  """
  targets = _targets(source)
  graph_def = pruning.needed(source.graph_def, targets)
  nodes: list[node_def_pb2.NodeDef] = []
  converted: list[Variable] = []
  iterators = _iterators(graph_def)
  for node in graph_def.node:
    if node.name in iterators:
      continue
    new_nodes, new_variables = _convert_node(node, batch_size)
    nodes += new_nodes
    converted += new_variables
  result = graph_pb2.GraphDef(versions=graph_def.versions,
                              library=graph_def.library)
  result.node.extend(nodes)
  # Ops that produced a batch, such as a data set, are no longer needed.
  result = pruning.needed(result, targets)
  kept = {node.name: node for node in result.node}
  variables = tuple(v for v in converted if v.name in kept)
  owners = [node.name.split(_SUFFIX)[0] for node in result.node]
  setting = _initializer([(v, kept[v.name]) for v in variables])
  result.node.extend(node for node, _ in setting)
  owners += [owner for _, owner in setting]
  return Runnable(result, tuple(owners), variables, _INITIALIZER, targets)


def _targets(source: source_graph.SourceGraph) -> tuple[str, ...]:
  """Ops to run for a step.

  A function also runs for its side effects, whose ops may have no consumer.
  Grappler has removed the ops that a function does not need, so all ops without
  consumers are targets.
  """
  nodes = source.graph_def.node
  targets = source.fetches or pruning.fetches(source.graph_def)
  ends = op_kinds.ARGUMENTS | op_kinds.RETURNS
  if any(node.op in ends for node in nodes):
    targets += tuple(
        name for name in pruning.sinks(source.graph_def) if name not in targets)
    arguments = {node.name for node in nodes if node.op in op_kinds.ARGUMENTS}
    targets = tuple(t for t in targets if t not in arguments)
  return tuple(targets)


def _initializer(
    variables: Sequence[tuple[Variable, node_def_pb2.NodeDef]]
) -> list[tuple[node_def_pb2.NodeDef, str]]:
  """Nodes that set all variables, and their owners.

  Values are small, not negative and the same in every run. Weights are drawn
  such that weighted sums have the size of their terms, so that nothing
  overflows. Integers are 0 or 1, so that they are valid indices of classes or
  rows.
  """
  graph, owners, assignments = tf.Graph(), {}, []
  with graph.as_default():
    tf.graph_util.import_graph_def(
        graph_pb2.GraphDef(node=[node for _, node in variables]), name='')
    for i, (variable, _) in enumerate(variables):
      scope = f'{_INITIALIZER}/{i}/'
      owners[scope] = variable.owner
      with tf.name_scope(scope):
        assignments.append(
            _assign(graph.get_tensor_by_name(f'{variable.name}:0'), variable))
    with tf.control_dependencies(assignments):
      tf.raw_ops.NoOp(name=_INITIALIZER)
  present = {node.name for _, node in variables}
  return [(node, _owner(node.name, owners))
          for node in graph.as_graph_def().node if node.name not in present]


def _owner(name: str, owners: Mapping[str, str]) -> str:
  """The owner of a scope such as 'gdp_initialize/3/'; '' outside of any."""
  parts = name.split('/')
  return owners.get('/'.join(parts[:2]) + '/', '') if len(parts) > 2 else ''


def _assign(handle: tf.Tensor, variable: Variable) -> tf.Operation:
  value = _initial_value(variable)
  if handle.dtype == tf.resource:
    return tf.raw_ops.AssignVariableOp(resource=handle, value=value)
  return tf.raw_ops.Assign(ref=handle, value=value, validate_shape=False).op


def _iterators(graph_def: graph_pb2.GraphDef) -> set[str]:
  """Names of iterator arguments, which only ops that get batches read."""
  readers: dict[str, set[str]] = {}
  for node in graph_def.node:
    for tensor in node.input:
      if not tensor.startswith('^'):
        readers.setdefault(tensor.partition(':')[0], set()).add(node.op)
  return {
      n.name for n in graph_def.node
      if n.op in op_kinds.ARGUMENTS and n.attr['T'].type in _OPAQUE and
      readers.get(n.name, {''}) <= op_kinds.BATCHES
  }


def _convert_node(
    node: node_def_pb2.NodeDef,
    batch_size: int) -> tuple[list[node_def_pb2.NodeDef], list[Variable]]:
  """Nodes and variables that replace one node."""
  if (node.op in op_kinds.ARGUMENTS and
      node.attr['T'].type == types_pb2.DT_RESOURCE):
    return _variable_argument(node, batch_size)
  if node.op in op_kinds.ARGUMENTS:
    shape = _argument_shape(node)
    return _inputs(node, [node.attr['T'].type], [shape], batch_size)
  if node.op in op_kinds.PLACEHOLDERS:
    return _inputs(node, [node.attr['dtype'].type], [node.attr['shape'].shape],
                   batch_size)
  if node.op in op_kinds.BATCHES:
    return _inputs(node, list(node.attr['output_types'].list.type),
                   list(node.attr['output_shapes'].list.shape), batch_size)
  result = node_def_pb2.NodeDef()
  result.CopyFrom(node)
  _strip(result)
  if node.op in op_kinds.RETURNS:
    result.op = 'Identity'
    del result.attr['index']
  elif node.op in op_kinds.VARIABLES:
    shape = _known(node.attr['shape'].shape, batch_size, node)
    return [result], [
        Variable(node.name, tf.as_dtype(node.attr['dtype'].type), shape, False,
                 node.name)
    ]
  return [result], []


def _variable_argument(
    node: node_def_pb2.NodeDef,
    batch_size: int) -> tuple[list[node_def_pb2.NodeDef], list[Variable]]:
  """A variable that replaces an argument with the handle of a variable."""
  shapes = node.attr['_handle_shapes'].list.shape
  types = node.attr['_handle_dtypes'].list.type
  if len(shapes) != 1 or len(types) != 1:
    raise errors.MeasurementError(
        f'Argument "{node.name}" is a resource but no variable, so its value '
        'cannot be made up. Use simulated steps for this graph.')
  shape = _known(shapes[0], batch_size, node)
  result = _handle(node.name, types[0], shape, node.device)
  return [result], [
      Variable(node.name, tf.as_dtype(types[0]), shape, False, node.name)
  ]


def _inputs(
    node: node_def_pb2.NodeDef, types: Sequence[int],
    shapes: Sequence[tensor_shape_pb2.TensorShapeProto],
    batch_size: int) -> tuple[list[node_def_pb2.NodeDef], list[Variable]]:
  """Variables and their reads that replace a node whose outputs are data."""
  handles, reads, variables = [], [], []
  for i, (dtype, shape) in enumerate(zip(types, shapes)):
    if dtype in _OPAQUE:
      raise errors.MeasurementError(
          f'Input "{node.name}" is a {tf.as_dtype(dtype).name}, whose value '
          'cannot be made up. Use simulated steps for this graph.')
    name = f'{node.name}{_SUFFIX}_{i}'
    known = _known(shape, batch_size, node)
    handles.append(_handle(name, dtype, known, node.device))
    read = node_def_pb2.NodeDef(name=f'{name}/read', op='ReadVariableOp',
                                input=[name], device=node.device)
    read.attr['dtype'].type = dtype
    reads.append(read)
    variables.append(Variable(name, tf.as_dtype(dtype), known, True, node.name))
  data = node_def_pb2.NodeDef(
      name=node.name, op='IdentityN', device=node.device,
      input=[read.name for read in reads]
      + [i for i in node.input if i.startswith('^')])
  data.attr['T'].list.type.extend(types)
  return handles + reads + [data], variables


def _handle(name: str, dtype: int, shape: tuple[int, ...],
            device: str) -> node_def_pb2.NodeDef:
  result = node_def_pb2.NodeDef(name=name, op='VarHandleOp', device=device)
  result.attr['dtype'].type = dtype
  result.attr['shape'].shape.CopyFrom(tf.TensorShape(shape).as_proto())
  result.attr['shared_name'].s = name.encode()
  return result


def _argument_shape(
    node: node_def_pb2.NodeDef) -> tensor_shape_pb2.TensorShapeProto:
  shapes = node.attr['_output_shapes'].list.shape
  return shapes[0] if shapes else tensor_shape_pb2.TensorShapeProto(
      unknown_rank=True)


def _known(shape: tensor_shape_pb2.TensorShapeProto, batch_size: int,
           node: node_def_pb2.NodeDef) -> tuple[int, ...]:
  """The shape with `batch_size` for unknown dimensions."""
  if shape.unknown_rank:
    raise errors.MeasurementError(
        f'The shape of "{node.name}" is unknown, so its value cannot be made '
        'up. Give its tensors static shapes, or use simulated steps.')
  return tuple(d.size if d.size >= 0 else batch_size for d in shape.dim)


def _strip(node: node_def_pb2.NodeDef) -> None:
  """Removes attributes that refer to the program of the original graph."""
  for key in ('_class', '_XlaHasReferenceVars'):
    node.attr.pop(key, None)


def _initial_value(variable: Variable) -> tf.Tensor:
  """The initial value of a variable; see `_initializer`."""
  dtype, shape = variable.dtype, variable.shape
  seed = [zlib.crc32(variable.name.encode()) & 0x7fffffff, 0]
  if dtype == tf.string:
    return tf.fill(shape, '')
  if dtype in _DRAWN and dtype.is_floating:
    low, high = _range(variable)
    return tf.random.stateless_uniform(shape, seed, low, high, dtype)
  if variable.is_input and (dtype.is_integer or dtype.is_bool):
    drawn = tf.random.stateless_uniform(shape, seed, 0, 2, tf.int32)
    return tf.cast(drawn, dtype)
  return tf.zeros(shape, dtype)


def _range(variable: Variable) -> tuple[float, float]:
  """Lowest and highest value of a floating point variable."""
  if variable.is_input:
    return 0., 1.
  if not variable.shape:  # A learning rate, or the sum behind a metric.
    return 1e-4, 1e-3
  if len(variable.shape) == 1:  # Biases, scales, moving variances.
    return .5, 1.5
  return 0., 2. / max(1, math.prod(variable.shape[:-1]))

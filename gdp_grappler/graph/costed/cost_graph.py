"""Reads a CostGraphDef: measured costs of a graph, without types of ops.

It is the `RunMetadata.cost_graph` of a session whose GraphOptions have
`build_cost_model` set. Per node it has the slowest execution in microseconds,
sizes of outputs, and temporary and persistent memory. Its fields are those of
tensorflow/core/framework/cost_graph.proto. This module declares them once more,
so that the file can be read without TensorFlow.

* If any node ran on a GPU, each node stays on its type of device, because its
  time on the other type is unknown. If all ran on CPUs, the times count for any
  device.
* An output that aliases an input needs no memory, like the output of
  `Identity`. Neither does an output that a node without inputs, such as a
  variable or a constant, holds in all steps anyway. A resource variable holds
  the bytes of its largest `ReadVariableOp`, whose outputs alias it.
* A pair of nodes that sent the value of `x` to another device, `x/_2` and
  `x/_3`, becomes an edge from `x`.
"""

from __future__ import annotations

import functools
import re
from typing import Any, Mapping, Sequence

from google.protobuf import descriptor_pb2
from google.protobuf import descriptor_pool
from google.protobuf import message as message_lib
from google.protobuf import message_factory

from gdp_grappler import errors
from gdp_grappler import files
from gdp_grappler import text_protos
from gdp_grappler.graph import op_graph
from gdp_grappler.graph.costed import given

_TEXT = re.compile(r'\b(compute_cost|input_info|output_info|control_input|'
                   r'is_final|temporary_memory_size|persistent_memory_size)\b')
_NESTED = re.compile(r'^[ \t]*cost_graph\s*(?::\s*)?{', re.MULTILINE)
_START = re.compile(r'\s*(#[^\n]*\n\s*)*(node|cost_graph|step_stats|cost)\b')
_GRAPH_DEF = re.compile(r'\bop\s*:\s*["\']')
_READ = re.compile(r'(.*/)?ReadVariableOp(_\d+)?')
_SENT = re.compile(r'(?P<base>.+)/_(?P<number>\d+)')
_ENDS = ('_SOURCE', '_SINK')
# Limit of outputs that are used but not described. A real graph has hardly any.
_MOST_UNTOLD = 1 << 22
# Number of the type of resources in types.proto.
_RESOURCE = 20
# Number of the first reference type in types.proto.
_FIRST_REF = 101
# Names of types in the order of tensorflow/core/framework/types.proto.
_DTYPES = (
    'INVALID FLOAT DOUBLE INT32 UINT8 INT16 INT8 STRING COMPLEX64 INT64 BOOL '
    'QINT8 QUINT8 QINT32 BFLOAT16 QINT16 QUINT16 UINT16 COMPLEX128 HALF '
    'RESOURCE VARIANT UINT32 UINT64 FLOAT8_E5M2 FLOAT8_E4M3FN FLOAT8_E4M3FNUZ '
    'FLOAT8_E4M3B11FNUZ FLOAT8_E5M2FNUZ INT4 UINT4 INT2 UINT2 FLOAT4_E2M1FN'
).split()


def is_cost_graph(data: bytes) -> bool:
  """Whether bytes are a CostGraphDef or a RunMetadata with one."""
  text = _text(data)
  if _START.match(text) and _TEXT.search(text):
    return bool(_NESTED.search(text)) or not _GRAPH_DEF.search(text)
  return _parse_binary(data) is not None


def read(path: str, data: bytes) -> tuple[op_graph.OpGraph, given.GivenCosts]:
  """Reads a graph.

  Args:
    path: Path of the file, for messages.
    data: Content of the file.

  Raises:
    InvalidGraphError: the file is damaged, or a node or a field is wrong.
  """
  message = _parse_binary(data) or _parse_text(path, data)
  nodes = [
      node for node in message.node if node.device or node.name not in _ENDS
  ]
  if not nodes:
    raise given.wrong(
        path, 'node', 'there are none; run a step with '
        'build_cost_model set and write its cost_graph')
  index = _index(path, message.node, nodes)
  on_gpu = any(_kind(node) == 'GPU' for node in nodes)
  tells = any(
      output.alias_input_port for node in nodes for output in node.output_info)
  ops = [_op(path, node, on_gpu, tells) for node in nodes]
  edges = _edges(path, nodes, ops, index, tells)
  _hold_variables(nodes, ops, edges)
  ops, edges = _without_transfers(nodes, ops, edges)
  return given.assemble(path, given.graph_name(path), ops, edges)


def _index(path: str, all_nodes: Any, nodes: Sequence[Any]) -> dict[int, int]:
  """Returns the number of each node by its id; -1 for the ends of the graph."""
  names, result = set(), {node.id: -1 for node in all_nodes}
  for number, node in enumerate(nodes):
    if not node.name:
      raise given.wrong(path, f'node[{number}]', '"name" is missing; add it')
    if node.name in names:
      raise given.wrong(path, f'node "{node.name}"',
                        'it appears twice; rename one')
    names.add(node.name)
    result[node.id] = number
  if len(result) < len(all_nodes):
    first: dict[int, int] = {}
    twice = next(node for i, node in enumerate(all_nodes)
                 if first.setdefault(node.id, i) < i)
    raise given.wrong(path, f'node "{twice.name}", field "id"',
                      f'{twice.id} is the id of another node as well')
  return result


def _op(path: str, node: Any, on_gpu: bool, tells: bool) -> given.Op:

  def size(field: str) -> int:
    return given.bytes_of(path, f'node "{node.name}", field "{field}"',
                          getattr(node, field))

  outputs = []
  for i, output in enumerate(node.output_info):
    # -1 stands for an output that no step produced while it was measured.
    held = 0 if output.size == -1 or output.dtype == _RESOURCE else output.size
    outputs.append(
        given.bytes_of(path,
                       f'node "{node.name}", field "output_info[{i}].size"',
                       held))
  kind, op_type = _kind(node), _op_type(node, tells)
  return given.Op(
      node.name, op_type, {
          given.ANYWHERE:
              given.number_of(path, f'node "{node.name}", field "compute_cost"',
                              node.compute_cost, 'a number of microseconds')
              / 1e6
      }, param_bytes=max(size('persistent_memory_size'),
                         sum(outputs) if op_type == 'VariableV2' else 0),
      workspace_bytes=size('temporary_memory_size') or
      (size('host_temp_memory_size') + size('device_temp_memory_size')),
      outputs=outputs, device=node.device, allowed=tuple(
          not on_gpu or kind in ('', name) for name in op_graph.DEVICE_TYPES))


def _op_type(node: Any, tells: bool) -> str:
  """Returns a type that tells the simulator whose memory the outputs use."""
  outputs = node.output_info
  if outputs and not node.input_info and (
      all(o.dtype >= _FIRST_REF for o in outputs) or
      0 < sum(o.size for o in outputs) <= node.persistent_memory_size):
    return 'VariableV2'
  if _READ.fullmatch(node.name) and len(node.input_info) == 1:
    return 'ReadVariableOp'
  if tells and node.input_info and outputs and all(
      0 <= o.alias_input_port < len(node.input_info) for o in outputs):
    return 'Identity'
  return 'CostGraphNode'


def _edges(path: str, nodes: Sequence[Any], ops: Sequence[given.Op],
           index: Mapping[int, int], tells: bool) -> list[tuple[int, int, int]]:
  result, untold = [], 0
  for target, node in enumerate(nodes):
    inputs = []
    for i, source in enumerate(node.input_info):
      where = f'node "{node.name}", field "input_info[{i}]'
      number = _known(path, f'{where}.preceding_node"', source.preceding_node,
                      index)
      if not 0 <= source.preceding_port < 1 << 16:
        raise given.wrong(
            path, f'{where}.preceding_port"', 'it is '
            f'{source.preceding_port}; give an output, from 0 on')
      if number >= 0:
        outputs = ops[number].outputs
        untold += max(source.preceding_port + 1 - len(outputs), 0)
        if untold > _MOST_UNTOLD:
          raise given.wrong(
              path, f'{where}.preceding_port"', f'with it, {untold} outputs '
              'have no output_info; the file is damaged, write it again')
        outputs += [0] * (source.preceding_port + 1 - len(outputs))
        inputs.append((number, source.preceding_port, target))
    if tells and ops[target].op_type == 'Identity':
      first = node.output_info[0].alias_input_port
      # The simulator assumes that `Identity` outputs its first input.
      inputs = inputs[first:first + 1] + inputs[:first] + inputs[first + 1:]
    result += inputs
    for i, source in enumerate(dict.fromkeys(node.control_input)):
      number = _known(path, f'node "{node.name}", field "control_input[{i}]"',
                      source, index)
      if number >= 0:
        result.append((number, -1, target))
  return result


def _known(path: str, where: str, node_id: int, index: Mapping[int,
                                                               int]) -> int:
  if node_id not in index:
    raise given.wrong(
        path, where, f'there is no node of id {node_id}; the '
        'file may be cut off, write it again')
  return index[node_id]


def _hold_variables(nodes: Sequence[Any], ops: Sequence[given.Op],
                    edges: Sequence[tuple[int, int, int]]) -> None:
  """Gives resource variables the bytes of the ops that read them."""
  for source, output, target in edges:
    made = nodes[source].output_info
    if ops[target].op_type == 'ReadVariableOp' and 0 <= output < len(made) and (
        made[output].dtype == _RESOURCE):
      ops[source].param_bytes = max(ops[source].param_bytes,
                                    *ops[target].outputs, 0)


def _without_transfers(
    nodes: Sequence[Any], ops: list[given.Op], edges: list[tuple[int, int, int]]
) -> tuple[list[given.Op], list[tuple[int, int, int]]]:
  """Replaces pairs of nodes that send and receive a value by edges."""
  numbers = {op.name: i for i, op in enumerate(ops)}
  inputs: dict[int, list[tuple[int, int]]] = {}
  for source, output, target in edges:
    inputs.setdefault(target, []).append((source, output))
  behind: dict[int, tuple[int, int] | None] = {}
  for receiver, op in enumerate(ops):
    match = _SENT.fullmatch(op.name)
    if match is None:
      continue
    sender = numbers.get(f'{match["base"]}/_{int(match["number"]) - 1}')
    if sender is None or nodes[sender].device == nodes[receiver].device:
      continue
    sent = inputs.get(sender, ())
    if (len(sent) == 1 and sent[0][1] >= 0 and
        not nodes[receiver].input_info and
        ops[sent[0][0]].name == match['base']):
      behind[receiver] = sent[0]
      behind[sender] = None
  if not behind:
    return ops, edges
  joined = []
  for source, output, target in edges:
    if target not in behind:
      sent_tensor = behind.get(source)
      if sent_tensor is not None:
        source, output = sent_tensor[0], sent_tensor[1] if output >= 0 else -1
      joined.append((source, output, target))
  kept = {
      old: new
      for new, old in enumerate(i for i in range(len(ops)) if i not in behind)
  }
  return [ops[i] for i in kept
         ], [(kept[s], o, kept[t]) for s, o, t in joined if s in kept]


def _kind(node: Any) -> str:
  """'CPU' or 'GPU'; '' for a node whose device the file does not contain."""
  found = re.search(r'(?:^|[:/])(CPU|GPU):\d+$', node.device, re.IGNORECASE)
  return found[1].upper() if found else ''


def _parse_binary(data: bytes) -> Any:
  """Parses a binary CostGraphDef; None if the bytes are something else.

  Other kinds of graphs have no numbers in the fields of ids, costs and sizes.
  """
  for kind, field in (('CostGraphDef', None), ('RunMetadata', 'cost_graph')):
    try:
      message = _messages()[kind].FromString(data)
    except message_lib.DecodeError:
      continue
    graph = getattr(message, field) if field else message
    if any(node.id and node.name for node in graph.node):
      return graph
  return None


def _text(data: bytes) -> str:
  """Decodes bytes; '' for bytes that are not text, or are too many."""
  if len(data) > files.MOST_TEXT_BYTES or b'\0' in data:
    return ''
  try:
    return data.decode()
  except UnicodeDecodeError:
    return ''


def _parse_text(path: str, data: bytes) -> Any:
  text = _text(data)
  whole = _NESTED.search(text)
  message = _messages()['RunMetadata' if whole else 'CostGraphDef']()
  try:
    text_protos.parse(text, message, allow_unknown_field=True)
  except ValueError as error:
    raise errors.InvalidGraphError(
        f'{path} is a damaged CostGraphDef: {error}. Write it again.'
    ) from error
  return message.cost_graph if whole else message


@functools.cache
def _messages() -> dict[str, type[Any]]:
  """Message classes, in a pool apart from TensorFlow's same classes."""
  file = descriptor_pb2.FileDescriptorProto(name='gdp_cost_graph.proto',
                                            package='gdp', syntax='proto3')
  types = file.enum_type.add(name='DataType')
  for first, ending in ((0, ''), (_FIRST_REF - 1, '_REF')):
    for i, name in enumerate(_DTYPES):
      if i or not ending:
        types.value.add(name=f'DT_{name}{ending}', number=first + i)
  _declare(file, 'InputInfo', preceding_node=(1, 'INT32'),
           preceding_port=(2, 'INT32'))
  _declare(file, 'OutputInfo', size=(1, 'INT64'), alias_input_port=(2, 'INT64'),
           dtype=(4, 'ENUM', 'DataType'))
  _declare(file, 'Node', name=(1, 'STRING'), device=(2, 'STRING'),
           id=(3, 'INT32'), input_info=(4, 'MESSAGE', 'InputInfo', True),
           output_info=(5, 'MESSAGE', 'OutputInfo', True),
           temporary_memory_size=(6, 'INT64'), persistent_memory_size=(12,
                                                                       'INT64'),
           host_temp_memory_size=(10, 'INT64'),
           device_temp_memory_size=(11, 'INT64'), compute_cost=(9, 'INT64'),
           control_input=(8, 'INT32', '', True))
  _declare(file, 'CostGraphDef', node=(1, 'MESSAGE', 'Node', True))
  _declare(file, 'RunMetadata', cost_graph=(2, 'MESSAGE', 'CostGraphDef'))
  pool = descriptor_pool.DescriptorPool()
  pool.Add(file)
  return {
      name:
          message_factory.GetMessageClass(
              pool.FindMessageTypeByName(f'gdp.{name}'))
      for name in ('CostGraphDef', 'RunMetadata')
  }


def _declare(file: descriptor_pb2.FileDescriptorProto, message: str, /,
             **fields: Any) -> None:
  """Adds a message with fields (number, type[, type's name[, repeated]])."""
  declared = file.message_type.add(name=message)
  kinds = descriptor_pb2.FieldDescriptorProto
  for field, (number, kind, *more) in fields.items():
    declared.field.add(
        name=field, number=number, type=getattr(kinds, f'TYPE_{kind}'),
        type_name=f'.gdp.{more[0]}' if more and more[0] else None,
        label=kinds.LABEL_REPEATED if len(more) > 1 else kinds.LABEL_OPTIONAL)

"""Makes inconsistent graphs: valid protos whose nodes contradict each other.

Random changes of bytes hardly ever make such a graph, and TensorFlow does not
check for all of them.
"""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
from tensorflow.core.framework import graph_pb2
from tensorflow.core.protobuf import meta_graph_pb2
from tensorflow.core.protobuf import saved_model_pb2

Rng = np.random.Generator
_SIZES = -5, -1, 0, 7, 1 << 40, 1 << 62
_TYPES = 0, 1, 3, 20, 21, 101, 999
_TEXTS = b'', b'\xff\xfe', b'NHWC9', b'x' * 100_000
_NAMES = '', 'a b', 'x' * 5000, '../x', '\u00e9'
_DEVICES = '/device:GPU:9', 'anything', '/job:x/task:99', '/device:TPU_SYSTEM:0'


def lying(kind: str, data: bytes, rng: Rng) -> bytes:
  """Returns a graph with a few changes in its nodes or functions.

  Args:
    kind: 'saved_model', 'meta_graph' or 'graph_def'.
    data: A valid graph of this kind.
    rng: Random numbers of the changes.
  """
  proto, graph_def = _PARSED[kind](data)
  for _ in range(rng.integers(1, 4)):
    nodes = [*graph_def.node]
    for function in graph_def.library.function:
      nodes += function.node_def
    node, other = (nodes[i] for i in rng.integers(len(nodes), size=2))
    _pick(_CHANGES, rng)(graph_def, node, other, rng)
  return proto.SerializeToString()


def _saved_model(data: bytes) -> tuple[Any, graph_pb2.GraphDef]:
  proto = saved_model_pb2.SavedModel.FromString(data)
  return proto, proto.meta_graphs[0].graph_def


def _meta_graph(data: bytes) -> tuple[Any, graph_pb2.GraphDef]:
  proto = meta_graph_pb2.MetaGraphDef.FromString(data)
  return proto, proto.graph_def


def _graph_def(data: bytes) -> tuple[Any, graph_pb2.GraphDef]:
  proto = graph_pb2.GraphDef.FromString(data)
  return proto, proto


_PARSED: dict[str, Callable[[bytes], tuple[Any, graph_pb2.GraphDef]]] = {
    'saved_model': _saved_model, 'meta_graph': _meta_graph,
    'graph_def': _graph_def
}


def _pick(choices: Any, rng: Rng) -> Any:
  choices = list(choices)
  return choices[rng.integers(len(choices))]


def _lose_attribute(graph: Any, node: Any, other: Any, rng: Rng) -> None:
  del graph, other
  if node.attr:
    del node.attr[_pick(sorted(node.attr), rng)]


def _take_attribute(graph: Any, node: Any, other: Any, rng: Rng) -> None:
  del graph
  if node.attr and other.attr:
    node.attr[_pick(sorted(node.attr),
                    rng)].CopyFrom(other.attr[_pick(sorted(other.attr), rng)])


def _change_values(graph: Any, node: Any, other: Any, rng: Rng) -> None:
  del graph, other
  for key in sorted(node.attr):
    value = node.attr[key]
    if value.HasField('type'):
      value.type = _pick(_TYPES, rng)
    elif value.HasField('i'):
      value.i = _pick(_SIZES, rng)
    elif value.HasField('s'):
      value.s = _pick(_TEXTS, rng)
    elif value.HasField('shape'):
      value.shape.dim.add(size=_pick(_SIZES, rng))
    elif value.HasField('tensor'):
      value.tensor.tensor_shape.dim.add(size=_pick(_SIZES, rng))
    elif value.HasField('list'):
      value.list.type.extend([1] * _pick((1, 1000), rng))
      value.list.shape.add().dim.add(size=_pick(_SIZES, rng))


def _tear_values(graph: Any, node: Any, other: Any, rng: Rng) -> None:
  del graph, other, rng
  for value in node.attr.values():
    if value.HasField('tensor'):
      value.tensor.tensor_content = b'\1\2\3'


def _lose_input(graph: Any, node: Any, other: Any, rng: Rng) -> None:
  del graph, other
  if node.input:
    del node.input[rng.integers(len(node.input))]


def _add_input(graph: Any, node: Any, other: Any, rng: Rng) -> None:
  del graph
  name = _pick((other.name, f'^{other.name}', node.name, *other.input), rng)
  node.input.insert(int(rng.integers(len(node.input) + 1)), name)


def _change_input(graph: Any, node: Any, other: Any, rng: Rng) -> None:
  del graph
  if node.input:
    place = int(rng.integers(len(node.input)))
    node.input[place] = other.name + _pick(('', ':0', ':1', ':7'), rng)


def _change_op(graph: Any, node: Any, other: Any, rng: Rng) -> None:
  del graph, rng
  node.op = other.op


def _change_name(graph: Any, node: Any, other: Any, rng: Rng) -> None:
  del graph
  node.name = _pick((*_NAMES, other.name), rng)


def _change_place(graph: Any, node: Any, other: Any, rng: Rng) -> None:
  del graph
  node.device = _pick(_DEVICES, rng)
  node.attr['_class'].list.s.append(
      f'loc:@{_pick((other.name, "nobody", ""), rng)}'.encode())
  node.attr['_output_shapes'].list.shape.add().dim.add(size=_pick(_SIZES, rng))


def _change_function(graph: Any, node: Any, other: Any, rng: Rng) -> None:
  if not graph.library.function:
    return
  function = _pick(graph.library.function, rng)
  signature = function.signature
  for args in _pick(((signature.input_arg,), (signature.output_arg,)), rng):
    if not args:
      args.add(name='more', type=1)
    elif rng.integers(2):
      args.pop()
    else:
      args[0].type = _pick(_TYPES, rng)
  if function.ret and rng.integers(2):
    function.ret[_pick(sorted(function.ret), rng)] = f'{other.name}:output:0'
  if not rng.integers(4):
    signature.name = node.name


def _change_call(graph: Any, node: Any, other: Any, rng: Rng) -> None:
  """Changes the first node that calls a function; ignores `node`."""
  del node, other
  for body in (graph.node, *(f.node_def for f in graph.library.function)):
    for caller in body:
      for value in caller.attr.values():
        if value.func.name and rng.integers(2):
          value.func.name = _pick(
              ('nobody', '',
               *(f.signature.name for f in graph.library.function)), rng)
          return


_CHANGES = (_lose_attribute, _take_attribute, _change_values, _tear_values,
            _lose_input, _add_input, _change_input, _change_op, _change_name,
            _change_place, _change_function, _change_call)

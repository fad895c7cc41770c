"""GraphDefs of any size: transformer stacks and unrolled recurrent networks.

TensorFlow takes minutes to trace a graph of a million ops. So a layer, or a
time step of a recurrent layer, is traced once with its gradient. Copies are
then connected as in a traced graph: a copy reads the outputs of the one before,
and gradients go the other way.
"""

from __future__ import annotations

import dataclasses
from typing import Callable, Mapping, Sequence

import tensorflow as tf
from tensorflow.core.framework import graph_pb2

from gdp_grappler.graph import source_graph

_BATCH = 16  # Examples per step.
_WIDTH = 64  # Size of an embedding and of a state.
_HEADS = 4  # Heads of an attention layer.
_RATE = 1e-3  # Learning rate.
_RECURRENT_LAYERS = 4  # Layers of the recurrent graph.
_v1 = tf.compat.v1


@dataclasses.dataclass(frozen=True)
class _Part:
  """A part of a model that repeats.

  Attributes:
    graph_def: Nodes of the part.
    given: Nodes that stand for the inputs of the part.
    made: Names of the tensors that the next part reads.
    shared: Nodes that all copies of a layer have in common.
  """

  graph_def: graph_pb2.GraphDef
  given: Mapping[str, str]
  made: Mapping[str, str]
  shared: frozenset[str]


def transformer(ops: int) -> source_graph.SourceGraph:
  """Returns a training step of attention layers with about this many ops."""
  layer = _traced(_attention_layer)
  result = graph_pb2.GraphDef()
  count = max(ops // len(layer.graph_def.node), 1)
  _add(result, 'input', 'Placeholder', (_BATCH * 8, _WIDTH))
  _add(result, 'ones', 'Placeholder', (_BATCH * 8, _WIDTH))
  for number in range(count):
    before = _tensor(layer, 'y', _layer(number - 1)) if number else 'input'
    above = (_tensor(layer, 'dx', _layer(number + 1)) if number
             + 1 < count else 'ones')
    _append(result, layer, _layer(number), _layer(number),
            {'x': before, 'dy': above})
  return source_graph.SourceGraph(f'transformer_{ops}', result,
                                  ('input', 'ones'))


def recurrent(ops: int) -> source_graph.SourceGraph:
  """Returns a training step of recurrent layers with about this many ops."""
  cell = _traced(_cell)
  result = graph_pb2.GraphDef()
  steps = max(ops // (_RECURRENT_LAYERS * len(cell.graph_def.node)), 1)
  for name in ('input', 'zeros', 'no_gradient'):
    _add(result, name, 'Placeholder', (_BATCH, _WIDTH))
  _add(result, 'no_weights', 'Placeholder', (2 * _WIDTH, 4 * _WIDTH))

  def of(what: str, layer: int, step: int, otherwise: str) -> str:
    there = 0 <= layer < _RECURRENT_LAYERS and 0 <= step < steps
    return _tensor(cell, what, _step(layer, step)) if there else otherwise

  for layer in range(_RECURRENT_LAYERS):
    for step in range(steps):
      _append(
          result, cell, _step(layer, step), _layer(layer), {
              'x': of('h', layer - 1, step, 'input'),
              'h': of('h', layer, step - 1, 'zeros'),
              'c': of('c', layer, step - 1, 'zeros'),
              'd_above': of('dx', layer + 1, step, 'no_gradient'),
              'd_h': of('dh', layer, step + 1, 'no_gradient'),
              'd_c': of('dc', layer, step + 1, 'no_gradient'),
              'd_weights': of('d_weights', layer, step + 1, 'no_weights'),
          })
    _update(result, cell, layer)
  return source_graph.SourceGraph(
      f'recurrent_{ops}', result,
      ('input', 'zeros', 'no_gradient', 'no_weights'))


GRAPHS: dict[str, Callable[[int], source_graph.SourceGraph]] = {
    'transformer': transformer,
    'recurrent': recurrent,
}


def _layer(number: int) -> str:
  return f'layer_{number}'


def _step(layer: int, step: int) -> str:
  return f'layer_{layer}/step_{step}'


def _attention_layer() -> tuple[dict[str, tf.Tensor], list[tf.Operation]]:
  x, dy = _given('x', (_BATCH * 8, _WIDTH)), _given('dy', (_BATCH * 8, _WIDTH))
  w = [_variable(f'w{i}', (_WIDTH, _WIDTH)) for i in range(4)]
  wide = _variable('wide', (_WIDTH, 4 * _WIDTH))
  narrow = _variable('narrow', (4 * _WIDTH, _WIDTH))

  def heads(tensor: tf.Tensor) -> tf.Tensor:
    parts = tf.reshape(tensor, (_BATCH, 8, _HEADS, _WIDTH // _HEADS))
    return tf.transpose(parts, (0, 2, 1, 3))

  q, k, v = (heads(tf.matmul(x, each)) for each in w[:3])
  shares = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) * .25)
  mixed = tf.transpose(tf.matmul(shares, v), (0, 2, 1, 3))
  middle = x + tf.matmul(tf.reshape(mixed, x.shape), w[3])
  y = middle + tf.matmul(tf.nn.relu(tf.matmul(middle, wide)), narrow)
  variables = [*w, wide, narrow]
  dx, *gradients = _v1.gradients(y, [x, *variables], grad_ys=dy)
  updates = [
      _v1.assign_sub(v, _RATE * g).op for v, g in zip(variables, gradients)
  ]
  return {'y': y, 'dx': dx}, updates


def _cell() -> tuple[dict[str, tf.Tensor], list[tf.Operation]]:
  x, h, c, d_above, d_h, d_c = (_given(name, (_BATCH, _WIDTH))
                                for name in ('x', 'h', 'c', 'd_above', 'd_h',
                                             'd_c'))
  so_far = _given('d_weights', (2 * _WIDTH, 4 * _WIDTH))
  weights = _variable('weights', (2 * _WIDTH, 4 * _WIDTH))
  read = tf.identity(weights)
  i, f, o, g = tf.split(tf.matmul(tf.concat((x, h), 1), read), 4, 1)
  new_c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
  new_h = tf.sigmoid(o) * tf.tanh(new_c)
  dx, dh, dc, dw = _v1.gradients((new_h, new_c), (x, h, c, read),
                                 grad_ys=(d_above + d_h, d_c))
  return {
      'h': new_h, 'c': new_c, 'dx': dx, 'dh': dh, 'dc': dc,
      'd_weights': so_far + dw
  }, []


def _given(name: str, shape: Sequence[int]) -> tf.Tensor:
  return _v1.placeholder(tf.float32, shape, f'given_{name}')


def _variable(name: str, shape: Sequence[int]) -> tf.Variable:
  return _v1.get_variable(name, shape, tf.float32, use_resource=True)


def _traced(
    build: Callable[[], tuple[dict[str, tf.Tensor],
                              list[tf.Operation]]]) -> _Part:
  with tf.Graph().as_default() as graph:
    made, updates = build()
    wanted = [
        *(tensor.op.name for tensor in made.values()),
        *(op.name for op in updates)
    ]
    found = _needed(graph.as_graph_def(), wanted)
  prefix = 'given_'
  given = {
      n.name: n.name.removeprefix(prefix) for n in found.node
      if n.name.startswith(prefix)
  }
  shared = frozenset(n.name for n in found.node if n.op == 'VarHandleOp')
  names = {key: tensor.name.removesuffix(':0') for key, tensor in made.items()}
  return _Part(found, given, names, shared)


def _needed(graph_def: graph_pb2.GraphDef,
            wanted: Sequence[str]) -> graph_pb2.GraphDef:
  """Returns nodes with these names, and all nodes that they depend on."""
  by_name = {node.name: node for node in graph_def.node}
  pending, seen = list(wanted), set()
  while pending:
    name = pending.pop()
    if name not in seen:
      seen.add(name)
      pending += [
          text.lstrip('^').split(':')[0] for text in by_name[name].input
      ]
  return graph_pb2.GraphDef(node=[n for n in graph_def.node if n.name in seen])


def _tensor(part: _Part, what: str, prefix: str) -> str:
  """Returns the name of an output of the copy under a prefix."""
  return f'{prefix}/{part.made[what]}'


def _append(graph_def: graph_pb2.GraphDef, part: _Part, prefix: str, layer: str,
            inputs: Mapping[str, str]) -> None:
  """Adds a copy of a part.

  The copies of a layer share some nodes, such as its variable. Only the first
  copy adds these nodes.
  """
  names = {
      node.name: f'{layer if node.name in part.shared else prefix}/{node.name}'
      for node in part.graph_def.node
  }
  names |= {node: inputs[what] for node, what in part.given.items()}
  first = prefix == layer or prefix.endswith('/step_0')
  for node in part.graph_def.node:
    if node.name in part.given or node.name in part.shared and not first:
      continue
    copy = graph_def.node.add()
    copy.CopyFrom(node)
    copy.name = names[node.name]
    copy.input[:] = [_renamed(text, names) for text in node.input]
    if node.name in part.shared:
      copy.attr['shared_name'].s = copy.name.encode()
    if '_class' in node.attr:
      copy.attr['_class'].list.s[:] = [
          b'loc:@' + names[value.decode().removeprefix('loc:@')].encode()
          for value in node.attr['_class'].list.s
      ]


def _renamed(text: str, names: Mapping[str, str]) -> str:
  """Returns an input of a node, after the nodes got new names."""
  if text.startswith('^'):
    return '^' + names[text[1:]].split(':')[0]
  name, colon, output = text.partition(':')
  return f'{names[name]}{colon}{output}'


def _update(graph_def: graph_pb2.GraphDef, cell: _Part, layer: int) -> None:
  """Adds gradient descent on a layer, by the gradients of all time steps."""
  rate = graph_def.node.add(name=f'{_layer(layer)}/rate', op='Const')
  rate.attr['dtype'].type = tf.float32.as_datatype_enum
  rate.attr['value'].tensor.CopyFrom(tf.make_tensor_proto(_RATE, tf.float32))
  node = graph_def.node.add(
      name=f'{_layer(layer)}/update', op='ResourceApplyGradientDescent', input=[
          f'{_layer(layer)}/{next(iter(cell.shared))}', rate.name,
          _tensor(cell, 'd_weights', _step(layer, 0))
      ])
  node.attr['T'].type = tf.float32.as_datatype_enum
  node.attr['use_locking'].b = False


def _add(graph_def: graph_pb2.GraphDef, name: str, op: str,
         shape: Sequence[int]) -> None:
  node = graph_def.node.add(name=name, op=op)
  node.attr['dtype'].type = tf.float32.as_datatype_enum
  node.attr['shape'].shape.CopyFrom(tf.TensorShape(shape).as_proto())

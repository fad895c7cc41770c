"""Tests of `layers`: which ops belong to which layer of the user's."""

import numpy as np
import pytest

from gdp_grappler.placers.plans import layers
from helpers import graphs


def _graph(ops):
  """Of ops: name -> (type, inputs, bytes held, whose device it shares)."""
  names = list(ops)
  groups = {}
  for name, (_, _, _, leader) in ops.items():
    groups[name] = leader or name
  numbers = {
      leader: i for i, leader in enumerate(dict.fromkeys(groups.values()))
  }
  return graphs.make_graph([(names.index(source), names.index(name), 100)
                            for name, (_, inputs, _, _) in ops.items()
                            for source in inputs], len(ops), names=names,
                           op_types=[kind for kind, _, _, _ in ops.values()],
                           param_bytes=[held for _, _, held, _ in ops.values()],
                           groups=[numbers[groups[name]] for name in names])


def _step(scope, other):
  """A step of two layers, in these scopes, with gradients and an update."""
  return _graph({
      'x': ('Placeholder', [], 0, ''),
      'unknown': ('_Arg', [], 400, ''),
      f'{scope}/Cast/ReadVariableOp':
          ('ReadVariableOp', ['unknown'], 0, 'unknown'),
      f'{scope}/MatMul': ('MatMul', ['x',
                                     f'{scope}/Cast/ReadVariableOp'], 0, ''),
      f'{scope}/Gelu/mul': ('Mul', [f'{scope}/MatMul'], 0, ''),
      'unknown_0': ('_Arg', [], 40, ''),
      f'{other}/BiasAdd/ReadVariableOp':
          ('ReadVariableOp', ['unknown_0'], 0, 'unknown_0'),
      f'{other}/BiasAdd':
          ('BiasAdd', [f'{scope}/Gelu/mul',
                       f'{other}/BiasAdd/ReadVariableOp'], 0, ''),
      f'gradient_tape/{scope}/MatMul/MatMul_1':
          ('MatMul', ['x', f'{other}/BiasAdd'], 0, ''),
      'adam/Mul': ('Mul', [f'gradient_tape/{scope}/MatMul/MatMul_1'], 0, ''),
      'adam/AssignSubVariableOp':
          ('AssignSubVariableOp', ['unknown', 'adam/Mul'], 0, 'unknown'),
      'adam/AssignSubVariableOp_1':
          ('AssignSubVariableOp', ['unknown_0',
                                   f'{other}/BiasAdd'], 0, 'unknown_0'),
  })


def _names(graph, ops):
  return {graph.names[op] for op in ops}


def test_layers_are_called_as_keras_calls_them():
  graph = _step('net_1/dense_1', 'net_1/dense_1_2')
  model, = layers.of(graph).layers
  assert [layer.name for layer in model.layers] == ['dense', 'dense_1']
  assert [layer.scope for layer in model.layers] == ['dense_1', 'dense_1_2']


def test_numbers_of_layers_stay_where_no_scope_was_opened_twice():
  graph = _step('net/dense', 'net/dense_1')
  model, = layers.of(graph).layers
  assert [layer.name for layer in model.layers] == ['dense', 'dense_1']


def test_variables_gradients_and_updates_belong_to_their_layer():
  graph = _step('net_1/dense_1', 'net_1/dense_1_2')
  dense, other = layers.of(graph).layers[0].layers
  assert _names(graph, dense.ops) == {
      'unknown', 'net_1/dense_1/Cast/ReadVariableOp', 'net_1/dense_1/MatMul',
      'net_1/dense_1/Gelu/mul', 'gradient_tape/net_1/dense_1/MatMul/MatMul_1',
      'adam/Mul', 'adam/AssignSubVariableOp'
  }
  assert 'unknown_0' in _names(graph, other.ops)
  assert dense.uses_variables and other.uses_variables


def test_the_scope_of_an_op_is_no_layer():
  """Grappler removes the cast; the read of the variable keeps its scope."""
  graph = _step('net_1/dense_1', 'net_1/dense_1_2')
  for layer in layers.of(graph).layers[0].layers:
    assert not layer.layers


@pytest.mark.parametrize('scopes', [('a', 'b'), ('b', 'a')])
def test_layers_come_in_the_order_of_the_step(scopes):
  graph = _step(*scopes)
  assert [layer.name for layer in layers.of(graph).layers] == list(scopes)


def test_every_op_is_in_one_place():
  graph = _step('net_1/dense_1', 'net_1/dense_1_2')

  def own(layer):
    yield from layer.own
    for inner in layer.layers:
      yield from own(inner)

  everything = layers.of(graph)
  assert sorted(own(everything)) == list(range(graph.num_ops))
  np.testing.assert_array_equal(everything.ops, np.arange(graph.num_ops))


def test_names_without_scopes_are_no_layers():
  graph = graphs.make_graph([(0, 1, 10), (1, 2, 10)])
  everything = layers.of(graph)
  assert not everything.layers and len(everything.own) == 3


@pytest.mark.parametrize('ops', [
    {},
    {'a/b/v': ('VarHandleOp', [], 4, '')},
    {
        'a/v': ('VarHandleOp', [], 4, ''), 'a/v/Read/ReadVariableOp':
            ('ReadVariableOp', ['a/v'], 0, 'a/v')
    },
])
def test_a_graph_of_nothing_but_variables_has_layers(ops):
  """Once the search for a scope with other ops never ended."""
  layer = layers.of(_graph(ops))
  assert layer.ops.tolist() == [*range(len(ops))]

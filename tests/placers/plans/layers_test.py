"""Tests of `layers`: the layers of a user's model, and their ops."""

import importlib

import numpy as np
import pytest

from gdp_grappler.placers.plans import layers
from helpers import graphs


def _graph(ops):
  """A graph of named ops.

  Args:
    ops: For each name the type, the inputs, the bytes of parameters, and an op
      of the same group or ''.
  """
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
  """A step of layers in two scopes, with gradients and updates."""
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


def test_the_scope_of_an_op_is_no_layer():
  """Grappler removes a cast, and the read of the variable keeps its scope."""
  graph = _step('net_1/dense_1', 'net_1/dense_1_2')
  for layer in layers.of(graph).layers[0].layers:
    assert not layer.layers


@pytest.mark.parametrize(
    'before, after', [('ArithmeticOptimizer/', 'ArithmeticOptimizer/Reorder_'),
                      ('ConstantFolding/', 'ConstantFolding/folded_')])
def test_scopes_of_grappler_are_no_layers(before, after):
  """"ArithmeticOptimizer" was once a layer of the user's model."""
  graph = _graph({
      'x': ('Placeholder', [], 0, ''),
      'unknown': ('_Arg', [], 400, ''),
      'net/words/ReadVariableOp': ('ReadVariableOp', ['unknown'], 0, 'unknown'),
      f'{before}_IsFinite': ('IsFinite', ['x'], 0, ''),
      f'net/words/{after}Reshape': ('Reshape', [f'{before}_IsFinite'], 0, ''),
      'net/words/MatMul':
          ('MatMul', [f'net/words/{after}Reshape',
                      'net/words/ReadVariableOp'], 0, ''),
      'net/top/Relu': ('Relu', ['net/words/MatMul'], 0, ''),
  })
  whole = layers.of(graph)
  assert [layer.name for layer in whole.layers] == ['net']
  assert f'{before}_IsFinite' in _names(graph, whole.own)
  words = next(
      layer for layer in whole.layers[0].layers if layer.name == 'words')
  assert not words.layers
  assert f'net/words/{after}Reshape' in _names(graph, words.ops)


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
  """The search for a scope with other ops once never ended."""
  layer = layers.of(_graph(ops))
  assert layer.ops.tolist() == [*range(len(ops))]


def _shared(second='unknown'):
  """A layer `words` that is called twice, as Keras 3 traces it.

  Args:
    second: The table that the second call reads.
  """
  ops = {'unknown': ('_Arg', [], 400, ''), second: ('_Arg', [], 400, '')}
  for scope, table in (('net_1/words_1', 'unknown'), ('net_1/words_3', second)):
    ops[f'{scope}/GatherV2/ReadVariableOp'] = ('ReadVariableOp', [table], 0,
                                               table)
    ops[f'{scope}/GatherV2'] = ('GatherV2',
                                [f'{scope}/GatherV2/ReadVariableOp'], 0, '')
    ops[f'{scope}/SelectV2'] = ('SelectV2', [f'{scope}/GatherV2'], 0, '')
  ops['unknown_0'] = ('_Arg', [], 40, '')
  ops['net_1/top_1/Cast/ReadVariableOp'] = ('ReadVariableOp', ['unknown_0'], 0,
                                            'unknown_0')
  ops['net_1/top_1/MatMul'] = ('MatMul', [
      'net_1/words_1/SelectV2', 'net_1/words_3/SelectV2',
      'net_1/top_1/Cast/ReadVariableOp'
  ], 0, '')
  graph = _graph(ops)
  return graph.replace(variables=tuple(
      {'unknown': 'words/embeddings', 'unknown_0': 'top/kernel'}.get(name, '')
      for name in graph.names))


def test_all_calls_of_a_layer_are_one_layer():
  """The layers were once 'words_1', with the table, and 'words_3'."""
  graph = _shared()
  model, = layers.of(graph).layers
  assert [layer.name for layer in model.layers] == ['words', 'top']
  assert _names(graph, model.layers[0].ops) == {
      name for name in graph.names if 'words' in name or name == 'unknown'
  }


def _models_in_the_model(graph):
  """The calls of `words` as calls of models `encoder` with a layer `words`."""
  return graph.replace(names=tuple(
      name.replace('words_', 'encoder_').replace(
          '/GatherV2', '/words_1/GatherV2') for name in graph.names))


def test_all_calls_of_a_model_in_the_model_are_one_layer():
  """The layers were once 'encoder_1', with the table, and 'encoder_3'."""
  model, = layers.of(_models_in_the_model(_shared())).layers
  assert [layer.name for layer in model.layers] == ['encoder', 'top']
  model, = layers.of(_models_in_the_model(_shared('unknown_1'))).layers
  assert [layer.name for layer in model.layers
         ] == ['encoder_1', 'encoder_3', 'top']


def test_a_layer_beside_one_of_its_name_with_a_number_is_another():
  graph = _shared()
  graph = graph.replace(variables=tuple(
      v.replace('words', 'words_3') for v in graph.variables))
  model, = layers.of(graph).layers
  assert [layer.name for layer in model.layers] == ['words_1', 'words_3', 'top']


def test_ops_that_stand_for_variables_name_no_layer():
  """The forward pass of a subclassed model once had a layer 'left_1'."""
  scope = 'own_1/left_1/Cast/ReadVariableOp'
  graph = _graph({
      'x': ('Placeholder', [], 0, ''),
      f'{scope}/resource': ('VarHandleOp', [], 400, ''),
      scope: ('ReadVariableOp', [f'{scope}/resource'], 0, f'{scope}/resource'),
      'own_1/left_1/MatMul': ('MatMul', ['x', scope], 0, ''),
      'own_1/left_1/Relu': ('Relu', ['own_1/left_1/MatMul'], 0, ''),
      'own_1/add': ('AddV2', ['own_1/left_1/Relu'], 0, ''),
  })
  graph = graph.replace(variables=('', 'own/kernel', '', '', '', ''))
  model, = layers.of(graph).layers
  assert [layer.name for layer in model.layers] == ['left']


def test_what_the_forward_pass_reads_of_a_gradient_is_no_gradient():
  """Grappler may give a transpose of the forward pass a gradient's name."""
  transpose = 'gradient_tape/net/conv/Conv2D/Filter-0-Transpose'
  graph = _graph({
      'x': ('Placeholder', [], 0, ''),
      transpose: ('Transpose', ['x'], 0, ''),
      'net/conv/Conv2D': ('Conv2D', [transpose], 0, ''),
      'net/top/Relu': ('Relu', ['net/conv/Conv2D'], 0, ''),
      'gradient_tape/net/top/ReluGrad': ('ReluGrad', ['net/top/Relu'], 0, ''),
      'gradient_tape/net/conv/Conv2D/Filter':
          ('Conv2DBackpropFilter',
           ['gradient_tape/net/top/ReluGrad', transpose], 0, ''),
      'clip': ('Mul', ['gradient_tape/net/conv/Conv2D/Filter'], 0, ''),
  })
  assert _names(graph, np.flatnonzero(layers.after_forward(graph))) == {
      'gradient_tape/net/top/ReluGrad', 'gradient_tape/net/conv/Conv2D/Filter',
      'clip'
  }


def _fused(scope, variable):
  """A convolution that Grappler has fused with the next op.

  Args:
    scope: Scope of the convolution, of which a read and a gradient remain.
    variable: Name of the kernel.
  """
  graph = _graph({
      'x': ('Placeholder', [], 0, ''),
      'unknown': ('_Arg', [], 400, ''),
      f'net/{scope}/ReadVariableOp':
          ('ReadVariableOp', ['unknown'], 0, 'unknown'),
      'net/conv/Relu': ('_FusedConv2D', ['x',
                                         f'net/{scope}/ReadVariableOp'], 0, ''),
      'gradient_tape/net/conv/ReluGrad': ('ReluGrad', ['net/conv/Relu'], 0, ''),
      f'gradient_tape/net/{scope}/Conv2DBackpropFilter':
          ('Conv2DBackpropFilter', ['gradient_tape/net/conv/ReluGrad'], 0, ''),
      'net/sum': ('Sum', ['net/conv/Relu'], 0, ''),
  })
  return graph.replace(variables=('', variable, *[''] * 5))


def test_a_convolution_that_was_fused_is_no_layer():
  """The layers were once 'conv/convolution', with the kernel, and 'conv'."""
  model, = layers.of(_fused('conv/convolution', 'conv/kernel')).layers
  assert [layer.name for layer in model.layers] == ['conv']
  assert not model.layers[0].layers


def test_a_layer_that_was_fused_with_the_next_is_one():
  model, = layers.of(_fused('first', 'first/kernel')).layers
  assert {layer.name for layer in model.layers} == {'first', 'conv'}


@pytest.mark.parametrize('kernel, found', [('net/Conv_1/kernel', {'Conv_1'}),
                                           ('words/kernel', set())])
def test_a_layer_may_have_the_name_of_a_type_of_op(kernel, found):
  """The layer `Conv_1` of MobileNet was once missing."""
  importlib.import_module('tensorflow')  # TensorFlow knows the types of ops.
  graph = _step('net/Conv_1', 'net/b')
  variables = [''] * graph.num_ops
  variables[graph.names.index('unknown')] = kernel
  variables[graph.names.index('unknown_0')] = 'net/b/bias'
  net, = layers.of(graph.replace(variables=tuple(variables))).layers
  assert {layer.name for layer in net.layers} - {'b'} == found


def test_a_saved_models_variables_belong_to_the_layers_that_use_them():
  """Once the layer "input", of inlined calls, had all variables."""
  ops = {'x': ('Placeholder', [], 0, '')}
  for number, layer in enumerate('ab'):
    given = f'Func/StatefulPartitionedCall/input/_{number}'
    scope = f'StatefulPartitionedCall/net/{layer}/MatMul'
    kernel = f'{layer}/kernel'
    ops |= {
        kernel: ('VarHandleOp', [], 400, ''),
        given: ('Identity', [kernel], 0, kernel),
        f'{scope}/ReadVariableOp': ('ReadVariableOp', [given], 0, kernel),
        scope: ('MatMul', ['x', f'{scope}/ReadVariableOp'], 0, ''),
    }
  ops['Func/StatefulPartitionedCall/output/_2'] = ('Identity', [scope], 0, '')
  graph = _graph(ops)
  whole = layers.of(graph)
  net, = whole.layers
  assert {layer.name: _names(graph, layer.ops) for layer in net.layers
         } == {'a': {*list(ops)[1:5]}, 'b': {*list(ops)[5:9]}}
  assert _names(graph, whole.own) == {'x', list(ops)[-1]}


def test_the_control_of_a_loop_is_no_layer():
  """Once "enter", "merge" and "mul" were rows beside the layers."""
  ops = {}
  for layer in 'ab':
    kernel, scope = f'{layer}/kernel', f'net/{layer}/MatMul'
    ops |= {
        kernel: ('VarHandleOp', [], 400, ''),
        f'{scope}/ReadVariableOp': ('ReadVariableOp', [kernel], 0, kernel),
        scope: ('MatMul', [f'{scope}/ReadVariableOp'], 0, ''),
    }
  graph = _graph(
      ops | {
          'net/while/enter/_3': ('Enter', [scope], 0, ''),
          'net/while/enter/_4': ('Enter', [scope], 0, ''),
          'net/loop/merge/_5': ('Merge', ['net/while/enter/_3'], 0, ''),
          'net/mul_3/y': ('Const', [], 0, ''),
          'net/flat/Reshape': ('Reshape', [scope], 0, ''),
      })
  net, = layers.of(graph).layers
  assert {layer.name for layer in net.layers} == {'a', 'b', 'flat'}


def test_layers_and_their_names_are_read_once(monkeypatch):
  """A plan by layer, its table and its map once read the scopes twice."""
  made = []

  class _Counted(layers._Reader):

    def __init__(self, graph):
      super().__init__(graph)
      made.append(graph)

  monkeypatch.setattr(layers, '_Reader', _Counted)
  graph = _step('net/a', 'net/b')
  layers.names(graph), layers.of(graph), layers.names(graph)
  assert made == [graph]

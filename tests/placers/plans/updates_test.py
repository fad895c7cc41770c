"""Ops that only update variables, in graphs made by hand."""

from gdp_grappler.placers.plans import updates
from helpers import graphs

# A layer, the update w -= rate * gradient + slot as Keras computes it, and an
# update of a variable v.
_NAMES = [
    'w', 'net/a/read', 'net/a/MatMul', 'adam/rate', 'adam/mul', 'slot',
    'adam/read', 'adam/sub', 'adam/assign', 'adam/assign_slot', 'v',
    'adam/assign_v'
]


def _graph():
  return graphs.make_graph(
      [(0, 1, 0), (1, 2, 64), (2, 4, 64), (3, 4, 4), (5, 6, 0), (6, 7, 64),
       (4, 7, 64), (7, 8, 64), (0, 8, 0), (5, 9, 0), (7, 9, 64), (2, 11, 32),
       (10, 11, 0)], names=_NAMES, groups=[0, 0, 1, 2, 3, 4, 4, 5, 0, 4, 6, 6],
      **graphs.variables([64, 0, 0, 4, 0, 64, 0, 0, 0, 0, 32, 0]))


def _named(found):
  return {name for name, own in zip(_NAMES, found.tolist()) if own}


def test_arithmetic_of_updates_writes_and_slots_only_serve_to_change():
  assert _named(updates.serving(_graph())) >= {
      'adam/mul', 'adam/sub', 'adam/assign', 'adam/assign_slot', 'slot',
      'adam/read'
  }
  assert not _named(updates.serving(_graph())) & {'w', 'net/a/read'}


def test_layers_that_hold_their_weights_themselves_are_no_updates():
  """In a graph with its own costs, ops once counted as updates of the last."""
  weights = [64, 64, 0, 64]
  graph = graphs.chain(4, param_bytes=weights)
  assert not updates.serving(graph).any()
  assert not updates.of_one_variable(graph).any()
  graph = graphs.chain(4, **graphs.variables(weights))
  assert updates.serving(graph).any()


def test_what_a_loop_with_variables_is_given_changes_none_of_them():
  """An embedding before an LSTM once had no parameters and no ops."""
  names = [
      'words', 'net/words/Gather', 'net/lstm/enter', 'lstm', 'net/lstm/MatMul',
      'net/out', 'net/lstm/next'
  ]
  graph = graphs.make_graph([(0, 1, 0), (1, 2, 64), (2, 4, 64), (3, 4, 0),
                             (4, 5, 64), (4, 6, 64)], names=names, op_types=[
                                 'VarHandleOp', 'ResourceGather', 'Enter',
                                 'VarHandleOp', 'MatMul', '_Retval',
                                 'NextIteration'
                             ], groups=[0, 0, 1, 1, 1, 2, 1],
                            param_bytes=[64, 0, 0, 32, 0, 0, 0])
  assert not updates.serving(graph).any()


def test_updates_of_a_variable_that_a_loop_reads_serve_it():
  """An LSTM without cuDNN once had no parameters, and 'adam' was a layer."""
  names = [
      'w', 'slot', 'net/lstm/Enter', 'net/lstm/MatMul',
      'gradient_tape/net/lstm/MatMul', 'adam/read', 'adam/Mul', 'adam/Assign',
      'adam/Assign_1', 'net/loss'
  ]
  graph = graphs.make_graph([(0, 2, 0), (2, 3, 64), (3, 9, 64), (3, 4, 64),
                             (4, 6, 64), (1, 5, 0), (5, 6, 64), (6, 7, 64),
                             (0, 7, 0), (1, 8, 0),
                             (6, 8, 64)], names=names, op_types=[
                                 'VarHandleOp', 'VarHandleOp', 'Enter',
                                 'MatMul', 'MatMul', 'ReadVariableOp', 'Mul',
                                 'AssignSubVariableOp', 'AssignAddVariableOp',
                                 'Sum'
                             ], groups=[0, 0, 0, 0, 1, 0, 2, 0, 0, 3],
                            param_bytes=[64, 64, *[0] * 8])
  serves = updates.serving(graph)
  assert {name for name, own in zip(names, serves.tolist()) if own} == {
      'slot', 'gradient_tape/net/lstm/MatMul', 'adam/read', 'adam/Mul',
      'adam/Assign', 'adam/Assign_1'
  }
  assert updates.of_one_variable(graph)[names.index('adam/Mul')]
  optimizers = updates.in_optimizers(graph).tolist()
  assert {name for name, own in zip(names, optimizers) if own
         } >= {name for name in names if name.startswith('adam/')}


def test_what_grappler_folded_is_no_optimizer():
  """In a map with '*', a folded op was once counted as in no layer."""
  folded = 'ConstantFolding/gradient_tape/net/Sum-folded'
  names = [
      'w', 'net/read', 'net/MatMul', 'gradient_tape/net/MatMul', folded,
      'ConstantFolding/adam/partial', 'adam/assign'
  ]
  graph = graphs.make_graph([(0, 1, 0), (1, 2, 64), (2, 3, 64), (4, 5, 64),
                             (3, 5, 64), (5, 6, 64), (0, 6, 0)], names=names,
                            groups=[0, 0, 1, 2, 3, 4, 0],
                            **graphs.variables([64, 0, 0, 0, 0, 0, 0]))
  found = updates.in_optimizers(graph).tolist()
  assert not found[names.index(folded)]
  assert found[names.index('ConstantFolding/adam/partial')]
  assert found[names.index('adam/assign')]


def test_a_scope_with_a_layer_in_it_is_no_optimizers():
  found = _named(updates.in_optimizers(_graph()))
  assert {name for name in _NAMES if name.startswith('adam/')} <= found
  assert not found & {'net/a/read', 'net/a/MatMul'}


def test_an_op_that_updates_of_two_variables_share_is_the_optimizers():
  """For the sum of two embeddings, 'adam' was once a layer."""
  names = [
      'words', 'places', 'net/words/Gather', 'net/places/Gather', 'net/add',
      'gradient_tape/net/Reshape', 'adam/Square', 'adam/scatter',
      'adam/scatter_1', 'loss'
  ]
  graph = graphs.make_graph([(0, 2, 0), (1, 3, 0), (2, 4, 64), (3, 4, 64),
                             (4, 5, 64), (5, 6, 64), (6, 7, 64), (6, 8, 64),
                             (0, 7, 0), (1, 8, 0), (4, 9, 64)], names=names,
                            groups=[0, 1, 2, 3, 4, 5, 6, 0, 1, 7],
                            **graphs.variables([64, 32, 0, 0, 0, 0, 0, 0, 0,
                                                0]))
  found = updates.in_optimizers(graph)
  assert [name for name, own in zip(names, found.tolist()) if own
         ] == ['adam/Square', 'adam/scatter', 'adam/scatter_1']


def test_a_loss_that_only_updates_a_metric_is_no_optimizer():
  names = [
      'net/x', 'mse/Diff', 'mse/Mean', 'metric', 'gradient_tape/mse/Mul',
      'sgd/mul', 'sgd/assign', 'w'
  ]
  graph = graphs.make_graph([(0, 1, 64), (1, 2, 64), (2, 3, 8), (0, 4, 64),
                             (4, 5, 64), (5, 6, 64), (7, 6, 0)], names=names,
                            groups=[0, 1, 2, 3, 4, 5, 6, 6],
                            **graphs.variables([0, 0, 0, 8, 0, 0, 0, 64]))
  found = updates.in_optimizers(graph).tolist()
  assert {name for name, own in zip(names, found) if own and '/' in name
         } == {'sgd/mul', 'sgd/assign'}


def test_a_constant_that_updates_and_layers_share_makes_no_layer():
  """A shared permutation of five numbers once made 'adam' a layer."""
  names = [
      'w', 'net/read', 'net/conv', 'gradient_tape/net/conv', 'adam/perm',
      'net/transpose', 'adam/mul', 'adam/assign', 'net/loss'
  ]
  graph = graphs.make_graph([(0, 1, 0), (1, 2, 64), (4, 5, 20), (2, 5, 64),
                             (5, 3, 64), (3, 6, 64), (4, 6, 20), (6, 7, 64),
                             (0, 7, 0), (5, 8, 64)], names=names, op_types=[
                                 'VarHandleOp', 'ReadVariableOp', 'Conv3D',
                                 'Conv3D', 'Const', 'Transpose', 'Mul',
                                 'AssignVariableOp', 'Sum'
                             ], groups=[0, 0, 1, 2, 3, 4, 5, 0, 6],
                            param_bytes=[64, 0, 0, 0, 0, 0, 0, 0, 0])
  found = updates.in_optimizers(graph)
  assert {name for name, own in zip(names, found.tolist()) if own
         } == {'adam/perm', 'adam/mul', 'adam/assign'}


def test_only_loops_have_ops_that_carry_values():
  graph = graphs.make_graph(
      num_ops=5, groups=[0, 0, 0, 0, 1],
      op_types=['Enter', 'Switch', 'MatMul', 'Exit', 'Switch'])
  assert updates.carriers(graph).tolist() == [True, True, False, True, False]


def test_sums_of_gradients_are_in_no_scope():
  graph = graphs.make_graph([(0, 1, 8)], names=['AddN_1', 'net/AddN'],
                            op_types=['AddN', 'AddN'])
  assert updates.sums(graph).tolist() == [True, False]


def test_sums_of_a_legacy_optimizer_are_in_its_scope():
  """The optimizer once counted as a layer beside the model."""
  graph = graphs.make_graph([(0, 1, 8)],
                            names=['Adam/gradients/AddN_1',
                                   'Adam/AddN'], op_types=['AddN', 'AddN'])
  assert updates.sums(graph).tolist() == [True, False]


def test_marks_of_conditions_that_nothing_reads_do_not_count():
  """With such ops in Adagrad's update, an embedding once lost its slots."""
  graph = graphs.make_graph([(0, 1, 64), (1, 2, 64), (3, 2, 0), (1, 4, 1),
                             (4, 5, -1)], op_types=[
                                 'Mul', 'Switch', 'AssignSubVariableOp',
                                 'VarHandleOp', 'Merge', 'NoOp'
                             ], groups=[0, 1, 2, 2, 3, 4],
                            param_bytes=[0, 0, 0, 64, 0, 0])
  assert updates.of_one_variable(graph)[:2].tolist() == [True, True]

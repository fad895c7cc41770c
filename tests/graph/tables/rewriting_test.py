"""Graphs with tables in parts compute what they did before."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework import graph_pb2

from gdp_grappler import errors
from gdp_grappler.graph import source_graph
from gdp_grappler.graph.sources import pruning
from gdp_grappler.graph.tables import rewriting

_ROWS, _WIDTH, _STEPS = 23, 6, 3
_OPTIMIZERS = {
    'sgd': (lambda: tf.compat.v1.train.GradientDescentOptimizer(.5), ()),
    'momentum':
        (lambda: tf.compat.v1.train.MomentumOptimizer(.5, .9), ('Momentum',)),
    'adagrad': (lambda: tf.compat.v1.train.AdagradOptimizer(.5), ('Adagrad',)),
    'adam': (lambda: tf.compat.v1.train.AdamOptimizer(.05), ('Adam', 'Adam_1'))
}


def _graph(loss, optimizer, use_resource=True, clip=False):
  """A program's GraphDef: nodes `loss`, `train` and `init`."""
  with tf.Graph().as_default() as graph:
    with tf.compat.v1.variable_scope('m', use_resource=use_resource):
      value = loss()
    tf.identity(value, 'loss')
    gradients, variables = zip(*optimizer.compute_gradients(value))
    if clip:
      gradients, _ = tf.clip_by_global_norm(gradients, .01)
    optimizer.apply_gradients(zip(gradients, variables), name='train')
    tf.group(tf.compat.v1.global_variables_initializer(), name='init')
    return graph.as_graph_def()


def _table(name='words', rows=_ROWS, width=_WIDTH):
  return tf.compat.v1.get_variable(
      name, (rows, width),
      initializer=tf.compat.v1.random_uniform_initializer(-1, 1, seed=3))


def _embedding():
  ids = tf.constant([[0, 22, 5], [5, 11, 12]])
  found = tf.nn.embedding_lookup(_table(), ids)
  return tf.reduce_mean(tf.square(found - tf.ones([2, 3, _WIDTH])))


def _dense():
  states = tf.reshape(tf.range(4 * _WIDTH, dtype=tf.float32), (4, _WIDTH)) / 9
  head = tf.compat.v1.get_variable(
      'head', (_WIDTH, _ROWS),
      initializer=tf.compat.v1.random_uniform_initializer(-1, 1, seed=4))
  logits = tf.matmul(tf.tanh(states), head)
  return tf.reduce_mean(
      tf.nn.sparse_softmax_cross_entropy_with_logits([1, 2, 22, 9], logits))


def _tied():
  words = _table()
  found = tf.nn.embedding_lookup(words, [1, 5, 22, 5])
  logits = tf.matmul(tf.tanh(found), words, transpose_b=True)
  return tf.reduce_mean(
      tf.nn.sparse_softmax_cross_entropy_with_logits([1, 2, 22, 9], logits))


def _odd():
  """Uses that no rule knows, beside one that has a rule."""
  words = _table()
  return (tf.reduce_sum(tf.cumsum(words, 0))
          + tf.reduce_sum(tf.nn.embedding_lookup(words, [3, 4])))


# The table of each, and the axis of its rows.
_TABLES = {
    _embedding: ('m/words', 0), _dense: ('m/head', 1), _tied: ('m/words', 0),
    _odd: ('m/words', 0)
}


def _run(graph_def, value):
  with tf.Graph().as_default() as graph:
    tf.import_graph_def(graph_def, name='')
    with tf.compat.v1.Session(graph=graph) as session:
      session.run('init')
      losses = []
      for _ in range(_STEPS):
        losses.append(session.run('loss:0'))
        session.run('train')
      return losses, session.run(f'{value}:0')


def _in_parts(graph_def, optimizer, variable, axis, fetches):
  names = [variable
          ] + [f'{variable}/{slot}' for slot in _OPTIMIZERS[optimizer][1]]
  source = source_graph.SourceGraph('g', graph_def, fetches=fetches)
  return rewriting.in_parts(source, dict.fromkeys(names, (8, 8, _ROWS - 16)),
                            axis).graph_def


def _compare(whole, optimizer, variable, axis, value, exactly):
  fetches = ('loss', 'train', 'init')
  before = _run(whole, value)
  after = _run(_in_parts(whole, optimizer, variable, axis, (*fetches, value)),
               value)
  if exactly:
    assert before[0] == after[0]
    np.testing.assert_array_equal(before[1], after[1])
  else:
    np.testing.assert_allclose(before[0], after[0], rtol=1e-5)
    np.testing.assert_allclose(before[1], after[1], rtol=1e-4, atol=1e-6)
  # What runs if nobody asks for the whole.
  return pruning.needed(_in_parts(whole, optimizer, variable, axis, fetches),
                        ('train',))


# Each loss and each optimizer once with refs, in all pairs with handles.
@pytest.mark.parametrize('optimizer, loss, use_resource', [
    *((optimizer, loss, True) for loss in _TABLES for optimizer in _OPTIMIZERS),
    *((optimizer, loss, False) for optimizer, loss in zip(_OPTIMIZERS, _TABLES))
])
def test_steps_are_what_they_were(loss, optimizer, use_resource):
  variable, axis = _TABLES[loss]
  value = f'{variable}/Read/ReadVariableOp' if use_resource else (
      f'{variable}/read')
  whole = _graph(loss, _OPTIMIZERS[optimizer][0](), use_resource)
  # Rows are copied, and each is updated by the same numbers.
  step = _compare(whole, optimizer, variable, axis, value, loss is _embedding)
  assert not {'VarHandleOp', 'VariableV2'} & {
      node.op for node in step.node
      if node.name.startswith(variable) and 'part_' not in node.name
  }
  if loss in (_embedding, _dense):
    shape = (_ROWS, _WIDTH) if not axis else (_WIDTH, _ROWS)
    assert shape not in _shapes(step)


def _shapes(graph_def):
  with tf.Graph().as_default() as graph:
    tf.import_graph_def(graph_def, name='')
    return {
        tuple(output.shape.as_list()) for op in graph.get_operations()
        for output in op.outputs if output.shape.rank is not None
    }


def test_a_clipped_gradient_is_computed_in_parts_alone():
  whole = _graph(_dense, _OPTIMIZERS['adam'][0](), clip=True)
  step = _compare(whole, 'adam', 'm/head', 1, 'm/head/Read/ReadVariableOp',
                  False)
  assert (_WIDTH, _ROWS) not in _shapes(step)


@pytest.mark.parametrize('loss', [_embedding, _dense])
def test_attributes_that_are_left_out_stay_so(loss):
  """Empty attributes were written into the user's graph."""
  with tf.Graph().as_default():
    tf.import_graph_def(_graph(loss, _OPTIMIZERS['adam'][0]()), name='')
    whole = tf.compat.v1.train.export_meta_graph(
        strip_default_attrs=True).graph_def
  before = graph_pb2.GraphDef.FromString(whole.SerializeToString())
  _in_parts(whole, 'adam', *_TABLES[loss], ('loss', 'train'))
  assert whole == before


def test_arguments_of_functions_get_numbers_behind_the_others():
  function = tf.function(lambda i: tf.gather(words, i) + 0. * last)
  words, last = tf.Variable(tf.zeros([_ROWS, 2])), tf.Variable(1.)
  graph_def = function.get_concrete_function(tf.TensorSpec(
      [4], tf.int32)).graph.as_graph_def()
  for index, node in enumerate(graph_def.node):
    if node.op == 'Placeholder':
      dtype = node.attr['dtype'].type
      node.op = '_Arg'
      node.attr.clear()
      node.attr['T'].type = dtype
      node.attr['index'].i = index
      if dtype == tf.resource.as_datatype_enum:
        variable = words if index == 1 else last
        node.attr['_handle_dtypes'].list.type.append(1)
        node.attr['_handle_shapes'].list.shape.append(variable.shape.as_proto())
  table, = [n.name for n in graph_def.node if n.attr['index'].i == 1]
  source = source_graph.SourceGraph('g', graph_def, fetches=('Identity',),
                                    feeds=(table,))
  found = rewriting.in_parts(source, {table: (12, 11)})
  numbers = {
      n.name: n.attr['index'].i for n in found.graph_def.node if n.op == '_Arg'
  }
  assert found.feeds == (f'{table}/part_0', f'{table}/part_1')
  assert [numbers[name] for name in found.feeds] == [1, max(numbers.values())]
  assert len(set(numbers.values())) == len(numbers)


def test_a_handle_that_is_wanted_whole_is_refused():
  with tf.Graph().as_default() as graph:
    words = tf.compat.v1.get_variable('words', (_ROWS, 2), use_resource=True)
    tf.while_loop(lambda i: i < 3,
                  lambda i: i + tf.cast(words[0, 0] > 9., tf.int32) + 1, [0])
    tf.raw_ops.DestroyResourceOp(resource=words.handle, name='end')
  source = source_graph.SourceGraph('g', graph.as_graph_def(), fetches=('end',))
  with pytest.raises(errors.InvalidGraphError, match='takes the whole'):
    rewriting.in_parts(source, {'words': (12, 11)})

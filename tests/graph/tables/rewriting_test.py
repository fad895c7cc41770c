"""Graphs with tables in parts compute what they did before."""

import numpy as np
import pytest
import tensorflow as tf

from gdp_grappler import errors
from gdp_grappler.graph import source_graph
from gdp_grappler.graph.sources import pruning
from gdp_grappler.graph.tables import rewriting

_ROWS, _WIDTH, _STEPS = 23, 6, 3
_OPTIMIZERS = {
    'sgd': (lambda: tf.compat.v1.train.GradientDescentOptimizer(.5), ()),
    'momentum': (lambda: tf.compat.v1.train.MomentumOptimizer(.5, .9),
                 ('Momentum',)),
    'adagrad': (lambda: tf.compat.v1.train.AdagradOptimizer(.5), ('Adagrad',)),
    'adam': (lambda: tf.compat.v1.train.AdamOptimizer(.05), ('Adam', 'Adam_1'))
}


def _graph(loss, optimizer, use_resource=True, clip=False):
  """A program's GraphDef: nodes `loss`, `train` and `init`."""
  with tf.Graph().as_default() as graph:
    with tf.compat.v1.variable_scope('m', use_resource=use_resource):
      value = loss()
    tf.identity(value, 'loss')
    steps = optimizer.compute_gradients(value)
    if clip:
      gradients, variables = zip(*steps)
      gradients, _ = tf.clip_by_global_norm(gradients, .01)
      steps = list(zip(gradients, variables))
    optimizer.apply_gradients(steps, name='train')
    tf.compat.v1.global_variables_initializer().node_def  # pylint: disable=pointless-statement
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
  return (tf.reduce_sum(tf.cumsum(words, 0)) +
          tf.reduce_sum(tf.nn.embedding_lookup(words, [3, 4])))


def _run(graph_def, values=('m/words/Read/ReadVariableOp',)):
  with tf.Graph().as_default() as graph:
    tf.import_graph_def(graph_def, name='')
    with tf.compat.v1.Session(graph=graph) as session:
      session.run('init')
      losses = []
      for _ in range(_STEPS):
        losses.append(session.run('loss:0'))
        session.run('train')
      return losses, session.run([f'{value}:0' for value in values])


def _split(graph_def, names, axis=0, count=3):
  length = _ROWS
  each = -(-length // count)
  sizes = (each,) * (count - 1) + (length - each * (count - 1),)
  source = source_graph.SourceGraph('g', graph_def,
                                    fetches=('loss', 'train', 'init'))
  return rewriting.in_parts(source, dict.fromkeys(names, sizes), axis).graph_def


def _names(optimizer, variable, kind=True):
  return [variable] + [f'{variable}/{slot}' for slot in _OPTIMIZERS[optimizer][1]]


@pytest.mark.parametrize('use_resource', [True, False], ids=['handles', 'refs'])
@pytest.mark.parametrize('optimizer', _OPTIMIZERS)
@pytest.mark.parametrize('loss, variable, axis', [
    (_embedding, 'm/words', 0), (_dense, 'm/head', 1), (_tied, 'm/words', 0),
    (_odd, 'm/words', 0)
], ids=['embedding', 'dense', 'tied', 'odd'])
def test_steps_are_what_they_were(loss, variable, axis, optimizer,
                                  use_resource):
  whole = _graph(loss, _OPTIMIZERS[optimizer][0](), use_resource)
  parts = _split(whole, _names(optimizer, variable), axis)
  value = f'{variable}/Read/ReadVariableOp' if use_resource else (
      f'{variable}/read')
  kept = tf.compat.v1.GraphDef.FromString(parts.SerializeToString())
  source = source_graph.SourceGraph('g', whole,
                                    fetches=('loss', 'train', 'init', value))
  length = _ROWS
  parts = rewriting.in_parts(
      source, dict.fromkeys(_names(optimizer, variable), (8, 8, length - 16)),
      axis).graph_def
  before, after = _run(whole, (value,)), _run(parts, (value,))
  if loss is _embedding:
    # Rows are copied, and each is updated by the same numbers.
    assert before[0] == after[0]
    np.testing.assert_array_equal(before[1], after[1])
  else:
    np.testing.assert_allclose(before[0], after[0], rtol=1e-5)
    np.testing.assert_allclose(before[1], after[1], rtol=1e-4, atol=1e-6)
  # The step itself has nothing of the whole's size, unless no rule is known.
  step = pruning.needed(kept, ('train',))
  ops = {node.op for node in step.node}
  if loss in (_embedding, _dense):
    assert not [n.name for n in step.node if n.op in ('VarHandleOp', 'VariableV2')
                and n.name == variable]
    assert 'SplitV' not in ops or loss is _dense

"""Ops that make parts of parts."""

import numpy as np
import pytest
import tensorflow as tf

from gdp_grappler.graph import source_graph
from gdp_grappler.graph.tables import parts
from gdp_grappler.graph.tables import values as values_lib
from gdp_grappler.graph.tables import view as view_lib

_FLOAT = parts.Type(tf.float32.as_datatype_enum)
_TABLE = np.random.default_rng(0).normal(size=(7, 4)).astype('f')
_OTHER = np.random.default_rng(1).normal(size=(7, 4)).astype('f')


def _values(make, axis=0):
  """What `make` computes of a table in two parts: node `y`."""
  with tf.Graph().as_default() as graph:
    tf.identity(make(tf.constant(_TABLE, name='table')), 'out')
    with tf.compat.v1.Session(graph=graph) as session:
      expected = session.run('out:0')
  graph_def = graph.as_graph_def()
  view = view_lib.View(source_graph.SourceGraph('g', graph_def))
  writer = parts.Writer(view.nodes)
  values = values_lib.Values(view, writer, {})
  sizes = (4, 3) if axis == 0 else (3, 1)
  split = parts.Split((), axis, sizes, (7, 4), _FLOAT)
  names = writer.cut('table', split, 'cut')
  values.split['table'] = parts.Split(names, axis, sizes, (7, 4), _FLOAT)
  return values, view, expected


def _run(values, view, tensor):
  graph_def = values.writer.graph_def(tf.compat.v1.GraphDef())
  written = {node.name for node in graph_def.node}
  graph_def.node.extend(
      node for name, node in view.nodes.items()
      if name not in written and name not in values.split and name != 'out')
  graph_def.node.extend([view.nodes['table']])
  with tf.Graph().as_default() as graph:
    tf.import_graph_def(graph_def, name='')
    with tf.compat.v1.Session(graph=graph) as session:
      return session.run(f'{tensor}:0')


def _check(make, axis, method):
  values, view, expected = _values(make, axis)
  assert getattr(values, method)(view.nodes['y'])
  if method == 'hand_on':
    given = values.split['y']
    result = np.concatenate([_run(values, view, n) for n in given.names],
                            given.axis)
    assert given.shape == expected.shape
  else:
    result = _run(values, view, 'y')
  np.testing.assert_allclose(result, expected, rtol=1e-5)


@pytest.mark.parametrize('axis', [0, 1])
@pytest.mark.parametrize(
    'make', [
        lambda t: tf.tanh(t, 'y'), lambda t: tf.add(t, 2., 'y'),
        lambda t: tf.subtract(_OTHER, t, 'y'),
        lambda t: tf.multiply(t, _OTHER[:1], 'y'),
        lambda t: tf.multiply(t, _OTHER[:, :1], 'y'),
        lambda t: tf.raw_ops.Transpose(x=t, perm=[1, 0], name='y'),
        lambda t: tf.cast(t, tf.float64, 'y')
    ], ids=['tanh', 'scalar', 'other', 'row', 'column', 'transpose', 'cast'])
def test_parts_are_computed_of_parts(make, axis):
  _check(make, axis, 'hand_on')


@pytest.mark.parametrize('turned', [False, True])
@pytest.mark.parametrize('is_second', [False, True])
@pytest.mark.parametrize('axis', [0, 1])
def test_products_are_in_parts_or_summands(axis, is_second, turned):

  def make(table):
    if is_second:
      return tf.matmul(_OTHER, table, transpose_a=not turned,
                       transpose_b=turned, name='y')
    return tf.matmul(table, _OTHER, transpose_a=turned, transpose_b=not turned,
                     name='y')

  inner = int(is_second == turned)
  _check(make, axis, 'sum_up' if axis == inner else 'hand_on')


def test_losses_are_summed():
  _check(lambda t: tf.nn.l2_loss(t, name='y'), 0, 'sum_up')


@pytest.mark.parametrize(
    'make',
    [lambda t: tf.cumsum(t, name='y'), lambda t: tf.reshape(t, (28,), 'y')],
    ids=['cumsum', 'reshape'])
def test_ops_that_no_rule_knows_are_left_to_the_whole(make):
  values, view, _ = _values(make)
  assert not values.hand_on(view.nodes['y'])
  assert not values.sum_up(view.nodes['y'])


def test_a_gradient_that_is_made_dense_is_summed_by_part():
  ids, rows = [0, 6, 0, 3], _OTHER[:4]
  values, view, expected = _values(
      lambda t: tf.math.unsorted_segment_sum(rows, ids, 7, name='y'))
  names = values.parts_of('y', parts.Split((), 0, (4, 3), (7, 4), _FLOAT))
  assert 'y' in values.computed
  result = np.concatenate([_run(values, view, name) for name in names])
  np.testing.assert_array_equal(result, expected)


def test_what_cannot_be_computed_in_parts_is_cut():
  values, view, expected = _values(
      lambda t: tf.cumsum(t + 0. * _OTHER, name='y'))
  names = values.parts_of('out', parts.Split((), 0, (4, 3), (7, 4), _FLOAT))
  assert names and values.whole('table') == 'table'
  assert 'y' not in values.split and expected.shape == (7, 4)

"""Optimizers against TensorFlow's own, or written out."""

import numpy as np
import pytest
import tensorflow as tf

from gdp_grappler.workloads import layers
from gdp_grappler.workloads import optimizers
from helpers import v1_graphs

tf1 = tf.compat.v1


def _after_steps(optimizer, steps=3):
  """A weight [4] after steps on the sum of its cubes."""
  with tf.Graph().as_default():
    weight = layers.weights(
        'w', [4], lambda shape, dtype: tf.constant([1., -2., 3., .5], dtype))
    step = optimizer().minimize(tf.reduce_sum(weight**3))
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      for _ in range(steps):
        session.run(step)
      return session.run(weight)


@pytest.mark.parametrize(
    'unfused, fused',
    [(lambda: optimizers.RmsProp(.01, .8, .7, .5),
      lambda: tf1.train.RMSPropOptimizer(.01, .8, .7, .5, centered=True)),
     (lambda: optimizers.Adam(.05, .8, .9, .1),
      lambda: tf1.train.AdamOptimizer(.05, .8, .9, .1))])
def test_unfused_optimizer_is_the_fused_one(unfused, fused):
  ours, theirs = _after_steps(unfused), _after_steps(fused)
  assert not np.allclose(ours, [1., -2., 3., .5], atol=.01)
  np.testing.assert_allclose(ours, theirs, rtol=1e-5)


@pytest.mark.parametrize('limit, factor', [(5., .5), (100., 1.)])
def test_clip_jointly_scales_all_alike(limit, factor):

  def build():
    x, y = (layers.weights(name, [2]) for name in 'xy')
    clipped = optimizers.clip_jointly(limit)([(tf.constant([6., 0.]), x),
                                              (tf.constant([0., 8.]), y)])
    assert [v.op.name for _, v in clipped] == ['x', 'y']
    return [gradient for gradient, _ in clipped]

  first, second = v1_graphs.run(build)
  np.testing.assert_allclose(first, [6. * factor, 0.])
  np.testing.assert_allclose(second, [0., 8. * factor])


def test_clip_each_scales_long_ones():

  def build():
    x, y = (layers.weights(name, [2]) for name in 'xy')
    return [
        gradient for gradient, _ in optimizers.clip_each(5.)([(
            tf.constant([3., 0.]), x), (tf.constant([6., 8.]), y)])
    ]

  short, long = v1_graphs.run(build)
  np.testing.assert_allclose(short, [3., 0.])
  np.testing.assert_allclose(long, [3., 4.], rtol=1e-6)


def test_step_updates_averages_of_weights_and_statistics():
  x = np.random.default_rng(0).normal(3., 2., [8, 2, 2, 1])
  with tf.Graph().as_default():
    y = layers.batch_norm(tf.constant(x, tf.float32), 'norm', .9)
    step = optimizers.TrainingStep(tf1.train.GradientDescentOptimizer(1.),
                                   average_decay=.75).minimize(tf.reduce_sum(y))
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      session.run(step)
      values = {v.op.name: session.run(v) for v in tf1.global_variables()}
  # The offset falls by its gradient, one per element.
  np.testing.assert_allclose(values['norm/offset'], [-32.], rtol=1e-5)
  np.testing.assert_allclose(values['norm/offset/average'], [-8.], rtol=1e-5)
  np.testing.assert_allclose(values['norm/moving_mean'], [.1 * x.mean()],
                             rtol=1e-4)
  np.testing.assert_allclose(values['norm/moving_variance'],
                             [.9 + .1 * x.var()], rtol=1e-4)
  np.testing.assert_allclose(values['norm/moving_mean/average'],
                             [.025 * x.mean()], rtol=1e-4)


def test_step_adds_up_the_gradients_of_a_row():
  with tf.Graph().as_default():
    table = layers.weights('table', [4, 2], tf1.zeros_initializer())
    rows = tf.gather(table, [1, 3, 1])
    step = optimizers.TrainingStep(
        tf1.train.GradientDescentOptimizer(1.)).minimize(tf.reduce_sum(rows))
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      session.run(step)
      np.testing.assert_array_equal(
          session.run(table), [[0., 0.], [-2., -2.], [0., 0.], [-1., -1.]])


def _after_a_clipped_step(norm):
  """A weight of gradient 3, and a table whose row 1 has gradient (0, 4)."""
  with tf.Graph().as_default() as graph:
    weight = tf1.get_variable('stage0/weight', initializer=10.,
                              use_resource=True)
    table = tf1.get_variable('stage1/table', initializer=np.zeros(
        (3, 2), np.float32), use_resource=True)
    row = tf.nn.embedding_lookup(table, [1])
    loss = 3. * weight + 4. * tf.reduce_sum(row[:, 1])
    step = optimizers.ClippedOptimizer(tf1.train.GradientDescentOptimizer(1.),
                                       norm).minimize(loss)
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      session.run(step)
      return (*session.run((weight, table)), graph)


@pytest.mark.parametrize('norm, factor', [(10., 1.), (5., 1.), (1., .2)])
def test_all_are_scaled_by_one_factor(norm, factor):
  weight, table, _ = _after_a_clipped_step(norm)
  np.testing.assert_allclose(weight, 10. - 3. * factor, rtol=1e-6)
  np.testing.assert_allclose(table, [[0, 0], [0, -4. * factor], [0, 0]],
                             rtol=1e-6)


def test_rows_are_updated_and_not_the_table():
  _, _, graph = _after_a_clipped_step(1.)
  types = [op.type for op in graph.get_operations()]
  assert 'ResourceScatterAdd' in types
  assert types.count('ResourceApplyGradientDescent') == 1


def test_ops_belong_to_their_weights():
  _, _, graph = _after_a_clipped_step(1.)
  norms = [op.name for op in graph.get_operations() if op.type == 'L2Loss']
  assert [name.split('/')[:3] for name in norms
         ] == [['stage0', 'weight', 'clip'], ['stage1', 'table', 'clip']]

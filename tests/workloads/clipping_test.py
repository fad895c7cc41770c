import numpy as np
import pytest
import tensorflow as tf

from gdp_grappler.workloads import clipping

tf1 = tf.compat.v1


def _after_a_step(norm):
  """A weight of gradient 3, and a table whose row 1 has gradient (0, 4)."""
  with tf.Graph().as_default() as graph:
    weight = tf1.get_variable('stage0/weight', initializer=10.,
                              use_resource=True)
    table = tf1.get_variable('stage1/table', initializer=np.zeros(
        (3, 2), np.float32), use_resource=True)
    row = tf.nn.embedding_lookup(table, [1])
    loss = 3. * weight + 4. * tf.reduce_sum(row[:, 1])
    step = clipping.ClippedOptimizer(tf1.train.GradientDescentOptimizer(1.),
                                     norm).minimize(loss)
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      session.run(step)
      return (*session.run((weight, table)), graph)


@pytest.mark.parametrize('norm, factor', [(10., 1.), (5., 1.), (1., .2)])
def test_all_are_scaled_by_one_factor(norm, factor):
  weight, table, _ = _after_a_step(norm)
  np.testing.assert_allclose(weight, 10. - 3. * factor, rtol=1e-6)
  np.testing.assert_allclose(table, [[0, 0], [0, -4. * factor], [0, 0]],
                             rtol=1e-6)


def test_rows_are_updated_and_not_the_table():
  _, _, graph = _after_a_step(1.)
  types = [op.type for op in graph.get_operations()]
  assert 'ResourceScatterAdd' in types
  assert types.count('ResourceApplyGradientDescent') == 1


def test_ops_belong_to_their_weights():
  _, _, graph = _after_a_step(1.)
  norms = [op.name for op in graph.get_operations() if op.type == 'L2Loss']
  assert [name.split('/')[:3] for name in norms
         ] == [['stage0', 'weight', 'clip'], ['stage1', 'table', 'clip']]

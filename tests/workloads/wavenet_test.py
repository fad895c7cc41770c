"""WaveNet: the dilated causal convolution written out, and it learns."""

import numpy as np
import pytest
import tensorflow as tf

from gdp_grappler.workloads import wavenet
from helpers import training_steps

tf1 = tf.compat.v1
_BY_NAME = {w.name: w for w in wavenet.WORKLOADS}


@pytest.mark.parametrize('dilation', [1, 2, 4])
def test_convolution_sees_now_and_a_dilation_ago(dilation):
  x = np.random.default_rng(dilation).normal(size=[2, 8, 3])
  with tf.Graph().as_default():
    y = wavenet._from_rows(
        wavenet._convolved(
            wavenet._to_rows(tf.constant(x, tf.float32), dilation), 'c', 5))
    kernel, bias = tf1.global_variables()
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      y, kernel, bias = session.run((y, kernel, bias))
  expected = np.zeros([2, 8, 5])
  for t in range(8):
    expected[:, t] = x[:, t] @ kernel[0, 1] + bias
    if t >= dilation:
      expected[:, t] += x[:, t - dilation] @ kernel[0, 0]
  np.testing.assert_allclose(y, expected, atol=1e-5)


def _layer(x, config, last):
  with tf1.variable_scope('', reuse=tf1.AUTO_REUSE):
    return wavenet._layer(tf.constant(x, tf.float32), 2, config, last)


def test_layer_is_gated_and_residual():
  config = wavenet.WaveNetConfig(1, channels=2, skip_channels=3)
  x = np.random.default_rng(0).normal(size=[1, 4, 2])
  with tf.Graph().as_default():
    outputs, last = (_layer(x, config, is_last) for is_last in (False, True))
    variables = {v.op.name: v for v in tf1.global_variables()}
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      (y, skip), values = session.run((outputs, variables))
      np.testing.assert_allclose(session.run(last[0]), x, rtol=1e-6)
  past = np.concatenate([np.zeros([1, 2, 2]), x[:, :-2]], 1)

  def convolved(name):
    kernel = values[f'{name}/kernel']
    return past @ kernel[0, 0] + x @ kernel[0, 1] + values[f'{name}/bias']

  gated = np.tanh(convolved('filter')) / (1. + np.exp(-convolved('gate')))
  np.testing.assert_allclose(skip, gated @ values['skip/kernel'], atol=1e-5)
  np.testing.assert_allclose(
      y, x + gated @ values['residual/kernel'] + values['residual/bias'],
      atol=1e-5)


def test_loss_falls():
  losses = training_steps.losses(_BY_NAME['wavenet-2x18@tiny'], 25)
  assert np.isfinite(losses).all()
  assert np.mean(losses[-3:]) < .7 * losses[0]


def test_each_layer_is_a_stage():
  with tf.Graph().as_default() as graph:
    _BY_NAME['wavenet-2x18'].build()
  _, stages = training_steps.sizes(graph)
  assert stages == set(range(18 + 2))


def test_sizes_of_the_papers():
  full = {w.name: w for w in wavenet.WORKLOADS if '@' not in w.name}
  assert {
      name: (w.paper_ops, w.build.args[0].stacks) for name, w in full.items()
  } == {
      'wavenet-2x18': (0, 2), 'wavenet-4x36': (0, 4),
      'wavenet-5-stack': (4374, 5), 'wavenet-10-stack': (8516, 10)
  }
  assert {f'{name}@tiny' for name in full} < set(_BY_NAME)


def test_sums_of_gradients_are_free():
  with tf.Graph().as_default() as graph:
    workload = _BY_NAME['wavenet-4x36@tiny']
    workload.optimizer().minimize(workload.build())
  sums = [
      node for node in graph.as_graph_def().node
      if node.op == 'AddN' and 'gradient' in node.name
  ]
  assert len(sums) >= 4
  assert not [node.name for node in sums if '_class' in node.attr]

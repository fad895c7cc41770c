import numpy as np
import tensorflow as tf

from placer_model.hdp import lstm
from placer_model.hdp import weights as weights_lib

_STEPS, _SEQUENCES, _INPUTS, _UNITS = 7, 3, 5, 4


def _random(*shape):
  return tf.constant(
      np.random.default_rng(len(shape)).normal(size=shape), tf.float32)


def _arguments():
  return (_random(_STEPS, _SEQUENCES,
                  _INPUTS), _random(_SEQUENCES,
                                    _UNITS), _random(_SEQUENCES, _UNITS) / 2)


def _kernel(layer, x, cell, hidden):
  """TensorFlow's kernel, with its own gradient."""
  weights, bias = layer.trainable_variables
  if weights.shape.rank == 1:
    weights, bias = bias, weights
  zeros = tf.zeros([_UNITS])
  result = tf.raw_ops.BlockLSTM(seq_len_max=tf.constant(_STEPS, tf.int64), x=x,
                                cs_prev=cell, h_prev=hidden, w=weights, b=bias,
                                wci=zeros, wcf=zeros, wco=zeros, forget_bias=1.,
                                cell_clip=-1., use_peephole=False)
  return result.cs, result.h


def _gradients(layer, run):
  arguments = _arguments()
  with tf.GradientTape() as tape:
    tape.watch(arguments)
    cells, hiddens = run(*arguments)
    loss = (tf.reduce_sum(_random(_STEPS, _SEQUENCES, _UNITS) * hiddens)
            + tf.reduce_sum(cells**2))
  return tape.gradient(loss, (*arguments, *layer.trainable_variables))


def test_gradient_is_that_of_the_kernel():
  layer = lstm.Lstm(weights_lib.Weights(0), _INPUTS, _UNITS, 'layer')
  ours = _gradients(layer, layer.run)
  theirs = _gradients(layer, lambda *a: _kernel(layer, *a))
  assert len(ours) == 5
  for a, b in zip(ours, theirs):
    assert np.abs(b).max() > 0.1
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_step_by_step_is_the_whole_sequence():
  layer = lstm.Lstm(weights_lib.Weights(1), _INPUTS, _UNITS, 'layer')
  x, cell, hidden = _arguments()
  cells, hiddens = layer.run(x, cell, hidden)
  for k in range(_STEPS):
    cell, hidden = layer.step(x[k], cell, hidden)
    np.testing.assert_allclose(cell, cells[k], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(hidden, hiddens[k], rtol=1e-5, atol=1e-6)


def test_begins_with_zeros():
  layer = lstm.Lstm(weights_lib.Weights(2), _INPUTS, _UNITS, 'layer')
  x = _arguments()[0]
  zeros = tf.zeros([_SEQUENCES, _UNITS])
  for a, b in zip(layer.run(x), layer.run(x, zeros, zeros)):
    np.testing.assert_array_equal(a, b)

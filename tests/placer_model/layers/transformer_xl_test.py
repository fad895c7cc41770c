"""Tests of the Transformer-XL layer against a loop over segments."""

import placer_model  # isort: skip  # before TensorFlow  # noqa: F401

import numpy as np
import pytest
import tensorflow as tf

from placer_model.layers import transformer_xl

UNITS, HEADS, HEAD_UNITS, SEGMENT = 6, 2, 3, 4


def _attention(seed=0):
  layer = transformer_xl.SegmentAttention(UNITS, HEADS, HEAD_UNITS, SEGMENT,
                                          seed)
  layer(tf.zeros([1, UNITS]))
  rng = np.random.default_rng(seed)
  for weight in layer.trainable_weights:
    weight.assign(rng.normal(size=weight.shape) / 2)
  return layer


def _sequence(size, seed=1):
  return np.random.default_rng(seed).normal(size=(size,
                                                  UNITS)).astype(np.float32)


def _naive(layer, x):
  """What Dai et al. describe: one segment after the other, with a cache."""

  def project(dense, rows):
    return rows @ dense.kernel.numpy() + dense.bias.numpy()

  cache, result = np.zeros((0, UNITS)), []
  for start in range(0, len(x), SEGMENT):
    segment = x[start:start + SEGMENT]
    context = np.concatenate([cache, segment])
    query = project(layer.query, segment)
    key, value = project(layer.key, context), project(layer.value, context)
    mixed = np.zeros_like(query)
    for head in range(HEADS):
      part = slice(head * HEAD_UNITS, (head + 1) * HEAD_UNITS)
      scores = query[:, part] @ key[:, part].T / np.sqrt(HEAD_UNITS)
      weights = np.exp(scores - scores.max(axis=1, keepdims=True))
      weights /= weights.sum(axis=1, keepdims=True)
      mixed[:, part] = weights @ value[:, part]
    result.append(project(layer.out, mixed))
    cache = segment
  return np.concatenate(result)


@pytest.mark.parametrize('size', [1, 3, 4, 5, 8, 9, 15, 16, 23])
def test_all_segments_at_once_equal_a_loop(size):
  layer, x = _attention(), _sequence(size)
  np.testing.assert_allclose(layer(x), _naive(layer, x), atol=1e-4, rtol=1e-4)


def test_no_units():
  assert _attention()(tf.zeros([0, UNITS])).shape == (0, UNITS)


def test_a_function_of_unknown_size_serves_all_sizes():
  layer = _attention()
  function = tf.function(
      layer, input_signature=[tf.TensorSpec([None, UNITS], tf.float32)])
  for size in (1, 5, 12):
    x = _sequence(size)
    np.testing.assert_allclose(function(x), layer(x), atol=1e-5)


def test_later_segments_do_not_change_earlier_ones():
  layer, x = _attention(), _sequence(12)
  np.testing.assert_allclose(layer(x)[:8], layer(x[:8]), atol=1e-5)


def test_the_reach_is_one_segment_back():
  layer, x = _attention(), _sequence(12)
  changed = x.copy()
  changed[0] += 1
  difference = np.abs(layer(changed) - layer(x)).max(axis=1)
  assert (difference[:8] > 1e-6).all()  # own segment and the next
  np.testing.assert_array_equal(difference[8:], 0)


def test_padding_has_no_weight_at_all():
  """Five units in segments of 4: three of eight rows are padding."""
  bias = transformer_xl.context_bias(tf.constant(5), SEGMENT)[:, 0, 0].numpy()
  real = [[0, 0, 0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 1, 0, 0, 0]]
  np.testing.assert_array_equal(bias == 0, np.array(real, bool))
  # The largest score of a padded key is still nothing.
  weights = tf.nn.softmax(
      tf.constant([[80.] * 8] * 2) * [[1.]] + bias
      + 1e4 * tf.cast(bias < 0, tf.float32)).numpy()
  np.testing.assert_array_equal(weights[bias < 0], 0)


def test_padding_never_reaches_a_result():
  """The same units, however long the segment that holds them."""
  x = _sequence(3)
  results = []
  for length in (3, 4, 7, 64):
    layer = transformer_xl.SegmentAttention(UNITS, HEADS, HEAD_UNITS, length, 0)
    layer(x)
    layer.key.bias.assign(tf.ones_like(layer.key.bias) * 9)
    layer.value.bias.assign(tf.ones_like(layer.value.bias) * 9)
    results.append(layer(x).numpy())
  for result in results[1:]:
    np.testing.assert_allclose(result, results[0], atol=1e-5)


def test_there_is_no_position():
  """Within one segment, permuted units give permuted results."""
  layer, x = _attention(), _sequence(4)
  order = [2, 0, 3, 1]
  np.testing.assert_allclose(layer(x[order]),
                             layer(x).numpy()[order], atol=1e-5)


def test_no_gradient_into_the_memory():
  """Results of the second segment depend on the first, unknown to gradients."""
  layer, x = _attention(), tf.constant(_sequence(8))
  with tf.GradientTape() as tape:
    tape.watch(x)
    loss = tf.reduce_sum(layer(x)[4:])
  gradient = tape.gradient(loss, x).numpy()
  np.testing.assert_array_equal(gradient[:4], 0)
  assert np.abs(gradient[4:]).min() > 0


def test_weights_learn_from_the_memory():
  """As in Transformer-XL, only the cached states are constants."""
  layer, x = _attention(), tf.constant(_sequence(8))
  with tf.GradientTape() as tape:
    loss = tf.reduce_sum(layer(x)[4:])
  found = tape.gradient(loss, layer.value.kernel).numpy()
  step = np.zeros_like(found)
  step[2, 1] = 1e-2
  values = []
  for sign in (1, -1):
    layer.value.kernel.assign_add(sign * step)
    values.append(_naive(layer, x.numpy())[4:].sum())
    layer.value.kernel.assign_sub(sign * step)
  np.testing.assert_allclose(found[2, 1], (values[0] - values[1]) / 2e-2,
                             rtol=1e-2)


def test_without_attention_units_do_not_see_each_other():
  layer = transformer_xl.TransformerXlLayer(UNITS, HEADS, HEAD_UNITS, 8,
                                            SEGMENT, attention=False)
  x = _sequence(6)
  np.testing.assert_allclose(layer(x)[3:4], layer(x[3:4]), atol=1e-6)
  assert not any('attention' in w.name for w in layer.trainable_weights)

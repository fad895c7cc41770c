import pytest
import tensorflow as tf

from helpers import graph_defs


def _shares(dtype='float32', image=(2, 9, 9, 16), kernel=(3, 3, 16, 32),
            strides=1, layout='NHWC', **how):
  """`winograd_shares` of a convolution and its two gradients."""

  def make():
    x = tf.compat.v1.placeholder(dtype, image)
    w = tf.compat.v1.placeholder(dtype, kernel)
    y = tf.nn.conv2d(x, w, strides, 'SAME', data_format=layout, name='y', **how)
    tf.gradients(y, [x, w], name='gradients')

  graph = graph_defs.read(make)
  found = [
      share for kind, share in zip(graph.op_types, graph.winograd_shares)
      if kind.startswith('Conv2D')
  ]
  assert len(found) == 3 and sum(found) == graph.winograd_shares.sum()
  return found


def test_small_filters_suit_and_so_do_their_gradients():
  assert _shares() == [1, 1, 1]
  assert _shares(image=(None, 16, 9, 9), layout='NCHW') == [1, 1, 1]
  assert _shares(dtype='float16') == [1, 1, 1]


@pytest.mark.parametrize(
    'how',
    [
        dict(dtype='bfloat16'),
        dict(dtype='float64'),
        dict(kernel=(1, 1, 16, 32)),
        dict(kernel=(3, 1, 16, 32)),
        dict(kernel=(5, 5, 16, 32)),
        dict(strides=2),
        dict(dilations=2),
        # Two groups of 16 channels; images of three channels.
        dict(image=(2, 9, 9, 32)),
        dict(image=(2, 9, 9, 3), kernel=(3, 3, 3, 32))
    ])
def test_other_convolutions_do_not(how):
  assert _shares(**how) == [0, 0, 0]


def test_a_filter_of_unknown_size_does_not():

  def make():
    x = tf.compat.v1.placeholder('float32', [2, 9, 9, 16])
    w = tf.compat.v1.placeholder('float32')
    tf.raw_ops.Conv2D(input=x, filter=w, strides=[1] * 4, padding='SAME')

  assert not graph_defs.read(make).winograd_shares.any()


def test_a_call_has_the_share_of_its_flops():

  @tf.function(jit_compile=True, autograph=False)
  def compiled(x, small, plain):
    x = tf.nn.conv2d(x, small, 1, 'SAME')
    return tf.nn.conv2d(x, plain, 1, 'SAME')

  def make():
    x = tf.compat.v1.placeholder('float32', [2, 9, 9, 16])
    compiled(x, tf.zeros([3, 3, 16, 16]), tf.zeros([1, 1, 16, 16]))

  graph = graph_defs.read(make)
  assert graph.winograd_shares.max() == pytest.approx(.9, rel=1e-4)

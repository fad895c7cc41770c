"""Graphs with open dimensions, in which tensors may have no elements."""

import pytest
import tensorflow as tf

from gdp_grappler.graph import graph_def_io
from helpers import graph_defs

tf1 = tf.compat.v1


def _told(size, dims=(None, None)):
  """Lines about the product of frames of 40 samples."""

  def make():
    x = tf1.placeholder(tf.float32, dims)
    frames = tf.strided_slice(x, [0, 40], tf.shape(x), [1, 40], name='frames')
    tf.linalg.matmul(frames, frames, transpose_b=True)

  said = []
  graph_def_io.read(graph_defs.source(graph_defs.built(make)), unknown_dim=size,
                    tell=said.append)
  return said


def test_the_first_op_without_elements_is_told():
  """Frames of a short sound had no elements, and no line said so."""
  assert _told(32) == [
      'With 32 for unknown dimensions, the output of "frames" (StridedSlice) '
      'is empty, so ops that depend on it cost nothing; batch_size sets the '
      'size.'
  ]


@pytest.mark.parametrize('size, dims', [(400, (None, None)), (32, (None, 400)),
                                        (32, (32, 32))])
def test_other_graphs_get_no_line(size, dims):
  assert not _told(size, dims)

import numpy as np
import pytest
import tensorflow as tf

from gdp_grappler import errors
from gdp_grappler.graph import node_table
from gdp_grappler.graph import op_properties
from helpers import graph_defs

_BATCH = 16


def _read(make, unknown_dim=_BATCH):
  """Returns the properties of a graph, and each node's number by name."""
  definition = graph_defs.built(make)
  table = node_table.NodeTable('test', definition)
  return op_properties.estimate(table, unknown_dim), {
      node.name: i for i, node in enumerate(definition.node)
  }


def _shape(make):
  """Returns the shape of the op that is called 'found'."""
  result, index = _read(make)
  return result.shape(index['found'], 0)


def _bytes(make):
  """Returns the bytes of the op that is called 'found', of very many rows."""
  result, index = _read(make, unknown_dim=1 << 20)
  assert (result.flops >= 0).all() and (result.io_bytes >= 0).all()
  return result.output_bytes[result.output_starts[index['found']]]


def _input(*shape):
  return tf.compat.v1.placeholder(tf.float32, shape)


def _open_and_known(function):
  """Returns the sizes of a gradient, with an open and a known batch."""

  def make():
    x, weights = _input(None, 4, 5, 3), _input(1, 4, 5, 3)
    tf.gradients(function(x, weights), [x, weights])

  definition = graph_defs.built(make)
  for _ in range(2):
    yield op_properties.estimate(node_table.NodeTable('test', definition),
                                 _BATCH)
    for node in definition.node:
      for dim in node.attr['shape'].shape.dim:
        dim.size = _BATCH if dim.size < 0 else dim.size


@pytest.mark.parametrize('function', [
    lambda x, w: tf.repeat(tf.repeat(x * w, 2, axis=1), 2, axis=2),
    lambda x, w: tf.reduce_mean(x + w, axis=[1, 2], keepdims=True),
    lambda x, w: tf.reduce_mean(x + w, axis=[1, 2]),
    lambda x, w: x + tf.tile(w, [tf.shape(x)[0], 1, 1, 1]),
    lambda x, w: tf.reshape(x * w, [-1, 3]),
], ids=['repeat', 'mean', 'pooling', 'tile', 'rows'])
def test_an_open_batch_makes_the_sizes_of_a_known_batch(function):
  """Each size that a Reshape or a Sum lost was that of the batch."""
  found, known = _open_and_known(function)
  assert known.output_dims.tolist() == found.output_dims.tolist()
  assert known.output_bytes.tolist() == found.output_bytes.tolist()
  np.testing.assert_array_equal(known.flops, found.flops)
  # A tensor of the batch, or one that is repeated in two directions.
  images = found.output_bytes.max() / (4 * _BATCH * 4 * 5 * 3)
  assert images in (1, 4)


@pytest.mark.parametrize('rank, expected', [
    (1, (_BATCH * 12,)),
    (2, (_BATCH, 12)),
    (4, (_BATCH, 1, 1, 12)),
])
def test_a_reshape_to_a_shape_from_data_keeps_all_elements(rank, expected):

  def make():
    shape = tf.compat.v1.placeholder(tf.int32, [rank])
    tf.reshape(_input(None, 12), shape, name='found')

  assert _shape(make) == expected


def test_a_reshape_that_no_batch_fits_keeps_all_elements():
  assert _shape(lambda: tf.reshape(_input(None), [-1, 3], name='found')) == (6,
                                                                             3)


def test_data_make_no_more_elements_than_a_batch():
  """A tensor of four sizes from data had the fourth power of a batch."""
  assert _shape(lambda: tf.fill(tf.compat.v1.placeholder(tf.int32, [4]), 0.,
                                name='found')) == (_BATCH, 1, 1, 1)


def test_a_mask_that_is_reshaped_selects_all_elements():
  """It counted as one that selects as many elements as a batch has."""

  def make():
    mask = tf.compat.v1.placeholder(tf.bool, [None, 12])
    tf.identity(tf.boolean_mask(_input(None, 12, 7), mask), name='found')

  assert _shape(make) == (_BATCH * 12, 7)


def test_the_inputs_of_a_graph_have_a_batch_in_each_dimension():
  assert _shape(lambda: tf.compat.v1.placeholder(
      tf.float32, [None, None, 3], 'found')) == (_BATCH, _BATCH, 3)


@pytest.mark.parametrize('make', [
    lambda: tf.matmul(_input(*[None] * 9), _input(*[None] * 9), name='found'),
    lambda: tf.raw_ops.ResourceGather(
        resource=tf.compat.v1.get_variable('v', [9, 9], use_resource=True).
        handle, indices=tf.compat.v1.placeholder(
            tf.int32, [None] * 9), dtype=tf.float32, name='found'),
    lambda: tf.nn.conv2d(_input(None, None, None, 3), _input(None, None, 3, 2),
                         1, 'SAME', name='found'),
    lambda: tf.multiply(_input(1 << 40, 1), _input(1, 1 << 40), name='found'),
], ids=['product', 'lookup', 'convolution', 'known'])
def test_tensors_that_no_memory_holds_are_read(make):
  """The number of their elements overflowed, and the process was gone."""
  assert _bytes(make) == 4 * 10**12


def test_an_empty_tensor_of_large_dimensions_is_read():
  """The product of the sizes before the 0 overflowed: the process was gone."""
  assert not _bytes(lambda: tf.tile(tf.compat.v1.placeholder(tf.float32),
                                    [1 << 20, -1, -1, -1, 0], name='found'))


def test_a_rank_that_no_memory_holds_is_refused():
  """An exception of TensorFlow ended the process."""
  shape = tf.TensorShape([1 << 62]).as_proto()
  definition = graph_defs.graph_def(
      graph_defs.node('x', 'Placeholder', dtype=graph_defs.FLOAT,
                      shape={'shape': {'unknown_rank': True}}),
      graph_defs.node('order', 'Placeholder', dtype={'type': 3},
                      shape={'shape': shape}),
      graph_defs.node('found', 'Transpose', ['x', 'order'], T=graph_defs.FLOAT,
                      Tperm={'type': 3}))
  with pytest.raises(errors.InvalidGraphError, match='vector'):
    op_properties.estimate(node_table.NodeTable('test', definition), _BATCH)


def test_crops_of_unknown_boxes_are_read():
  """Grappler read the size of a dimension that was not there."""
  assert _shape(lambda: tf.raw_ops.CropAndResize(
      image=_input(2, 8, 8, 3), boxes=tf.compat.v1.placeholder(
          tf.float32), box_ind=tf.compat.v1.placeholder(tf.int32, [None]),
      crop_size=[4, 4], name='found')) == (_BATCH, 4, 4, 3)


@pytest.mark.parametrize('make', [
    lambda x, k: tf.raw_ops.Range(start=k, limit=10, delta=1),
    lambda x, k: tf.raw_ops.GatherV2(params=x, indices=[0], axis=k),
    lambda x, k: tf.raw_ops.LinSpace(start=0., stop=1., num=k),
], ids=['range', 'gather', 'numbers'])
def test_a_value_of_another_rank_is_read(make):
  """TensorFlow's shape function ended the process."""

  def two_numbers():
    x = _input(None, 3)
    sizes = tf.shape(x)
    rank = tf.strided_slice(sizes, [sizes[0] - (_BATCH - 1)], [2]) - 1
    make(x, tf.reshape(tf.constant([1, 0]), rank))

  _read(two_numbers)


def test_a_convolution_without_channels_is_read():
  """Grappler divided by the number of channels."""

  def make():
    sizes = tf.shape(_input(None))
    tf.raw_ops.Conv2DBackpropFilter(
        input=_input(None, 8, 8, None),
        filter_sizes=tf.stack([3, 3, sizes[0] // (2 * _BATCH),
                               8]), out_backprop=_input(None, 8, 8, 8),
        strides=[1] * 4, padding='SAME', name='found')

  assert _shape(make) == (3, 3, 0, 8)


def test_a_range_to_a_size_has_as_many_numbers():
  """As many numbers as samples of a batch were counted."""
  assert _shape(lambda: tf.range(0, 3 * tf.shape(_input(None))[0], name='found')
               ) == (3 * _BATCH,)


def test_a_control_input_before_another_input_is_refused():
  definition = graph_defs.graph_def(
      graph_defs.node('x', 'Placeholder', dtype=graph_defs.FLOAT,
                      shape={'shape': tf.TensorShape([2]).as_proto()}),
      graph_defs.node('found', 'Identity', ['^x', 'x'], T=graph_defs.FLOAT))
  with pytest.raises(errors.InvalidGraphError, match='control input before'):
    op_properties.estimate(node_table.NodeTable('test', definition), _BATCH)


def _last_axis(x):
  """The last axis, as a value that shape inference does not know."""
  return tf.range(tf.rank(x))[-1]


def _all_but_last(x):
  return tf.shape(x)[:_last_axis(x)]


@pytest.mark.parametrize('part', [
    _all_but_last,
    lambda x: tf.split(tf.shape(x), [_last_axis(x), 1])[0],
], ids=['slice', 'split'])
def test_a_reshape_to_a_computed_part_of_a_shape_is_known(part):
  """Its rank was unknown, and a product behind it cost no FLOPs."""

  def make():
    x = _input(None, 128)
    for _ in range(6):  # More often than shape inference runs.
      x = tf.reshape(tf.tanh(x), tf.concat([part(x), [2, 64]], 0))
      x = tf.reshape(x, [-1, 128])
    rows = tf.reshape(x, tf.concat([part(x), [2, 64]], 0))
    tf.raw_ops.Einsum(inputs=[rows, tf.ones([64, 3])], equation='...d,dv->...v',
                      name='found')

  result, index = _read(make)
  assert result.shape(index['found'], 0) == (_BATCH, 2, 3)
  assert result.flops[index['found']] == 2 * _BATCH * 2 * 64 * 3


def test_frames_of_an_open_length_are_known():
  """All shapes after the frames of a signal were unknown."""
  assert _shape(lambda: tf.tanh(tf.signal.frame(_input(None, None), 4, 2), name=
                                'found')) == (_BATCH, (_BATCH - 2) // 2, 4)


def test_a_guessed_number_of_sizes_is_no_rank():

  def make():
    sizes = tf.shape(tf.compat.v1.placeholder(tf.float32))
    tf.reshape(_input(None, 3), tf.concat([sizes, [3]], 0), name='found')

  assert _shape(make) is None


@pytest.mark.parametrize('sizes, expected', [
    ([1 << 20], 4 * 10**12),
    ([1 << 20, 0], 0),
    ([1 << 20, 1 << 20], 4 << 20),
], ids=['large', 'empty', 'overflow'])
def test_large_tensors_of_computed_rank_are_read(sizes, expected):
  """The last one has more elements than numbers count: one row is guessed."""

  def make():
    part = _all_but_last(_input(None, None, 3))
    tf.fill(tf.concat([part, sizes], 0), 0., name='found')

  assert _bytes(make) == expected


@pytest.mark.parametrize('part, expected', [
    (lambda sizes: sizes[::-1], (5, 4, _BATCH)),
    (lambda sizes: sizes[2:0:-1], (5, 4)),
    (lambda sizes: sizes[-9:2], (_BATCH, 4)),
    (lambda sizes: sizes[2:1], ()),
    (lambda sizes: tf.range(tf.size(sizes))[::-1], (2, 1, 0)),
], ids=['reverse', 'end', 'before', 'empty', 'order'])
def test_any_slice_of_a_shape_is_known(part, expected):
  """The graph was rejected, because Grappler cannot compute the slice."""

  def make():
    # Without an op between slice and fill, TensorFlow does not make the graph.
    sizes = tf.maximum(part(tf.shape(_input(None, 4, 5))), 0)
    tf.fill(sizes, 0., name='found')

  assert _shape(make) == expected


def test_a_slice_of_a_shape_of_computed_rank_is_known():
  """Grappler cannot compute the slice as soon as the rank is known."""

  def make():
    x = _input(None, 128)
    y = tf.reshape(x, tf.concat([_all_but_last(x), [2, 64]], 0))
    tf.fill(tf.maximum(tf.shape(y)[::-1], 0), 0., name='found')

  assert _shape(make) == (64, 2, _BATCH)


def test_other_slices_are_known_if_one_reverses_a_shape():

  def make():
    x = _input(None, 4, 6)
    sizes = tf.shape(x)
    rows = tf.reshape(x, tf.concat([sizes[:1], [-1]], 0))
    tokens = tf.cast(rows, tf.int32)[:, 1:]
    tf.gather(tf.ones([9, 7]), tokens, name='found')
    tf.identity(sizes[::-1])

  assert _shape(make) == (_BATCH, 23, 7)

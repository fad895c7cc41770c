"""Arithmetic of ops for which the estimator has no rule, by hand."""

import math

import numpy as np
import pytest
import tensorflow as tf

from gdp_grappler.graph import node_table
from gdp_grappler.graph import op_properties
from helpers import graph_defs

# An image, its double size, and a window of 3 by 3 for each channel.
_SMALL, _LARGE, _CHANNELS = (2, 4, 4, 5), (2, 8, 8, 5), 5
_IMAGE, _WINDOW = 2 * 8 * 8 * _CHANNELS, 9


def _flops(make, **arguments):
  """Of an op of these arguments. Tuples are shapes of placeholders."""

  def build():
    values = {
        name:
            tf.compat.v1.placeholder(tf.float32, value) if isinstance(
                value, tuple) else value for name, value in arguments.items()
    }
    make(name='found', **values)

  definition = graph_defs.built(build)
  found = op_properties.estimate(node_table.NodeTable('test', definition), 32)
  return found.flops[[node.name for node in definition.node].index('found')]


@pytest.mark.parametrize('make, arguments, neighbours', [
    (tf.raw_ops.ResizeBicubic, dict(images=_SMALL, size=[8, 8]), 16),
    (tf.raw_ops.ResizeBicubicGrad, dict(grads=_LARGE,
                                        original_image=_SMALL), 16),
    (tf.raw_ops.ResizeBilinearGrad, dict(grads=_LARGE,
                                         original_image=_SMALL), 4),
])
def test_images_that_are_resized(make, arguments, neighbours):
  """They cost no arithmetic."""
  assert _flops(make, **arguments) == 2 * neighbours * _IMAGE


@pytest.mark.parametrize('make, gradient', [
    (tf.raw_ops.Dilation2D, {}),
    (tf.raw_ops.Dilation2DBackpropInput, dict(out_backprop=_LARGE)),
    (tf.raw_ops.Dilation2DBackpropFilter, dict(out_backprop=_LARGE)),
])
def test_dilations_add_and_compare_for_each_number_of_a_window(make, gradient):
  """They cost no arithmetic."""
  assert _flops(make, input=_LARGE, filter=(3, 3, _CHANNELS), strides=[1] * 4,
                rates=[1] * 4, padding='SAME',
                **gradient) == 2 * _IMAGE * _WINDOW


@pytest.mark.parametrize('make', [tf.raw_ops.LowerBound, tf.raw_ops.UpperBound])
def test_searches_take_ten_operations_for_each_halving_of_a_row(make):
  """They cost no arithmetic."""
  assert _flops(make, sorted_inputs=(3, 127),
                values=(3, 6)) == pytest.approx(10 * 3 * 6 * 7)


@pytest.mark.parametrize('make', [tf.raw_ops.CTCLoss, tf.raw_ops.CTCLossV2])
def test_alignments_visit_each_label_and_blank_in_each_step_of_time(make):
  """A loss that takes as long as the rest of a step cost no arithmetic."""
  time, examples, classes, labels = 7, 2, 11, 3
  found = _flops(make, inputs=(time, examples, classes),
                 labels_indices=np.zeros([examples * labels, 2], np.int64),
                 labels_values=np.zeros([examples * labels], np.int32),
                 sequence_length=[time] * examples)
  states = time * examples * (2 * labels + 1)
  exponentials = 10 * states + time * examples * classes
  assert found == 20 * exponentials


def test_empty_tensors_cost_nothing():
  assert _flops(tf.raw_ops.UpperBound, sorted_inputs=(3, 0), values=(3, 6)) == 0
  assert _flops(tf.raw_ops.ResizeBilinearGrad, grads=(0, 8, 8, 5),
                original_image=(0, 4, 4, 5)) == 0


def test_logarithms_of_rows_of_one():
  assert _flops(tf.raw_ops.LowerBound, sorted_inputs=(3, 1),
                values=(3, 6)) == pytest.approx(10 * 3 * 6 * math.log2(2))

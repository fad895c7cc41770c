"""Inception-V3, AmoebaNet and ResNet: published sizes, and they learn."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from gdp_grappler.workloads import amoebanet
from gdp_grappler.workloads import inception
from gdp_grappler.workloads import resnet
from helpers import training_steps

tf1 = tf.compat.v1
_BY_NAME = {
    w.name: w for family in (amoebanet, inception, resnet)
    for w in family.WORKLOADS
}


@functools.cache
def _forward(name):
  """The graph of the loss."""
  with tf.Graph().as_default() as graph:
    _BY_NAME[name].build()
  return graph


@pytest.mark.parametrize(
    'name', ['amoebanet@tiny', 'inception-v3-b32@tiny', 'resnet-50@tiny'])
def test_loss_falls(name):
  losses = training_steps.losses(_BY_NAME[name], 12)
  assert np.isfinite(losses).all()
  assert np.mean(losses[-3:]) < .7 * losses[0]


# Weights: GPipe, table 1 (82 million); Szegedy et al., 23.8 million without
# and 27.2 million with the auxiliary head, of 1001 classes; He et al., 25.6.
@pytest.mark.parametrize('name, weights, stages, tolerance',
                         [('amoebanet', 82e6, 24, .05),
                          ('inception-v3-b64', 27.15e6, 17, .01),
                          ('resnet-50', 25.557e6, 18, .001)])
def test_has_the_published_weights(name, weights, stages, tolerance):
  count, of_weights = training_steps.sizes(_forward(name))
  assert count == pytest.approx(weights, rel=tolerance)
  assert of_weights == set(range(stages))


def test_sizes_of_the_papers():
  full = {w.name: w for w in _BY_NAME.values() if '@' not in w.name}
  assert {name: (w.paper_ops, w.num_devices) for name, w in full.items()} == {
      'amoebanet': (9430, 4), 'inception-v3-b32': (24_713, 2),
      'inception-v3-b64': (24_713, 2), 'resnet-50': (0, 2)
  }
  assert {f'{name}@tiny' for name in full} < set(_BY_NAME)


def test_inception_halves_to_eight():
  shapes = [
      tuple(op.outputs[0].shape)
      for op in _forward('inception-v3-b64').get_operations()
      if op.type == 'ConcatV2' and op.outputs[0].shape.rank == 4
  ]
  assert shapes == ([(64, 35, 35, 256)] + 2 * [(64, 35, 35, 288)]
                    + 5 * [(64, 17, 17, 768)] + [(64, 8, 8, 1280)]
                    + 2 * [(64, 8, 8, 2048)])


def test_amoebanet_halves_to_seven():
  cells = [
      tuple(op.outputs[0].shape)
      for op in _forward('amoebanet').get_operations()
      if op.type == 'ConcatV2' and op.name.count('/') == 1
  ]
  # Stem, stem, normal, reduction, normal, reduction, normal.
  assert cells == [(64, 56, 56, 156),
                   (64, 28, 28, 312), *6 * [(64, 28, 28, 832)],
                   (64, 14, 14, 1248), *6 * [(64, 14, 14, 1664)],
                   (64, 7, 7, 2496), *6 * [(64, 7, 7, 3328)]]


def test_halving_looks_at_every_other_pixel_twice():
  with tf.Graph().as_default():
    image = tf.constant(np.arange(1., 17.).reshape(1, 4, 4, 1), tf.float32)
    halved = amoebanet._halved(image, 'halved', 2)
    gradient = tf.gradients(
        halved * [[[[1., 2.]]]]
        * tf.reshape(tf.constant([1., 3., 7., 20.]), [1, 2, 2, 1]), image)[0]
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      seen = session.run(gradient)[0, :, :, 0] != 0.
  # Pixels of even coordinates, and of odd ones but the last.
  assert seen[::2, ::2].all() and seen[1, 1]
  assert not seen[0, 1] and not seen[1, 0]

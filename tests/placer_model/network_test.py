"""Tests of the placer network as a whole."""

import placer_model  # isort: skip  # before TensorFlow  # noqa: F401

import numpy as np
import pytest
import tensorflow as tf

from gdp_grappler.features import schema
from placer_model import config as config_lib
from placer_model import export
from placer_model import network as network_lib
from placer_model.training import optimizers

SMALL = config_lib.PlacerConfig(type_buckets=32, type_units=4, hidden_units=16,
                                graph_layers=1, transformer_layers=1, heads=2,
                                head_units=4, feed_forward_units=12,
                                segment_length=8, device_units=8,
                                initial_logit_scale=1.0)


@pytest.fixture(name='network', scope='module')
def _network():
  return network_lib.PlacerNetwork(SMALL)


@pytest.fixture(name='plain', scope='module')
def _plain():
  return network_lib.PlacerNetwork(SMALL.replace(superposition=False))


def _features(num_units, num_edges, num_devices, seed=0):
  return {
      name: tf.constant(value) for name, value in export.random_features(
          num_units, num_edges, num_devices, seed).items()
  }


def _devices(*types):
  """Devices that differ by type alone."""
  result = np.ones((len(types), len(schema.DEVICE_FEATURES)), np.float32)
  result[:,
         schema.DEVICE_FEATURES.index('is_cpu')] = [t == 'CPU' for t in types]
  result[:,
         schema.DEVICE_FEATURES.index('is_gpu')] = [t == 'GPU' for t in types]
  return tf.constant(result)


@pytest.mark.parametrize('size', [(1, 0, 1), (3, 2, 2), (8, 9, 3), (9, 20, 9),
                                  (61, 150, 5)])
def test_one_network_serves_all_sizes(network, size):
  features = _features(*size)
  logits = network(features).numpy()
  assert logits.shape == (size[0], size[2])
  assert np.isfinite(logits).all()


def test_a_function_of_unknown_sizes_agrees_with_eager_calls(network):
  function = tf.function(network, input_signature=[network_lib.feature_specs()])
  for size in ((5, 4, 2), (30, 70, 4)):
    features = _features(*size)
    np.testing.assert_allclose(function(features), network(features), atol=1e-4)


def test_disallowed_devices_have_no_probability(network):
  features = _features(30, 60, 4)
  allowed = features['allowed'].numpy()
  assert not allowed.all()
  odds = tf.nn.softmax(network(features)).numpy()
  np.testing.assert_array_equal(odds[~allowed], 0)
  assert (odds[allowed] > 0).all()


def test_masked_logits_give_finite_gradients(network):
  features = _features(12, 30, 3)
  with tf.GradientTape() as tape:
    log_odds = tf.nn.log_softmax(network(features))
    loss = tf.reduce_sum(tf.exp(log_odds) * log_odds)  # negative entropy
  for gradient in tape.gradient(loss, network.trainable_variables):
    assert np.isfinite(tf.convert_to_tensor(gradient)).all()


@pytest.mark.parametrize(
    'changes', [{'graph_layers': 2, 'transformer_layers': 2}, {
        'superposition': False, 'positions': 4, 'graph_residual': True,
        'centred_head': True
    }, {'attention': False}, {'attention': False, 'superposition': False},
                {'graph_layers': 0, 'transformer_layers': 0}])
def test_every_weight_learns(changes):
  network = network_lib.PlacerNetwork(SMALL.replace(**changes))
  # Memory and several segments need more units than a segment has.
  features = _features(30, 90, 5)
  with tf.GradientTape() as tape:
    loss = tf.reduce_sum(tf.nn.log_softmax(network(features))[:, 0])
  gradients = tape.gradient(loss, network.trainable_variables)
  for variable, gradient in zip(network.trainable_variables, gradients):
    assert gradient is not None, variable.name
    # The softmax does not see what all keys of a query have in common.
    if not variable.name.endswith(('key/bias:0', 'device_key/bias:0')):
      assert np.any(tf.convert_to_tensor(gradient)), variable.name


def test_an_untrained_network_is_nearly_indifferent():
  network = network_lib.PlacerNetwork(SMALL.replace(initial_logit_scale=0.01))
  features = _features(40, 100, 4)
  allowed = features['allowed'].numpy()
  odds = tf.nn.softmax(network(features)).numpy()
  uniform = allowed / allowed.sum(axis=1, keepdims=True)
  assert 0 < np.abs(odds - uniform).max() < 0.05


def test_order_of_units_does_not_matter_within_a_segment(network):
  """No positions: renumbered units get the same logits."""
  features = _features(8, 14, 3)
  order = np.random.default_rng(0).permutation(8)  # new -> old
  place = np.argsort(order)  # old -> new
  renumbered = dict(
      features, edges=tf.gather(place.astype(np.int32), features['edges']), **{
          name: tf.gather(features[name], order)
          for name in ('op_types', 'units', 'allowed')
      })
  np.testing.assert_allclose(network(renumbered),
                             network(features).numpy()[order], atol=1e-4)


def _two_equal_chains(length=4):
  """Units of one type, in turn of the one chain and of the other."""
  count = 2 * length
  ones = np.ones((count, len(schema.UNIT_FEATURES)), np.float32)
  levels = np.repeat(np.arange(length), 2)
  ones[:, schema.UNIT_FEATURES.index('level')] = levels
  edges = np.array([(i, i + 2) for i in range(count - 2)], np.int32)
  return {
      'op_types': tf.constant(['MatMul'] * count), 'units': tf.constant(ones),
      'edges': tf.constant(edges), 'edge_bytes': tf.ones([len(edges)]),
      'allowed': tf.ones([count, 3],
                         tf.bool), 'devices': _devices('CPU', 'GPU', 'GPU')
  }


def test_equal_branches_are_told_apart_by_positions_alone(network):
  logits = network(_two_equal_chains()).numpy()
  np.testing.assert_allclose(logits[::2], logits[1::2], atol=1e-5)
  placed = network_lib.PlacerNetwork(SMALL.replace(positions=4))
  logits = placed(_two_equal_chains()).numpy()
  assert np.abs(logits[::2] - logits[1::2]).max(axis=1).min() > 1e-3


def test_what_units_have_in_common_moves_no_logit():
  network = network_lib.PlacerNetwork(
      SMALL.replace(centred_head=True, superposition=False))
  features = _features(30, 60, 3) | {'allowed': tf.ones([30, 3], tf.bool)}
  logits = network(features).numpy()
  assert np.abs(logits).max() > 0.1
  np.testing.assert_allclose(logits.mean(axis=0), 0, atol=1e-4)


def test_equal_devices_differ_by_their_slot_alone(network):
  """CPU and two equal GPUs: exchanging the GPUs changes nothing."""
  features = _features(10, 20, 3) | {
      'devices': _devices('CPU', 'GPU', 'GPU'), 'allowed': tf.ones([10, 3],
                                                                   tf.bool)
  }
  logits = network(features).numpy()
  assert np.abs(logits[:, 1] - logits[:, 2]).min() > 1e-6
  # GPUs first: each device keeps its type and its slot, hence its logit.
  moved = network(features | {'devices': _devices('GPU', 'GPU', 'CPU')})
  np.testing.assert_allclose(moved.numpy()[:, [2, 0, 1]], logits, atol=1e-4)


def test_too_many_devices_are_named():
  network = network_lib.PlacerNetwork(SMALL.replace(device_slots=2))
  features = _features(4, 3, 3) | {'devices': _devices('GPU', 'CPU', 'GPU')}
  assert network(features).shape == (4, 3)
  features['devices'] = _devices('GPU', 'GPU', 'GPU')
  with pytest.raises(tf.errors.InvalidArgumentError,
                     match='at most 2 devices of one type'):
    network(features)


def test_each_kind_of_feature_matters(network):
  features = _features(20, 40, 3)
  logits = network(features).numpy()
  edges = features['edges'].numpy()
  for name, value in (('op_types', tf.constant([b'Other'] * 20)),
                      ('units', features['units'] * 3),
                      ('edges', tf.constant(edges[::-1] // 2 + [[0, 10]])),
                      ('edge_bytes', features['edge_bytes'][::-1]),
                      ('devices', features['devices'] * 3)):
    changed = network(features | {name: value}).numpy()
    assert np.abs(changed - logits).max() > 1e-5, name


def test_what_neighbours_may_do_matters(network):
  """A pin is seen by others, although it masks nothing of theirs."""
  features = _features(6, 9, 3) | {'allowed': tf.ones([6, 3], tf.bool)}
  pinned = np.ones((6, 3), bool)
  pinned[0] = [False, False, True]
  changed = network(features | {'allowed': tf.constant(pinned)}).numpy()
  assert np.abs(changed - network(features).numpy())[1:].max() > 1e-5


def test_ablations_change_the_function(network, plain):
  features = _features(20, 40, 3)
  inattentive = network_lib.PlacerNetwork(SMALL.replace(attention=False))
  logits = [n(features) for n in (network, plain, inattentive)]
  assert np.abs(logits[0] - logits[1]).max() > 1e-3
  assert np.abs(logits[0] - logits[2]).max() > 1e-3


def test_superposition_off_leaves_no_conditioning_weights(plain):
  assert plain.conditioning is None
  assert not any('condition' in w.name for w in plain.variables)


def test_condition_one_is_no_condition(plain):
  """With c = 1 everywhere, superposition computes what the ablation does."""
  network = network_lib.PlacerNetwork(SMALL)
  for dense in network.conditioning.maps:
    dense.kernel.assign(tf.zeros_like(dense.kernel))
  shared = [w for w in network.variables if 'conditioning' not in w.name]
  for weight, value in zip(shared, plain.variables, strict=True):
    weight.assign(value)
  features = _features(20, 40, 3)
  np.testing.assert_allclose(network(features), plain(features), atol=1e-5)


def test_the_seed_decides_the_weights(network):
  tf.random.set_seed(2)
  same = network_lib.PlacerNetwork(SMALL)
  other = network_lib.PlacerNetwork(SMALL.replace(seed=1))
  for a, b in zip(network.get_weights(), same.get_weights()):
    np.testing.assert_array_equal(a, b)
  different = [
      np.any(a != b) for a, b in zip(network.get_weights(), other.get_weights())
  ]
  matrices = [w.shape.rank == 2 for w in network.variables]
  assert different == matrices


def test_equal_matrices_are_not_drawn_twice():
  network = network_lib.PlacerNetwork(config_lib.preset('default'))
  kernels = [w.numpy() for w in network.variables if w.shape.rank == 2]
  drawn = {k[0, :4].tobytes() for k in kernels}
  assert len(drawn) == len(kernels)


def test_training_steps_are_reproducible():
  network = network_lib.PlacerNetwork(SMALL)
  initial = network.get_weights()
  features = _features(40, 100, 3)

  def train():
    network.set_weights(initial)
    for _ in range(2):
      with tf.GradientTape() as tape:
        loss = -tf.reduce_mean(tf.nn.log_softmax(network(features))[:, 0])
      for v, g in zip(network.trainable_variables,
                      tape.gradient(loss, network.trainable_variables)):
        v.assign_sub(0.1 * tf.convert_to_tensor(g))
    return network.get_weights()

  for a, b in zip(train(), train()):
    np.testing.assert_array_equal(a, b)


def test_it_learns_to_split_a_chain():
  """First half on one GPU, second half on the other, in 100 Adam steps."""
  network = network_lib.PlacerNetwork(SMALL.replace(initial_logit_scale=0.01))
  features = _features(40, 0, 2) | {
      'edges': tf.constant([[i, i + 1] for i in range(39)]),
      'edge_bytes': tf.ones([39]), 'devices': _devices(
          'GPU', 'GPU'), 'allowed': tf.ones([40, 2], tf.bool)
  }
  units = np.ones((40, len(schema.UNIT_FEATURES)), np.float32)
  units[:, schema.UNIT_FEATURES.index('level')] = np.arange(40)
  features['units'] = tf.constant(units)
  target = tf.constant([0] * 20 + [1] * 20)
  optimizer = optimizers.Adam(0.005)
  optimizer.build(network.trainable_variables)

  @tf.function(autograph=False)
  def step():
    with tf.GradientTape() as tape:
      loss = tf.reduce_mean(
          tf.nn.sparse_softmax_cross_entropy_with_logits(
              target, network(features)))
    variables = network.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))

  for _ in range(100):
    step()
  np.testing.assert_array_equal(tf.argmax(network(features), 1), target)


def test_graph_features_become_tensors():
  raw = export.random_features(4, 3, 2, seed=0)
  features = schema.GraphFeatures(
      op_types=tuple(t.decode() for t in raw['op_types']),
      units=raw['units'].astype(np.float64), edges=raw['edges'],
      edge_bytes=raw['edge_bytes'], allowed=raw['allowed'],
      devices=raw['devices'])
  tensors = network_lib.features_to_tensors(features)
  for name, spec in network_lib.feature_specs().items():
    assert spec.is_compatible_with(tensors[name]), name
    np.testing.assert_array_equal(
        tensors[name], raw[name] if name != 'units' else raw['units'])


def test_an_empty_edge_list_keeps_its_shape():
  features = schema.GraphFeatures(
      ('A',), np.ones((1, len(schema.UNIT_FEATURES)), np.float32),
      np.zeros((0, 2), np.int32), np.zeros(0, np.float32), np.ones((1, 1),
                                                                   bool),
      np.ones((1, len(schema.DEVICE_FEATURES)), np.float32))
  tensors = network_lib.features_to_tensors(features)
  assert tensors['edges'].shape == (0, 2)

import numpy as np
import pytest

from gdp_grappler.placers.search.moves import move_scoring
from gdp_grappler.placers.search.moves import shipped_moves
from placer_model.training.moves import move_layers


@pytest.fixture(name='network')
def _network():
  return shipped_moves.network()


@pytest.fixture(name='features')
def _features(network):
  """Of two looks at three moves."""
  rng = np.random.default_rng(0)
  shape = 2, 3, len(network.features)
  return (network.mean + network.deviation * rng.normal(size=shape)).astype(
      np.float32)


def test_equal_to_the_network_of_the_search(network, features):
  layers = move_layers.MoveLayers(network, .5, 1.)
  ours = layers.predict(network.standardized(features))
  flat = network.predict(features.reshape(6, -1))
  for own, their in zip(ours, flat):
    np.testing.assert_allclose(own.numpy().ravel(), their, rtol=1e-5, atol=1e-5)


def test_logits_are_the_scores_of_open_moves(network, features):
  layers = move_layers.MoveLayers(network, .5, .25)
  is_open = np.array([[True] * 3, [True, False, True], [True] * 3])
  logits = layers({
      'moves': network.standardized(features), 'look': np.array([1, 1, 0]),
      'open': is_open
  }).numpy()
  scores = np.array([
      move_scoring.gain_scores(*network.predict(look), .5) for look in features
  ]) / .25
  np.testing.assert_allclose(logits[is_open], scores[[1, 1, 0]][is_open],
                             rtol=1e-4, atol=1e-4)
  assert logits[1, 1] < -1e8


def test_weights_come_back_as_they_went_in(network):
  layers = move_layers.MoveLayers(network, .5, 1.)
  assert layers.network().digest == network.digest
  assert sum(v.shape.num_elements() for v in layers.trainable_variables) == sum(
      getattr(network, name).size
      for name in ('hidden_weights', 'hidden_bias', 'weights', 'bias'))

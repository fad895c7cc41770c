"""Correlated sampling: same marginals, another joint."""

import numpy as np
import pytest

from helpers import toy_training
from placer_model.training import exploration

_CHAIN = np.array([(i, i + 1) for i in range(29)])


def _neighbours():
  return exploration.Neighbours(30, _CHAIN, np.arange(29.0))


def _connected(members):
  """Whether units of a chain follow each other without a gap."""
  return np.ptp(members) == len(members) - 1


@pytest.mark.parametrize('seeds', [1, 2, 7, 30])
def test_clusters_are_a_partition_into_connected_parts(seeds):
  labels = _neighbours().clusters(seeds, np.random.default_rng(seeds))
  assert set(labels) == set(range(seeds))
  for label in range(seeds):
    assert _connected(np.flatnonzero(labels == label))


def test_units_without_a_seed_in_reach_stand_alone():
  neighbours = exploration.Neighbours(4, np.array([[0, 1]]), np.ones(1))
  labels = neighbours.clusters(1, np.random.default_rng(0))
  assert len(set(labels[2:])) == 2


@pytest.mark.parametrize('size', [1, 5, 29])
def test_ball_is_connected_and_of_the_wanted_size(size):
  for seed in range(20):
    ball = _neighbours().ball(14, size, np.random.default_rng(seed))
    assert 14 in ball
    assert len(ball) == size
    assert _connected(ball)


def test_ball_stops_where_the_graph_ends():
  neighbours = exploration.Neighbours(4, np.array([[0, 1]]), np.ones(1))
  ball = neighbours.ball(0, 4, np.random.default_rng(0))
  assert sorted(ball.tolist()) == [0, 1]


def test_marginals_are_the_policys():
  rng = np.random.default_rng(1)
  probabilities = rng.dirichlet([0.7, 0.7, 0.7], size=30)
  probabilities[3] = [0.0, 1.0, 0.0]
  count = 4000
  uniforms = exploration.correlated_uniforms(_neighbours(), count, rng)
  chosen = exploration.choose(probabilities, uniforms, rng)
  frequency = (chosen[:, :, None] == np.arange(3)).mean(axis=0)
  # Five deviations of the mean of 4,000 draws.
  np.testing.assert_allclose(frequency, probabilities, atol=5 * 0.5 / 63)
  assert (chosen[:, 3] == 1).all()


def test_neighbours_agree_more_often_than_by_chance():
  probabilities = np.full((30, 2), 0.5)
  rng = np.random.default_rng(2)
  correlated = exploration.choose(
      probabilities, exploration.correlated_uniforms(_neighbours(), 2000, rng),
      rng)
  independent = exploration.choose(probabilities, rng.random((2000, 30)), rng)

  def agreement(chosen):
    return (chosen[:, 1:] == chosen[:, :-1]).mean()

  assert agreement(correlated) > 0.7
  assert agreement(independent) == pytest.approx(0.5, abs=0.02)


def test_units_of_a_cluster_share_their_number():
  rng = np.random.default_rng(3)
  uniforms = exploration.correlated_uniforms(_neighbours(), 50, rng)
  for row in uniforms:
    for value in np.unique(row):
      assert _connected(np.flatnonzero(row == value))


def _levels(units, *aims):
  return exploration.levels(toy_training.chain_environment(units), aims)


def test_levels_go_from_few_clusters_to_single_units():
  levels = _levels(64, 4, 8, 16, 32, 64)
  sizes = [len(set(labels)) for labels in levels]
  assert sizes == sorted(sizes) and sizes[0] <= 8
  assert len(levels) == 5 and sizes[-1] == 64
  for labels in levels:
    assert set(labels) == set(range(labels.max() + 1))
    for label in set(labels):
      assert _connected(np.flatnonzero(labels == label))


def test_each_level_divides_the_clusters_of_the_one_before():
  levels = _levels(64, 3, 10, 30, 64)
  for coarse, fine in zip(levels, levels[1:]):
    assert len(set(zip(fine, coarse))) == len(set(fine))


@pytest.mark.parametrize('units, aims', [(6, (12, 20)), (6, (6, 6, 6)),
                                         (6, (2,)), (1, (1, 1, 4))])
def test_small_graphs_have_single_units_alone(units, aims):
  [labels] = _levels(units, *aims)
  np.testing.assert_array_equal(labels, np.arange(units))


def test_nats_of_a_rollout():
  """Certain units have none; a cluster has what its units have in the mean."""
  policy = np.array([[1., 0.], [.5, .5], [.5, .5], [.5, .5]])
  for clusters, nats in (([0, 1, 2, 3], 3), ([0, 0, 0,
                                              0], 3 / 4), ([0, 0, 1,
                                                            1], 3 / 2)):
    assert exploration.nats(policy, np.array(clusters)) == pytest.approx(
        nats * np.log(2))


def test_a_level_shares_numbers_within_its_clusters():
  clusters = np.array([0, 0, 1, 1, 1, 2])
  drawn = exploration.level_uniforms(clusters, 7, np.random.default_rng(0))
  assert drawn.shape == (7, 6)
  for row in drawn:
    assert len(set(row)) == 3
    assert row[0] == row[1] and len(set(row[2:5])) == 1


def test_same_generator_same_samples():
  probabilities = np.full((30, 3), 1 / 3)

  def draw():
    rng = np.random.default_rng(5)
    uniforms = exploration.correlated_uniforms(_neighbours(), 4, rng)
    return exploration.choose(probabilities, uniforms, rng)

  np.testing.assert_array_equal(draw(), draw())

"""Cluster flips."""

import numpy as np
import pytest

from helpers import toy_training
from placer_model.training import exploration
from placer_model.training import local_search


def _search(environment):
  return local_search.LocalSearch(
      environment,
      exploration.Neighbours(environment.num_units, environment.features.edges,
                             environment.features.edge_bytes))


def test_moves_keep_to_what_is_allowed():
  environment = toy_training.chain_environment(8)
  allowed = np.ones((8, 3), bool)
  allowed[:4, 2] = False
  allowed[0] = [True, False, False]
  environment.features.allowed.setflags(write=True)
  environment.features.allowed[:] = allowed
  start = np.array([0, 1, 1, 1, 1, 1, 1, 1])
  search = _search(environment)
  for seed in range(30):
    trials = search.improve(start, np.inf, 16, np.random.default_rng(seed))
    assert allowed[np.arange(8), trials.decisions].all()
    assert (trials.decisions[:12] != start).any(axis=1).all()


def test_gaining_moves_are_tried_together():
  """Without transfers every op that leaves the slow CPU gains."""
  environment = toy_training.chain_environment(8, transfer_s=0.0)
  trials = _search(environment).improve(np.zeros(8, int), 32.0, 40,
                                        np.random.default_rng(0))
  singles, unions = trials.step_time_s[:30], trials.step_time_s[30:]
  assert len(unions) == 10
  assert unions.min() < singles.min()


def test_climbs_to_the_optimum():
  environment = toy_training.chain_environment(9)
  optimum = toy_training.best_by_brute_force(environment)
  search = _search(environment)
  best, seconds = np.ones(9, int), 9.0
  for seed in range(20):
    trials = search.improve(best, seconds, 32, np.random.default_rng(seed))
    if trials.step_time_s.min() < seconds:
      best, seconds = trials.decisions[trials.best()], trials.step_time_s.min()
  assert seconds == pytest.approx(optimum)


def test_nothing_to_move():
  environment = toy_training.chain_environment(3)
  environment.features.allowed.setflags(write=True)
  environment.features.allowed[:] = np.eye(3, dtype=bool)
  search = _search(environment)
  assert not search.can_move
  assert search.improve(np.arange(3), 1.0, 8, np.random.default_rng(0)) is None

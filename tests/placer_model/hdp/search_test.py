"""The search, with a policy that says what it is told and learns nothing."""

import numpy as np
import pytest

from gdp_grappler import errors
from helpers import clusters
from helpers import graphs
from helpers import problems
from placer_model.hdp import config as config_lib
from placer_model.hdp import search

_CONFIG = config_lib.HdpConfig(steps=3, placer_samples=2)


class _Policy:
  """Every unit is a group of its own; placements come from a list."""

  def __init__(self, *placements):
    self._placements = list(placements)
    self.seeds, self.advantages = [], []

  def sample_grouping(self, seed):
    self.seeds.append(seed)
    return np.arange(3)

  def sample_devices(self, rows, allowed, seed):
    self.seeds.append(seed)
    self._placements.append(self._placements.pop(0))
    return np.array(self._placements[-1])

  def update(self, grouping, rows, allowed, devices, advantages, rate):
    self.advantages.append(advantages)


def _search(policy, grouping=None, **fields):
  problem = problems.make(graphs.make_graph(num_ops=3, param_bytes=60),
                          clusters.make_cluster(2, memory_bytes=130),
                          [[9, 1, 2]] * 3, **fields)
  return search.Search(problem, policy, lambda grouping: grouping[:, None], 3,
                       _CONFIG, grouping)


def test_the_best_that_fits_is_kept():
  # All on GPU:0 takes 3 s and overflows; two there and one on GPU:1 take 2 s.
  policy = _Policy([[1, 1, 1], [2, 2, 1]], [[1, 1, 2], [0, 1, 2]],
                   [[1, 1, 1], [0, 0, 1]])
  found = _search(policy)
  placement = found.run(start=0.)
  assert placement.devices.tolist() == [1, 1, 2]
  assert [step.best_step_time_s for step in found.history] == [4., 2., 2.]
  assert [step.evaluations for step in found.history] == [2, 4, 6]
  assert [step.valid_share for step in found.history] == [.5, 1., .5]


def test_the_best_that_is_shown_is_a_price(monkeypatch):
  """The progress line showed a price as if it were a step."""
  said = []
  monkeypatch.setattr(search.progress, 'reached',
                      lambda share, text: said.append(text))
  _search(_Policy([[1, 1, 2]] * 2)).run(start=0.)
  assert said[-1] == 'best price 2000 ms'


def test_steps_draw_with_seeds_of_their_own():
  policy = _Policy([[1, 1, 2]] * 2)
  _search(policy, seed=7).run(start=0.)
  assert policy.seeds == [(7, number) for number in range(6)]


def test_a_grouping_that_is_fixed_is_not_asked_for():
  policy = _Policy([[1, 2]] * 2)
  found = _search(policy, grouping=np.array([0, 0, 1]))
  assert found.run(start=0.).devices.tolist() == [1, 1, 2]
  assert policy.seeds == [(0, 1), (0, 3), (0, 5)]


def test_what_does_not_run_is_worse_than_what_does():
  policy = _Policy([[1, 1, 1], [1, 1, 2]])
  _search(policy).step()
  failed, ran = policy.advantages[0]
  assert failed < ran


def test_where_nothing_fits():
  with pytest.raises(
      errors.InfeasiblePlacementError,
      match='None of 6 sampled placements of "test" runs.*'
      'GPU:0 needs'):
    _search(_Policy([[1, 1, 1]] * 2)).run(start=0.)


def test_a_budget_that_is_spent_still_makes_one_step():
  found = _search(_Policy([[1, 1, 2]] * 2), time_budget_s=1e-9)
  found.run(start=0.)
  assert len(found.history) == 1

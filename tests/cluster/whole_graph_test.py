"""Tests of gdp_grappler.cluster.whole_graph."""

import numpy as np
import pytest

from gdp_grappler import errors
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.cluster import whole_graph
from helpers import clusters
from helpers import graphs


def _graph(names, groups, **fields):
  return graphs.make_graph([(0, 1, 8)], num_ops=len(names), names=names,
                           groups=groups, **fields)


@pytest.fixture
def step():
  return _graph(['variable', 'read', 'loss'], [0, 0, 1])


def _whole(allowed=(True, True), pin=''):
  """The step among others: 'assign' belongs to the variable."""
  return _graph(['init', 'assign', 'variable', 'read', 'table', 'loss'],
                [0, 1, 1, 1, 2, 3], allowed_types=[(True, True), allowed,
                                                   (True, True), (True, True),
                                                   (False, True), (True, True)],
                pins=['', pin, '', '', '', ''], user_pins=[False] * 6)


def test_ops_outside_the_step_follow_their_group(step):
  cluster = clusters.make_cluster(2)
  placement = placement_lib.Placement([2, 2, 1], cluster, [1., 2., 3.])
  result = whole_graph.extend(placement, step, _whole())
  assert result.devices.tolist() == [0, 2, 2, 2, 1, 1]
  assert result.priorities is None and not result.violations(_whole())


def test_rules_of_ops_outside_the_step_hold_for_their_group(step):
  ruled = whole_graph.with_rules(step, _whole(allowed=(True, False)))
  assert ruled.allowed_types.tolist() == [[True, False], [True, False],
                                          [True, True]]
  assert ruled.fingerprint == step.fingerprint
  pinned = whole_graph.with_rules(step, _whole(pin='GPU:1'))
  assert pinned.pins == ('GPU:1', 'GPU:1', '')


def test_groups_that_the_whole_graph_joins_are_joined(step):
  whole = _whole().replace(groups=[0, 1, 1, 1, 2, 1])
  assert np.unique(whole_graph.with_rules(step, whole).groups).size == 1


def test_a_step_of_another_graph(step):
  with pytest.raises(errors.InvalidGraphError, match='lacks op "loss"'):
    whole_graph.positions(step, _graph(['variable', 'read'], [0, 1]))

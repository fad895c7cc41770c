import importlib

import numpy as np
import pytest

from gdp_grappler import errors
from gdp_grappler.workloads import registry
from helpers import clusters
from helpers import graphs


def test_every_workload_has_one_name():
  names = registry.names()
  assert len(set(names)) == len(names)
  assert all(registry.get(name).name == name for name in names)


@pytest.mark.parametrize('family', [
    'rnnlm', 'gnmt', 'transformer_xl', 'inception', 'amoebanet', 'wavenet',
    'resnet', 'nmt'
])
def test_all_families_of_the_papers_are_there(family):
  module = importlib.import_module(f'gdp_grappler.workloads.{family}')
  own = [workload.name for workload in module.WORKLOADS]
  assert set(own) <= set(registry.names())
  assert any('@' not in name for name in own)
  assert any(name.endswith('@tiny') for name in own)


def test_each_says_what_it_is():
  for name in registry.names():
    workload = registry.get(name)
    assert workload.setting and workload.source
    assert '\n' not in workload.setting
    assert workload.num_devices >= 1 and workload.paper_ops >= 0


@pytest.mark.parametrize('name, ops', [('rnnlm-2', 9_021), ('gnmt-2', 28_044),
                                       ('gnmt-4', 46_600), ('gnmt-8', 83_712)])
def test_ops_that_the_paper_counts(name, ops):
  assert registry.get(name).paper_ops == ops


def test_unknown_name_comes_with_a_near_one():
  with pytest.raises(errors.GdpError, match='Did you mean "gnmt-2"'):
    registry.get('gmnt-2')
  with pytest.raises(errors.GdpError,
                     match='Unknown workload "x".*rnnlm-2, .*all'):
    registry.source('x')


def test_expert_places_whole_stages():
  graph = graphs.make_graph(
      [(0, 1), (1, 2), (2, 3)], op_types=['MatMul'] * 4,
      names=['stage0/a', 'stage1/b', 'stage2/c', 'gradients/stage0/d'])
  cluster = clusters.make_cluster(2)
  devices = registry.expert_devices('rnnlm-2', graph, cluster, np.ones((4, 3)))
  assert devices.tolist() == [1, 2, 2, 1]

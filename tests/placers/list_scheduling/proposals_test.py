import numpy as np
import pytest

from gdp_grappler.cluster import presets
from gdp_grappler.placers.list_scheduling import native_scheduler
from gdp_grappler.placers.list_scheduling import proposals
from helpers import clusters
from helpers import graphs
from helpers import problems
from helpers import task_graphs


@pytest.mark.parametrize('name, halvings, targets',
                         [('cpu', 0, [0]), ('1xP100', 2, [1]),
                          ('2xP100', 2, [1]), ('4xP100', 1, [1, 2]),
                          ('4xP100', 9, [1]), ('8xP100', 1, [1, 2, 3, 4]),
                          ('2xK40+2xP100', 1, [3, 4])])
def test_accelerators_in_use(name, halvings, targets):
  cluster = presets.preset(name)
  graph = graphs.make_graph(num_ops=3, flops=1e12)
  problem = problems.make(graph, cluster)
  assert task_graphs.proposals_of(problem).targets(halvings).tolist() == targets


@pytest.fixture
def mixed():
  """Three ops for any device, one only for CPUs and one only for GPUs."""
  types = [[1, 1], [1, 1], [1, 1], [1, 0], [0, 1]]
  graph = graphs.chain(5, allowed_types=types)
  # GPU:1 is faster than GPU:0.
  return task_graphs.proposals_of(
      problems.make(graph, clusters.make_cluster(2), [[9, 4, 3]] * 5))


def _choices(shared, **bundles):
  return shared.tasks(proposals.Bundles(**bundles)).allowed.astype(int).tolist()


def test_cpus_are_for_what_may_not_be_elsewhere(mixed):
  assert _choices(mixed) == [[0, 1, 1]] * 3 + [[1, 0, 0], [0, 1, 1]]


def test_every_device_is_every_device(mixed):
  assert _choices(mixed, every_device=True) == ([[1, 1, 1]] * 3
                                                + [[1, 0, 0], [0, 1, 1]])


def test_fewer_accelerators_are_the_fastest(mixed):
  assert _choices(mixed, halvings=1) == [[0, 0, 1]] * 3 + [[1, 0, 0], [0, 0, 1]]
  assert mixed.alone(np.zeros(3)).tolist() == [2, 2, 2, 0, 2]


def test_logical_devices_of_one_card_are_slower_than_a_card():
  """They once counted as cards, and stayed in use in place of the card."""
  cluster = clusters.make_cluster(3, compute=['c', 'a', 'a', 'b'])
  shared = task_graphs.proposals_of(
      problems.make(graphs.chain(3), cluster, [[9, 4, 4, 4]] * 3))
  assert shared.targets(1).tolist() == [3]


def test_what_may_not_be_on_the_fastest_stays_where_it_may():
  graph = graphs.chain(2, pins=['GPU:0', ''])
  shared = task_graphs.proposals_of(
      problems.make(graph, clusters.make_cluster(2), [[9, 4, 3]] * 2))
  assert _choices(shared, halvings=1) == [[0, 1, 0], [0, 0, 1]]


def test_what_proposals_share_is_made_once(mixed):
  assert mixed.tasks(proposals.Bundles(grain=1.)) is mixed.tasks(
      proposals.Bundles(grain=1.))
  # Joining bundles changes no task.
  dear = mixed.tasks(proposals.Bundles(grain=1., transfer_grain=1.))
  plain = mixed.tasks(proposals.Bundles(grain=1.))
  assert dear.num_tasks == plain.num_tasks


def test_equal_devices_are_those_of_accelerators_alone(mixed):
  assert not mixed.equal_devices
  graph = graphs.chain(2)
  assert task_graphs.proposals_of(
      problems.make(graph, seconds=[[9, 1, 1], [7, 2, 2]])).equal_devices


@pytest.mark.parametrize('num_ops, num_gpus, large', [(40_000, 3, False),
                                                      (40_001, 1, True),
                                                      (25_001, 7, True),
                                                      (25_000, 7, False)])
def test_large_problems(num_ops, num_gpus, large):
  problem = problems.make(graphs.make_graph(num_ops=num_ops),
                          clusters.make_cluster(num_gpus))
  assert task_graphs.proposals_of(problem).large == large


def test_a_configuration_is_made_from_fields_of_bundles_and_of_rules():
  assert proposals.config(grain=1., ports=True) == proposals.ScheduleConfig(
      proposals.Bundles(grain=1.), native_scheduler.Rules(ports=True))
  with pytest.raises(TypeError, match='grains'):
    proposals.config(grains=1.)


def test_a_proposal_gives_every_group_the_device_of_its_bundle(mixed):
  config = proposals.config(grain=1.)
  devices = mixed.proposer(config)(mixed.cluster.pool_bytes)
  assert devices[3] == 0 and devices[4] in (1, 2)
  assert mixed._allowed[np.arange(5), devices].all()

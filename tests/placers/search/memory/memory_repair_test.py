import dataclasses

import numpy as np
import pytest

from gdp_grappler import deadlines
from gdp_grappler.placers.search import search_config
from gdp_grappler.placers.search.memory import memory_repair
from helpers import clusters
from helpers import graphs
from helpers import problems
from helpers import tight_memory


def _fitted(problem, devices):
  return memory_repair.MemoryRepair(problem).fitted(
      np.array([devices], np.int32))


def test_what_costs_least_per_byte_leaves_for_where_there_is_room():
  # Ops 0 and 1 are large enough, and only op 1 needs no transfer.
  graph = graphs.make_graph([(0, 2, 10)], 3, param_bytes=[60, 60, 10])
  problem = problems.make(graph, clusters.make_cluster(2, memory_bytes=100),
                          [[9, 1, 1]] * 3)
  assert _fitted(problem, [1, 1, 1])[-1].tolist() == [1, 2, 1]


def test_the_host_gets_only_what_no_accelerator_can_hold():
  graph = graphs.make_graph(num_ops=4, param_bytes=[60, 60, 60, 60])
  cluster = clusters.make_cluster(3, memory_bytes=100)
  problem = problems.make(graph, cluster, [[9, 1, 1, 1]] * 4)
  assert sorted(_fitted(problem, [1] * 4)[-1].tolist()) == [0, 1, 2, 3]


def test_what_may_not_leave_stays():
  graph = graphs.make_graph(num_ops=2, param_bytes=60, pins=['GPU:0', 'GPU:0'],
                            user_pins=[True, True])
  problem = problems.make(graph, clusters.make_cluster(2, memory_bytes=100), 1.)
  assert _fitted(problem, [1, 1]).tolist() == [[1, 1]]


def test_what_fits_is_left_alone():
  graph = graphs.chain(4, param_bytes=10)
  problem = problems.make(graph, clusters.make_cluster(2, memory_bytes=1000),
                          1.)
  assert _fitted(problem, [1, 2, 0, 1]).tolist() == [[1, 2, 0, 1]]


def test_nothing_to_do():
  problem = problems.make(graphs.chain(4))
  assert memory_repair.MemoryRepair(problem).fitted(np.zeros(
      (0, 4), np.int32)).size == 0


def test_nothing_is_repaired_if_the_configuration_says_so(monkeypatch):
  config = search_config.DEFAULT
  monkeypatch.setattr(
      search_config, 'DEFAULT',
      dataclasses.replace(config,
                          fit=dataclasses.replace(config.fit, repairs=False)))
  problem = problems.make(graphs.chain(4, param_bytes=10),
                          clusters.make_cluster(2, memory_bytes=25), 1.)
  assert not len(_fitted(problem, [1, 1, 1, 1]))
  monkeypatch.undo()
  assert len(_fitted(problem, [1, 1, 1, 1]))


def test_one_memory_of_several_devices():
  # The first GPU shares its memory with the host. So moves to the host do not
  # help.
  graph = graphs.make_graph(num_ops=3, param_bytes=60)
  cluster = clusters.make_cluster(2, memory_bytes=130,
                                  memory=['shared', 'shared', 'own'])
  problem = problems.make(graph, cluster, [[1, 1, 1]] * 3)
  assert _fitted(problem, [1, 1, 1])[-1].tolist().count(2) == 1


def test_repairs_end_with_the_time():
  """Repairs for METIS once took 4 s of a budget of .25 s."""
  case = tight_memory.case(
      sorted(tight_memory.NETWORKS)[0], 4, .95, True, clusters.FixedCosts)
  problem = problems.make(case.graph, case.cluster, case.seconds)
  repair = memory_repair.MemoryRepair(problem)
  rounds, stock = [], repair._repair_round
  repair._repair_round = lambda *given: rounds.append(given) or stock(*given)
  together = np.ones((3, case.graph.num_groups), np.int32)
  repair.fitted(together, deadlines.within(0.))
  assert len(rounds) == 1  # The first repair always begins.
  repair.fitted(together)
  assert len(rounds) > 10


@pytest.mark.parametrize('network', tight_memory.NETWORKS)
@pytest.mark.parametrize('training', [True, False])
def test_networks_fit_as_the_planted_placement_does(network, training):
  case = tight_memory.case(network, 4, .95, training, clusters.FixedCosts)
  problem = problems.make(case.graph, case.cluster, case.seconds)
  together = np.ones(case.graph.num_groups, np.int32)
  rows = _fitted(problem, together)
  prices = problem.evaluator.price_groups(case.graph, rows)
  assert prices.valid.any()
  # The best placement hardly uses the host, which is many times slower.
  best = rows[prices.best()]
  assert np.isin(best, case.cluster.accelerators).mean() > .9

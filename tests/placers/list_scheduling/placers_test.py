import numpy as np
import pytest

from gdp_grappler.placers.list_scheduling import candidates
from gdp_grappler.placers.list_scheduling import heft
from gdp_grappler.placers.list_scheduling import m_etf
from gdp_grappler.placers.list_scheduling import m_sct
from gdp_grappler.placers.list_scheduling import m_topo
from gdp_grappler.placers.list_scheduling import proposals
from gdp_grappler.placers.simple import single_device
from helpers import clusters
from helpers import graphs
from helpers import problems

_SCHEDULERS = (heft.HeftPlacer, m_etf.MEtfPlacer, m_sct.MSctPlacer)
_PLACERS = (*_SCHEDULERS, m_topo.MTopoPlacer)


@pytest.mark.parametrize('kind', _PLACERS)
def test_memory_is_respected_where_it_can_be(kind):
  # Each of eight chains has 60 bytes of variables. A device has room for two
  # chains.
  edges = [(4 * c + i, 4 * c + i + 1, 1) for c in range(8) for i in range(3)]
  graph = graphs.make_graph(edges, param_bytes=[60, 0, 0, 0] * 8)
  cluster = clusters.make_cluster(4, memory_bytes=140)
  problem = problems.make(graph, cluster, [[9, 1, 1, 1, 1]] * 32)
  placement = kind().place(problem)
  assert problem.evaluator.evaluate(graph, placement).valid


@pytest.mark.parametrize('kind', _PLACERS)
def test_too_much_for_any_memory_is_still_placed(kind):
  graph = graphs.chain(4, param_bytes=1000)
  problem = problems.make(graph, clusters.make_cluster(2, memory_bytes=100), 1.)
  placement = kind().place(problem)
  assert placement.violations(graph) == ()
  assert not problem.evaluator.evaluate(graph, placement).valid


@pytest.mark.parametrize('kind', _PLACERS)
def test_dear_communication_keeps_all_on_one_device(kind):
  graph = graphs.random_graph(0, 80, window=5)
  cluster = clusters.make_cluster(2, latency_s=1e3)
  problem = problems.make(graph, cluster, [[5, 1, 1]] * 80)
  one = problems.seconds_of(problem,
                            single_device.SingleDevicePlacer().place(problem))
  assert problems.seconds_of(problem, kind().place(problem)) <= 1.001 * one


@pytest.mark.parametrize('kind', _SCHEDULERS)
def test_cheap_communication_divides_the_work(kind):
  rng = np.random.default_rng(0)
  edges = {(16 * (i // 16 - 1) + int(rng.integers(16)), i, 8)
           for i in range(16, 320) for _ in range(2)}
  graph = graphs.make_graph(sorted(edges), 320)
  cluster = clusters.make_cluster(4, latency_s=1e-3)
  problem = problems.make(graph, cluster, [[9, 1, 1, 1, 1]] * 320)
  assert problems.seconds_of(problem, kind().place(problem)) < 320 / 4 * 1.1


@pytest.mark.parametrize('kind',
                         [m_etf.MEtfPlacer, heft.HeftPlacer, m_sct.MSctPlacer])
@pytest.mark.parametrize('limit', ['LARGE', 'LARGE_OPS'])
def test_large_graphs_get_fewer_proposals(kind, limit, monkeypatch):
  asked = _asked(monkeypatch)
  monkeypatch.setattr(proposals, limit, 190)
  for num_ops in (50, 200):
    kind().place(
        problems.make(graphs.chain(num_ops), clusters.make_cluster(2), 1.))
  assert asked[0] > asked[1]


def _asked(monkeypatch):
  """Returns a list that gets the number of proposers of each call of `best`."""
  asked = []
  best = candidates.best
  monkeypatch.setattr(
      candidates, 'best', lambda problem, proposers, **more:
      (asked.append(len(proposers)), best(problem, proposers, **more))[1])
  return asked


@pytest.mark.parametrize('kind', _PLACERS[1:])
def test_as_published(kind, monkeypatch):
  asked = _asked(monkeypatch)
  problem = problems.make(graphs.random_graph(0, 80, window=5),
                          clusters.make_cluster(2, latency_s=1e3),
                          [[5, 1, 1]] * 80)
  published = kind(published=True).place(problem)
  assert asked == [1]
  assert published.violations(problem.graph) == ()
  assert problems.seconds_of(problem,
                             kind().place(problem)) < problems.seconds_of(
                                 problem, published)

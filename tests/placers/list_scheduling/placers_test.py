import pathlib

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
import numpy as np
import pytest

from gdp_grappler.cluster import presets
from gdp_grappler.graph import graph_def_io
from gdp_grappler.graph.sources import sources
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
_GRAPHS = sorted(
    (pathlib.Path(__file__).parents[2] / 'testdata').glob('*_train_step.pb'))


def _restricted(seed, num_ops=150):
  graph = graphs.random_graph(seed, num_ops)
  rng = np.random.default_rng(seed)
  types = np.ones((num_ops, 2), bool)
  types[:, 1] = (rng.random(graph.num_groups) < 0.8)[graph.groups]
  pins = np.where(rng.random(graph.num_groups) < 0.1, 'CPU:0', '')
  return graph.replace(allowed_types=types, pins=pins[graph.groups].tolist())


@pytest.mark.parametrize('cluster', [
    clusters.make_cluster(0),
    clusters.make_cluster(1),
    clusters.mixed(),
    presets.preset('2xV100+2xK40'),
    presets.preset('4xcpu-eth10')
], ids=['alone', 'one GPU', 'mixed', 'cards', 'network'])
@pytest.mark.parametrize('kind', _PLACERS)
@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 999))
def test_legal_and_repeatable(kind, cluster, seed):
  problem = problems.make(_restricted(seed), cluster)
  placement = kind().place(problem)
  assert placement.violations(problem.graph) == ()
  again = kind().place(problems.make(_restricted(seed), cluster))
  assert placement.devices.tolist() == again.devices.tolist()


@pytest.fixture(name='graph', scope='module', params=_GRAPHS,
                ids=lambda path: path.stem)
def _graph(request):
  return graph_def_io.read(sources.load(str(request.param)))


@pytest.mark.parametrize('cluster', ['2xP100', '2xP100+2xK40'])
@pytest.mark.parametrize('kind', _PLACERS)
def test_real_graphs(kind, graph, cluster):
  problem = problems.make(graph, presets.preset(cluster))
  placement = kind().place(problem)
  assert problem.evaluator.evaluate(graph, placement).valid


@pytest.mark.parametrize('kind', _PLACERS)
def test_one_op_one_group_and_no_edges(kind):
  cluster = clusters.make_cluster(2)
  for graph in (graphs.make_graph(num_ops=1), graphs.make_graph(num_ops=9),
                graphs.chain(5, groups=[0] * 5)):
    placement = kind().place(problems.make(graph, cluster, 1.))
    assert placement.violations(graph) == ()


@pytest.mark.parametrize('kind', _PLACERS)
def test_memory_is_respected_where_it_can_be(kind):
  # Each of eight chains has 60 bytes of variables; a device has room for two.
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
  """Numbers of proposals, as they are asked for."""
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

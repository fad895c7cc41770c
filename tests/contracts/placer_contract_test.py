"""Tests that every placer has to pass, except placers that learn."""

import dataclasses
import functools
import pathlib

import numpy as np
import pytest

from gdp_grappler import deadlines
from gdp_grappler import errors
from gdp_grappler.cluster import constraints
from gdp_grappler.cluster import presets
from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.graph import graph_def_io
from gdp_grappler.graph.sources import sources
from gdp_grappler.placers import best_of
from gdp_grappler.placers import placer_table
from gdp_grappler.placers import registry
from gdp_grappler.placers.search import search_time
from gdp_grappler.placers.simple import single_device
from helpers import clusters
from helpers import forked_calls
from helpers import graphs
from helpers import problems

_NAMES = [e.name for e in placer_table.table().values() if not e.learns]
_CLUSTERS = {
    'alone': clusters.make_cluster(0), 'one GPU': clusters.make_cluster(1),
    '4xP100': presets.preset('4xP100'),
    'two hosts': presets.preset('2x2xK40-eth10'), 'mixed': clusters.mixed()
}
_TESTDATA = pathlib.Path(__file__).parents[1] / 'testdata'
# Each cluster has its own graph.
_each_case = pytest.mark.parametrize('seed, cluster',
                                     [*enumerate(_CLUSTERS.values())],
                                     ids=_CLUSTERS.keys())
# Placers that follow a prescribed rule. Their steps may be slow.
_OBEDIENT = ('cpu_only', 'gpu_only', 'human_expert', 'random', 'round_robin')
# `single_device` is left out, because the others are compared with it.
_no_worse = pytest.mark.parametrize('name', [
    name for name in _NAMES
    if not name.endswith('_published') and name not in (*_OBEDIENT,
                                                        'single_device')
])
# Seconds of searches in tests that do not check how good the result is.
_SHORT_S = 0.1
# Seconds that are over before the first price on any machine.
_NEARLY_NONE_S = 1e-6
_OPS = 80


def _graph(seed, num_ops=_OPS):
  graph = graphs.random_graph(seed, num_ops)
  rng = np.random.default_rng(seed)
  types = np.ones((num_ops, 2), bool)
  types[:, 1] = (rng.random(graph.num_groups) < 0.8)[graph.groups]
  pins = np.where(rng.random(graph.num_groups) < 0.1, 'CPU:0', '')
  return graph.replace(allowed_types=types, pins=pins[graph.groups].tolist())


def _rounding(graph):
  """Returns the graph with groups that round differently on the other type."""
  homes = np.random.default_rng(3).choice(3, graph.num_groups, p=[.6, .1, .3])
  same = np.array([[0, 1], [1, 0], [1, 1]], bool)[homes]
  return graph.replace(same_numbers=same[graph.groups])


@pytest.fixture(name='name', params=_NAMES)
def _name(request):
  return request.param


@pytest.fixture(autouse=True)
def _short(monkeypatch):
  """Shortens placers that run other placers, and searches by annealing."""
  monkeypatch.setattr(best_of, 'DEFAULT_NAMES',
                      ('single_device', 'human_expert', 'metis'))
  monkeypatch.setattr(search_time, 'evaluations_for', lambda problem: 500)


@pytest.fixture(scope='module', autouse=True)
def _forked():
  """Saves time: other tests cover the start of a partitioner's process."""
  with forked_calls.partitioners():
    yield


@functools.cache
def _training_step(file_name):
  return graph_def_io.read(sources.load(str(_TESTDATA / file_name)))


def _place(name, graph, cluster, seed=0, seconds=None, **given):
  """Places by a placer; the human expert's devices may be illegal."""
  if (placer_table.Need.GPU in registry.get(name).needs and
      single_device.first_device(cluster, 'GPU') is None):
    pytest.skip('needs a GPU')
  expert = np.random.default_rng(seed).integers(0, cluster.num_devices,
                                                graph.num_ops)
  problem = problems.make(graph, cluster, seconds, seed=seed,
                          expert_devices=expert,
                          **{'time_budget_s': _SHORT_S} | given)
  return registry.create(name).place(problem)


def _check(placement, graph, cluster):
  assert placement.violations(graph) == ()
  assert placement.cluster == cluster
  assert set(placement.device_strings()) <= set(cluster.device_names)


@_each_case
def test_placements_are_legal(name, cluster, seed):
  graph = _graph(seed)
  _check(_place(name, graph, cluster, seed), graph, cluster)


@pytest.mark.parametrize('cluster', [_CLUSTERS['one GPU'], _CLUSTERS['mixed']],
                         ids=['one GPU', 'mixed'])
def test_what_rounds_stays_on_its_kind_of_device(name, cluster):
  graph = _rounding(_graph(7))
  placement = _place(name, graph, cluster, 7)
  _check(placement, graph, cluster)
  free = graph.allowed_types.all(axis=1) & ~np.array([*map(bool, graph.pins)])
  alone = np.bincount(graph.groups)[graph.groups] == 1
  rounded = constraints.changes_numbers(graph, cluster, placement.devices)
  assert not rounded[free & alone].any()
  # Without the rule on rounding, other devices would be allowed.
  assert (constraints.allowed_devices(graph, cluster)
          != constraints.allowed_devices(graph.replace(may_round=True),
                                         cluster)).any()


@pytest.mark.parametrize(
    'file_name, cluster', [
        ('dense_train_step.pb', presets.preset('4xcpu-eth10')),
        ('dense_train_step.pb', _CLUSTERS['mixed']),
        ('dense_train_step.pb', _CLUSTERS['two hosts']),
        ('lstm_train_step.pb', _CLUSTERS['one GPU']),
        ('lstm_train_step.pb', _CLUSTERS['4xP100']),
    ], ids=[
        'dense-CPUs', 'dense-mixed', 'dense-two hosts', 'lstm-one GPU',
        'lstm-4xP100'
    ])
def test_training_steps_are_placed(name, cluster, file_name):
  graph = _training_step(file_name)
  placement = _place(name, graph, cluster)
  _check(placement, graph, cluster)
  price = simulator.Simulator(cluster).evaluate(graph, placement)
  assert price.valid and 0 < price.step_time_s < float('inf')


def test_the_same_seed_gives_the_same_placement(name):
  # The clock stands still, because a search that the clock ends may differ.
  first, second = (_place(name, _graph(1, 40), _CLUSTERS['mixed'], 5,
                          clock=deadlines.still).devices for _ in range(2))
  assert first.tolist() == second.tolist()


def test_pins_of_the_user_are_obeyed(name):
  graph = graphs.chain(20, pins=['GPU:1'] + [''] * 18 + ['GPU:0'],
                       user_pins=[True] + [False] * 18 + [True])
  names = _place(name, graph, _CLUSTERS['4xP100']).device_strings()
  assert names[0].endswith('GPU:1') and names[-1].endswith('GPU:0')


def test_one_op_no_edges_and_one_group(name):
  cluster = _CLUSTERS['4xP100']
  for count in (1, 9):
    without_edges = graphs.make_graph(num_ops=count)
    assert _place(name, without_edges, cluster).devices.size == count
  together = graphs.chain(10, groups=[0] * 10)
  assert len(set(_place(name, together, cluster).devices)) == 1


def test_what_cannot_be_placed_is_refused(name):
  graph = graphs.chain(2, pins=['GPU:9', ''], user_pins=[True, False])
  with pytest.raises(errors.InfeasiblePlacementError, match='GPU:9'):
    _place(name, graph, _CLUSTERS['4xP100'])


@pytest.mark.parametrize('op_s, memory_bytes', [(0., 4000), (1e-15, 1 << 40),
                                                (1e12, 4000), (1e12, 1 << 40)])
def test_steps_of_any_length(name, op_s, memory_bytes):
  graph = graphs.random_graph(5, 60).replace(param_bytes=[100] * 60)
  cluster = clusters.make_cluster(2, memory_bytes=memory_bytes)
  seconds = np.full((60, cluster.num_devices), op_s)
  _check(_place(name, graph, cluster, seconds=seconds), graph, cluster)


def _assert_no_worse_than_one_device(name, graph, cluster, seconds=None, seed=0,
                                     **given):
  problem = problems.make(graph, cluster, seconds)
  alone = registry.create('single_device').place(problem)
  placement = _place(name, graph, cluster, seed, seconds=seconds, **given)
  prices = problem.evaluator.price(graph,
                                   np.stack([alone.devices, placement.devices]))
  first, second = prices.keys()
  assert second <= first


@_no_worse
@_each_case
def test_never_worse_than_the_best_device_alone(name, cluster, seed):
  graph = _graph(seed).replace(param_bytes=[1 << 25] * _OPS)
  for time_budget_s in _SHORT_S, _NEARLY_NONE_S:
    _assert_no_worse_than_one_device(name, graph, cluster, seed=seed,
                                     time_budget_s=time_budget_s)


@_no_worse
@pytest.mark.parametrize('seed', range(3))
def test_never_worse_whatever_the_speeds_pins_and_links(name, seed):
  """If many ops are pinned to a GPU, another GPU may be faster but worse."""
  rng = np.random.default_rng(seed)
  cluster = clusters.make_cluster(3, latency_s=1e-4, bandwidth_bytes_per_s=1e9,
                                  memory_bytes=1 << 33)
  links = [
      dataclasses.replace(link, bandwidth_bytes_per_s=1e5)
      if rng.random() < .4 else link for link in cluster.links
  ]
  cluster = dataclasses.replace(cluster, links=links)
  graph = graphs.random_graph(seed, 60)
  pinned = rng.random(graph.num_groups) < .3
  pins = np.where(pinned, f'GPU:{seed % 3}', '')[graph.groups].tolist()
  seconds = rng.exponential(1e-3, (60, 1)) * [9, *rng.permutation([1, 1.1, 4])]
  _assert_no_worse_than_one_device(name, graph.replace(pins=pins), cluster,
                                   seconds, seed)


@pytest.mark.parametrize('kind', ['one GPU', '4xP100'])
def test_a_graph_without_ops_has_a_placement(name, kind):
  """Once searches failed with an IndexError."""
  problem = problems.make(graphs.make_graph([], 0), _CLUSTERS[kind],
                          time_budget_s=_SHORT_S,
                          expert_devices=np.zeros(0, int))
  assert registry.create(name).place(problem).devices.size == 0

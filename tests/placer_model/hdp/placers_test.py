import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from helpers import clusters
from helpers import eager
from helpers import graphs
from helpers import problems
from helpers import stopwatches
from placer_model.hdp import coloc_rl
from placer_model.hdp import config as config_lib
from placer_model.hdp import placers

# So few units need a Grouper that begins undecided and learns quickly.
_SMALL = config_lib.HdpConfig(steps=150, max_groups=4, coloc_groups=8,
                              hidden_units=16, attention_units=8,
                              initial_group_scale=1., learning_rate=0.02)
_ALL = (placers.HdpPlacer, placers.HdpRandomGroupingPlacer,
        placers.HdpNoGroupingPlacer, coloc_rl.ColocRlPlacer)


@pytest.fixture(name='eager')
def _eager():
  with eager.functions():
    yield


def _two_chains(length=4):
  """Two chains that know nothing of each other."""
  edges = [(i, i + 1, 100) for i in range(2 * length - 1) if i + 1 != length]
  return graphs.make_graph(
      edges, 2 * length, op_types=['MatMul'] * length + ['Conv2D'] * length,
      allowed_types=np.tile([False, True], (2 * length, 1)))


def _problem(graph, seconds=(100., 10., 10.), seed=0, **cluster):
  return problems.make(graph, clusters.make_cluster(2, **cluster),
                       np.tile(seconds, (graph.num_ops, 1)), seed=seed)


@pytest.mark.parametrize('kind', [placers.HdpPlacer, coloc_rl.ColocRlPlacer])
def test_finds_the_optimal_split(kind):
  problem = _problem(_two_chains())
  placer = kind(_SMALL)
  assert problems.seconds_of(problem, placer.place(problem)) == 40.
  assert placer.history[-1].best_step_time_s == 40.
  assert placer.history[-1].evaluations == 600


@pytest.mark.parametrize('kind', _ALL[1:])
def test_policy_learns_to_avoid_the_slow_device(kind):
  graph = _two_chains().replace(allowed_types=np.ones((8, 2), bool))
  placer = kind(dataclasses.replace(_SMALL, steps=60))
  placer.place(_problem(graph))
  values = [step.reward for step in placer.history]
  assert np.mean(values[-10:]) > np.mean(values[:5]) + 0.3


@pytest.mark.usefixtures('eager')
@pytest.mark.parametrize('kind', _ALL)
def test_legal_deterministic_and_quiet(kind):
  allowed = np.ones((40, 2), bool)
  allowed[::5, 1] = False
  graph = graphs.random_graph(5, 40).replace(allowed_types=allowed)
  problem = _problem(graph, seed=3, bandwidth_bytes_per_s=1e8)
  tf.random.set_seed(7)
  untouched = tf.random.normal([2]).numpy()
  tf.random.set_seed(7)
  config = dataclasses.replace(_SMALL, steps=3)
  first, second = kind(config), kind(config)
  placement = first.place(problem)
  np.testing.assert_array_equal(tf.random.normal([2]), untouched)
  assert not placement.violations(graph)
  np.testing.assert_array_equal(placement.devices,
                                second.place(problem).devices)
  assert ([dataclasses.replace(s, seconds=0) for s in first.history
          ] == [dataclasses.replace(s, seconds=0) for s in second.history])


@pytest.mark.usefixtures('eager')
@pytest.mark.parametrize('kind', _ALL)
def test_what_rounds_stays_on_its_kind_of_device(kind):
  # All would be faster on the CPU.
  same = np.where(np.arange(40)[:, None] % 2, [[False, True]], [[True, True]])
  graph = graphs.random_graph(5, 40)
  graph = graph.replace(allowed_types=np.ones((40, 2), bool),
                        same_numbers=same[graph.groups])
  problem = _problem(graph, (1., 10., 10.), bandwidth_bytes_per_s=1e8)
  placement = kind(dataclasses.replace(_SMALL, steps=3)).place(problem)
  assert not placement.violations(graph)
  on_gpu = ~graph.same_numbers[:, 0]
  assert on_gpu.any() and (placement.devices[on_gpu] > 0).all()


@pytest.mark.usefixtures('eager')
def test_another_seed_is_another_search():
  graph = graphs.random_graph(5,
                              40).replace(allowed_types=np.ones((40, 2), bool))
  problem = _problem(graph, bandwidth_bytes_per_s=1e8)
  histories = []
  for seed in (3, 4):
    placer = placers.HdpNoGroupingPlacer(dataclasses.replace(_SMALL, steps=3))
    placer.place(dataclasses.replace(problem, seed=seed))
    histories.append([step.reward for step in placer.history])
  assert histories[0] != histories[1]


def test_memory_failures_are_charged_and_avoided():
  # GPU:0 would be best for all ops, but holds no more than five or so.
  graph = _two_chains().replace(param_bytes=[100] * 8)
  roomy = _problem(graph, (100., 1., 9.), memory_bytes=2000)
  tight = _problem(graph, (100., 1., 9.), memory_bytes=800)
  free, held = (placers.HdpNoGroupingPlacer(_SMALL) for _ in range(2))
  assert set(free.place(roomy).devices) == {1}
  placement = held.place(tight)
  assert set(placement.devices) == {1, 2}
  assert problems.seconds_of(tight, placement) > 8.
  failing = -_SMALL.failing_signal**0.5
  shares = np.array([step.valid_share for step in held.history])
  values = np.array([step.reward for step in held.history])
  assert 0 < shares.min() < 1
  assert (values[shares < 1] < failing * (1 - shares[shares < 1])).all()
  assert shares[-20:].mean() > shares[:20].mean()


@pytest.mark.usefixtures('eager')
def test_a_stopwatch_that_says_the_same_makes_no_difference():
  graph = _two_chains().replace(param_bytes=[100] * 8)
  problem = _problem(graph, memory_bytes=600)
  slow = dataclasses.replace(problem,
                             evaluator=stopwatches.Stopwatch(problem.evaluator))
  rewards = []
  for asked in (problem, slow):
    placer = placers.HdpRandomGroupingPlacer(
        dataclasses.replace(_SMALL, steps=2))
    placer.place(asked)
    rewards.append([step.reward for step in placer.history])
  assert rewards[0] == rewards[1]

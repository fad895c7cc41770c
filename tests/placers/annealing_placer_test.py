import dataclasses
import functools
import itertools

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
import numpy as np
import pytest

from gdp_grappler.cluster import presets
from gdp_grappler.evaluation import recording_evaluator
from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.placers import annealing_placer
from gdp_grappler.placers.list_scheduling import heft
from gdp_grappler.placers.partitioning import metis
from gdp_grappler.placers.search import search_time
from gdp_grappler.placers.search.moves import moves
from gdp_grappler.placers.simple import random_placer
from helpers import clusters
from helpers import graphs
from helpers import problems
from helpers import stopwatches

_SINGLE = ('single_device',)


def _problem(graph, seconds=None, num_gpus=2, memory_bytes=1 << 40, **fields):
  cluster = clusters.make_cluster(num_gpus, memory_bytes=memory_bytes)
  return problems.make(graph, cluster, seconds,
                       wrap=recording_evaluator.Recorder, **fields)


def _place(problem, evaluations=300, starts=_SINGLE):
  return annealing_placer.AnnealingPlacer(evaluations, starts).place(problem)


def test_two_independent_ops_part():
  problem = _problem(graphs.make_graph(num_ops=2), [[9, 3, 3]] * 2)
  placement = _place(problem)
  assert sorted(placement.devices.tolist()) == [1, 2]
  assert problems.seconds_of(problem, placement) == 3.


def _small_problem(seed):
  """A problem with a random graph of few ops."""
  rng = np.random.default_rng(seed)
  edges = [(a, b, int(rng.integers(1, 300)))
           for a, b in itertools.combinations(range(7), 2) if rng.random() < .3]
  return _problem(graphs.make_graph(edges, 7), rng.uniform(1, 9, (7, 3)),
                  seed=seed)


@functools.cache
def _best_of_all(seed):
  """The shortest step of all placements of a small graph."""
  problem = _small_problem(seed)
  every = np.array(
      list(
          itertools.product(range(problem.cluster.num_devices),
                            repeat=problem.graph.num_groups)))
  return problem.evaluator.price_groups(problem.graph, every).seconds.min()


def _over_the_best(seed):
  """The step that a search finds, divided by the shortest possible step."""
  problem = _small_problem(seed)
  found = problems.seconds_of(problem, _place(problem, 2000))
  return found / _best_of_all(seed)


def test_small_graphs_are_placed_as_well_as_can_be():
  # Annealing may end in a local minimum, but rarely, and with a similar step.
  ratios = sorted(map(_over_the_best, range(6)))
  assert ratios[:5] == pytest.approx([1.] * 5)
  assert ratios[5] < 1.06


def test_compound_moves_find_more_of_the_best_placements(monkeypatch):

  def misses():
    return sum(ratio > 1.0001 for ratio in map(_over_the_best, range(60)))

  compound, stock = misses(), moves.Moves.draw_each
  monkeypatch.setattr(
      moves.Moves,
      'draw_each', lambda self, kinds, devices, rng, compound: stock(
          self, kinds, devices, rng, 0.))
  assert 1.5 * compound < misses()


def test_a_chain_that_is_long_to_send_stays_together():
  problem = _problem(graphs.chain(20), 1)
  assert len(set(_place(problem).devices.tolist())) == 1


def _starts(problem, names):
  points = annealing_placer.starting_points(problem, names,
                                            np.random.default_rng(problem.seed))
  return np.concatenate(list(points.values()))


def test_two_chains_part_as_wholes():
  edges = [(i, i + 1, 1000) for i in range(19)]
  edges += [(i + 20, i + 21, 1000) for i in range(19)]
  problem = _problem(graphs.make_graph(edges), 1)
  devices = _place(problem, 1000).devices
  assert len(set(devices[:20])) == len(set(devices[20:])) == 1
  assert devices[0] != devices[20]


def test_what_fits_beats_what_is_faster():
  # No device has room for both ops. On two devices one op waits for a transfer.
  graph = graphs.chain(2, param_bytes=600)
  problem = _problem(graph, [[50, 1, 1]] * 2, memory_bytes=1000)
  placement = _place(problem)
  assert sorted(placement.devices.tolist()) == [1, 2]
  assert problem.evaluator.evaluate(graph, placement).valid


def test_finds_into_memory_where_no_start_fits():
  # Each of three devices has room for 11 ops, and there are 30 ops.
  graph = graphs.make_graph(num_ops=30, param_bytes=100)
  problem = _problem(graph, [[9, 1, 1]] * 30, memory_bytes=1100)
  placement = _place(problem, 1000)
  assert problem.evaluator.evaluate(graph, placement).valid


_cases = st.tuples(st.integers(0, 1 << 20), st.integers(1, 60),
                   st.integers(0, 3), st.sampled_from([1 << 40, 1 << 27]))


def _case(case, **fields):
  seed, num_ops, num_gpus, memory_bytes = case
  rng = np.random.default_rng(seed)
  graph = graphs.random_graph(seed, num_ops)
  types = np.ones((num_ops, 2), bool)
  types[:, 1] = (rng.random(graph.num_groups) < .8)[graph.groups]
  return _problem(graph.replace(allowed_types=types), None, num_gpus,
                  memory_bytes, seed=seed, **fields)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(_cases)
def test_legal_repeatable_and_never_worse_than_a_start(case):
  problem = _case(case)
  placement = _place(problem, 150)
  assert placement.violations(problem.graph) == ()
  assert placement.devices.tolist() == _place(_case(case), 150).devices.tolist()
  found = problem.evaluator.evaluate(problem.graph, placement)
  prices = problem.evaluator.price_groups(problem.graph,
                                          _starts(problem, _SINGLE))
  if prices.valid.any():
    assert found.valid
    assert found.step_time_s <= prices.valid_seconds.min()


@settings(max_examples=15, deadline=None, derandomize=True)
@given(_cases, st.integers(0, 200))
def test_prices_no_more_than_it_was_told(case, evaluations):
  problem = _case(case)
  starts = len(_starts(problem, ()))
  _place(problem, evaluations, ())
  assert problem.evaluator.evaluations <= max(evaluations, starts)


def test_returns_the_best_that_was_priced():
  problem = _case((5, 60, 2, 1 << 40))
  placement = _place(problem, 200)
  best = problem.evaluator.best_step_time_s
  assert problems.seconds_of(problem, placement) == best


def test_the_expert_is_a_start():
  expert = np.random.default_rng(0).integers(0, 3, 40)
  costs = np.full((40, 3), 100.)
  costs[np.arange(40), expert] = 1
  problem = _problem(graphs.make_graph(num_ops=40), costs,
                     expert_devices=expert)
  placement = _place(problem, 0, ('human_expert',))
  assert placement.devices.tolist() == expert.tolist()


class _Clock:
  """A clock that advances by a second at each call."""

  def __init__(self):
    self.now = 0.

  def __call__(self):
    self.now += 1
    return self.now


@pytest.mark.parametrize('budget_s, batches', [(0, 0), (.5, 0), (4.5, 3)])
def test_stops_when_its_time_is_over(budget_s, batches):
  """A batch that would end after the budget does not begin."""
  problem = _problem(graphs.random_graph(0, 50), time_budget_s=budget_s,
                     clock=_Clock())
  starts = len(_starts(problem, ()))
  placer = annealing_placer.AnnealingPlacer(10_000, ())
  placer.place(problem)
  assert problem.evaluator.evaluations == starts + 16 * batches


def test_starts_end_with_the_time_but_for_the_first(monkeypatch):
  asked = []
  for name, placer in (('metis', metis.MetisPlacer), ('heft', heft.HeftPlacer)):
    monkeypatch.setattr(
        placer, 'place', lambda self, problem, name=name:
        (asked.append(name), random_placer.RandomPlacer().place(problem))[1])
  names = 'metis', 'heft', 'metis'
  _place_starting(names, _problem(graphs.random_graph(0, 50), time_budget_s=.5))
  assert asked == ['metis']
  _place_starting(names, _problem(graphs.random_graph(0, 50),
                                  time_budget_s=1e6))
  assert asked == ['metis', 'metis', 'metis', 'heft']


def _place_starting(names, problem):
  annealing_placer.AnnealingPlacer(32, names).place(
      dataclasses.replace(problem, clock=_Clock()))


def test_ample_time_changes_nothing():
  graph = graphs.random_graph(3, 50)
  free = _place(_problem(graph)).devices
  hurried = _place(_problem(graph, time_budget_s=1e6)).devices
  assert free.tolist() == hurried.tolist()


def test_nothing_to_move():
  problem = _problem(graphs.chain(3, pins=['GPU:0'] * 3))
  assert _place(problem, 1000).devices.tolist() == [1, 1, 1]
  assert problem.evaluator.evaluations < 100


def test_few_placements_are_measured_and_some_fail():
  stopwatch = functools.partial(
      stopwatches.Stopwatch, fails=lambda devices: 'run'
      if (devices == 1).any() else '')
  problem = problems.make(graphs.chain(6), seconds=[[5, 1, 2]] * 6,
                          wrap=stopwatch)
  placement = annealing_placer.AnnealingPlacer(None, ()).place(problem)
  assert placement.devices.tolist() == [2] * 6
  assert 100 < problem.evaluator.runs <= 300


def test_time_alone_ends_a_search_that_has_some():
  problem = _problem(graphs.make_graph(num_ops=80_000), time_budget_s=5.)
  assert search_time.evaluations_for(problem) > 1e9
  endless = _problem(graphs.make_graph(num_ops=80_000),
                     time_budget_s=float('inf'))
  assert search_time.evaluations_for(endless) == 1000


def _ordered(seed, evaluations, **fields):
  cluster = presets.preset('2xP100')
  problem = problems.make(graphs.random_graph(seed, 80), cluster,
                          wrap=recording_evaluator.Recorder,
                          simulator=simulator.Simulator(cluster), **fields)
  placer = annealing_placer.AnnealingPlacer(evaluations, ())
  return problem, placer.proposals(problem)


@pytest.mark.parametrize('seed', range(4))
def test_both_orders_are_searched(seed):
  problem, (plain, ordered) = _ordered(seed, 800)
  # The results are priced again at the end.
  assert problem.evaluator.evaluations <= 800 + 16
  assert plain.priorities is None and ordered.priorities is not None
  for placement in (plain, ordered):
    assert placement.violations(problem.graph) == ()
  assert (problems.seconds_of(problem, plain)
          <= problem.evaluator.best_step_time_s)
  again = _ordered(seed, 800)[1][1]
  assert again.devices.tolist() == ordered.devices.tolist()


def test_the_clock_ends_both_searches():
  cluster = presets.preset('2xP100')
  problem = problems.make(graphs.random_graph(0, 50), cluster,
                          simulator=simulator.Simulator(cluster),
                          time_budget_s=30., clock=_Clock())
  placer = annealing_placer.AnnealingPlacer(None, ())
  assert len(placer.proposals(problem)) == 2


def test_no_evaluations_at_all():
  problem, found = _ordered(0, 0)
  assert problems.seconds_of(problem, found[0]) > 0


@pytest.mark.parametrize('num_ops, expected', [(100, 20_000), (10_000, 8000),
                                               (80_000, 1000)])
def test_large_graphs_get_fewer_evaluations(num_ops, expected):
  problem = _problem(graphs.make_graph(num_ops=num_ops))
  assert search_time.evaluations_for(problem) == expected

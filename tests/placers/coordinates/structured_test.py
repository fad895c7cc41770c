import dataclasses
import math

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
import numpy as np
import pytest

from gdp_grappler import deadlines
from gdp_grappler.evaluation import recording_evaluator
from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.placers.coordinates import structured
from gdp_grappler.placers.search import priced_placements
from helpers import clusters
from helpers import graphs
from helpers import problems
from helpers import stopwatches
from helpers import unrolled


def _problem(graph, num_gpus=2, memory_bytes=1 << 40, seconds=None, **fields):
  # Transfers take nearly no time.
  cluster = clusters.make_cluster(num_gpus, latency_s=1e-6,
                                  bandwidth_bytes_per_s=1e12,
                                  memory_bytes=memory_bytes)
  return problems.make(graph, cluster, seconds, **fields)


def test_layers_work_side_by_side():
  graph = unrolled.make(2, 6).graph
  problem = _problem(graph, wrap=recording_evaluator.Recorder)
  placements = structured.StructuredPlacer().proposals(problem)
  first = problems.seconds_of(problem, placements[0])
  assert first == problem.evaluator.best_step_time_s
  # If two layers of six steps overlap, seven products run one after the other,
  # and not twelve.
  work_s = problem.op_seconds[:, 1].sum()
  assert first < .65 * work_s
  others = [problems.seconds_of(problem, p) for p in placements]
  assert others == sorted(others)
  rows = {p.devices.tobytes() for p in placements}
  assert len(rows) == len(placements) == 4


def test_a_device_that_is_far_slower_is_not_counted_on():
  graph = unrolled.make(2, 6).graph
  seconds = np.tile([10., 1., 1., 1000.], (graph.num_ops, 1))
  problem = _problem(graph, 3, seconds=seconds)
  rows = structured.candidates(problem, np.ones(graph.num_groups))
  # The maps to both fast devices contain turns, not only blocks.
  assert sum(set(row.tolist()) == {1, 2} for row in rows) > 5


def test_cores_and_shared_cards_count():
  """Half a card once got as much work as a card, and 1 core as much as 3."""
  cards = clusters.make_cluster(3, compute=['c', 'a', 'a', 'b'])
  shares = structured._shares(problems.make(graphs.chain(6), cards, 1.),
                              np.array([1, 2, 3]))
  np.testing.assert_allclose(shares, [.25, .25, .5])
  hosts = clusters.as_cpu(clusters.make_cluster(1), 1)
  first, second = hosts.devices
  hosts = dataclasses.replace(
      hosts, devices=(dataclasses.replace(first, slots=3), second))
  shares = structured._shares(problems.make(graphs.chain(6), hosts, 1.),
                              np.array([0, 1]))
  np.testing.assert_allclose(shares, [.75, .25])


@pytest.mark.parametrize('graph', [graphs.chain(12), graphs.make_graph()])
def test_without_structure_it_is_one_device(graph):
  problem = _problem(graph)
  placement = structured.StructuredPlacer().place(problem)
  assert len(set(placement.devices.tolist())) <= 1
  assert not len(structured.candidates(problem, np.ones(graph.num_groups)))


def test_pins_are_obeyed_and_what_may_not_be_on_a_gpu_is_on_the_host():
  graph = unrolled.make(3, 4).graph
  types = np.ones((graph.num_ops, 2), bool)
  types[::7, 1] = False
  pins = [''] * graph.num_ops
  pins[9] = 'GPU:1'
  problem = _problem(graph.replace(allowed_types=types, pins=pins))
  rows = structured.candidates(problem, np.ones(graph.num_groups))
  assert (rows[:, ::7] == 0).all() and (rows[:, 9] == 2).all()
  assert len(rows) > 5


def test_finds_into_memory():
  graph = unrolled.make(6, 2).graph
  problem = _problem(graph, 3, 17_000)  # Each layer needs 4,000.
  placement = structured.StructuredPlacer().place(problem)
  assert problem.evaluator.evaluate(graph, placement).valid


def test_few_placements_are_measured():
  problem = _problem(unrolled.make(4, 4).graph, wrap=stopwatches.Stopwatch)
  structured.StructuredPlacer().place(problem)
  assert problem.evaluator.runs < 25


def test_few_placements_are_measured_even_if_none_fits():
  """A search for a placement that fits once measured thousands of steps."""
  problem = _problem(
      unrolled.make(4, 4).graph, memory_bytes=100, wrap=stopwatches.Stopwatch)
  structured.StructuredPlacer().place(problem)
  assert problem.evaluator.runs < 60


def test_large_graphs_get_fewer_proposals(monkeypatch):
  graph = unrolled.make(4, 40).graph
  problem, weights = _problem(graph, 4), np.ones(graph.num_groups)
  assert len(structured.candidates(problem, weights)) > 45
  for affordable, expected in ((36, 36), (3, 32)):
    monkeypatch.setattr(structured, '_PRICED_OPS', affordable * graph.num_ops)
    assert len(structured.candidates(problem, weights)) == expected


@settings(max_examples=12, deadline=None, derandomize=True)
@given(st.integers(0, 1 << 20), st.integers(1, 3), st.integers(1, 4),
       st.integers(0, 3), st.booleans(), st.sampled_from([1 << 40, 1 << 14]),
       st.sampled_from([None, 0., 1e-300, 1e12]))
def test_legal_and_repeatable(seed, layers, steps, num_gpus, scoped, memory,
                              op_s):
  graph = unrolled.make(layers, steps, scoped).graph
  rng = np.random.default_rng(seed)
  groups = np.where(
      rng.random(graph.num_ops) < .3, rng.integers(0, graph.num_ops),
      np.arange(graph.num_ops))
  graph = graph.replace(groups=np.unique(groups, return_inverse=True)[1])
  types = np.ones((graph.num_ops, 2), bool)
  types[:, 1] = (rng.random(graph.num_groups) < .8)[graph.groups]
  graph = graph.replace(allowed_types=types)
  problem = _problem(graph, num_gpus, memory, op_s)
  first, again = (
      structured.StructuredPlacer().proposals(problem) for _ in range(2))
  for placement, other in zip(first, again, strict=True):
    assert placement.violations(graph) == ()
    assert placement.devices.tolist() == other.devices.tolist()


def test_when_the_time_is_over_only_the_first_few_are_priced(monkeypatch):
  monkeypatch.setattr(structured, '_BATCH', 4)
  evaluations = []
  for budget_s in (1e6, 0.):
    problem = _problem(
        unrolled.make(3, 8).graph, wrap=recording_evaluator.Recorder,
        time_budget_s=budget_s)
    placement = structured.StructuredPlacer().place(problem)
    # The most promising maps are priced in any case.
    assert len(set(placement.devices.tolist())) > 1
    evaluations.append(problem.evaluator.evaluations)
  assert evaluations[1] < evaluations[0]


class _Deaf(simulator.Simulator):
  """A simulator that ignores ceilings."""

  def price(self, graph, devices, priorities=None, ceiling_s=math.inf):
    del ceiling_s
    return super().price(graph, devices, priorities)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 10_000))
def test_what_is_told_of_is_priced_in_full(seed):
  """A placement that was priced twice counted twice in the ceiling.

  The best placements were then other ones.
  """
  rng = np.random.default_rng(seed)
  graph = graphs.chain(12, int(rng.integers(1, 500)))
  cluster = clusters.make_cluster(2, latency_s=.1, bandwidth_bytes_per_s=1e4,
                                  memory_bytes=int(rng.integers(200, 4000)))
  costs = clusters.FixedCosts(rng.uniform(1, 5, (12, 3)))
  rows = rng.integers(0, 3, (int(rng.integers(5, 30)), 12))
  rows = rows[rng.integers(0, len(rows), 60)]
  told = []
  for kind in simulator.Simulator, _Deaf:
    priced = priced_placements.PricedPlacements(graph, kind(cluster, costs))
    priced.add(rows[:1])
    for some in np.split(rows, 6):
      structured._see(priced, some, deadlines.NEVER)
    told.append(priced.ranked(4).tolist())
  assert told[0] == told[1]

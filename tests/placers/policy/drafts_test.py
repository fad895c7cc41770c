import itertools
import types

import numpy as np
import pytest

from gdp_grappler import deadlines
from gdp_grappler.cluster import constraints
from gdp_grappler.cluster import presets
from gdp_grappler.placers.list_scheduling import proposals
from gdp_grappler.placers.policy import drafts
from gdp_grappler.placers.policy import move_policy
from gdp_grappler.placers.policy import policy_config
from gdp_grappler.placers.search import priced_placements
from gdp_grappler.placers.search.moves import move_scoring
from helpers import clusters
from helpers import graphs
from helpers import problems


def _drawn(problem, **config):
  return drafts.Drafts(problem, policy_config.PolicyConfig(**config),
                       move_scoring.MoveDescriber(problem)).rows


@pytest.mark.parametrize('seed', range(3))
def test_legal_all_different_and_repeatable(seed):
  problem = problems.make(graphs.random_graph(seed, 300), seed=seed)
  rows = _drawn(problem)
  assert rows.shape[1] == problem.graph.num_groups
  assert len(np.unique(rows, axis=0)) == len(rows) > 3
  legal = constraints.made_legal(rows, problem.allowed, problem.cluster.host)
  assert (legal == rows).all()
  assert (rows == _drawn(problem)).all()


def test_each_device_alone_comes_first():
  problem = problems.make(graphs.make_graph(num_ops=4), seconds=[[9, 1, 2]] * 4)
  rows = _drawn(problem)
  assert rows[:3].tolist() == [[0] * 4, [1] * 4, [2] * 4]


def test_a_list_schedule_parts_equal_branches():
  # Two chains without a common op.
  edges = [(0, 1, 8), (1, 2, 8), (3, 4, 8), (4, 5, 8)]
  rows = _drawn(
      problems.make(graphs.make_graph(edges), seconds=[[99, 9, 9]] * 6))
  parted = [row for row in rows.tolist() if len({*row}) == 2]
  assert any(len({*row[:3]}) == len({*row[3:]}) == 1 for row in parted)


def test_no_more_are_made_than_wanted():
  problem = problems.make(graphs.random_graph(0, 300))
  alone = _drawn(problem, maps=0, schedules=0, cuts=0)
  assert len(alone) <= problem.cluster.num_devices
  assert len(_drawn(problem, maps=0, schedules=2, cuts=0)) <= len(alone) + 2


def test_drafts_are_the_candidates_with_the_shortest_estimates():
  problem = problems.make(graphs.random_graph(3, 300))
  describer = move_scoring.MoveDescriber(problem)
  alone = len(_drawn(problem, drafts=0, drafts_of_each=0))
  every = _drawn(problem, drafts=99)[alone:]
  few = _drawn(problem, drafts=4, drafts_of_each=0)[alone:]
  estimates = describer.estimates(_drawn(problem)[0], every)
  assert len(every) > len(few) == 4
  assert (few == every[np.argsort(estimates, kind='stable')[:4]]).all()


def _with_sources(problem, **config):
  drawn = drafts.Drafts(problem, policy_config.PolicyConfig(**config),
                        move_scoring.MoveDescriber(problem))
  return [(source, row.tolist())
          for source, row in zip(drawn.sources, drawn.rows, strict=True)]


def test_some_drafts_of_each_source_are_there_whatever_their_estimates():
  """A draft with a longer estimate may lead to a shorter step.

  On a Perceiver, annealing from a map found a step of 60 ms, and from a
  schedule one of 80 ms.
  """
  problem = problems.make(graphs.random_graph(3, 300))
  every = _with_sources(problem, drafts=99)
  few = _with_sources(problem, drafts=8, drafts_of_each=2)
  estimates = move_scoring.MoveDescriber(problem).estimates(
      np.array(every[0][1], np.int32),
      np.array([row for _, row in every], np.int32))
  ranked = [every[k] for k in np.argsort(estimates, kind='stable')]
  for source in (drafts.MAPS, drafts.CUTS, drafts.SCHEDULES):
    own = [draft for draft in few if draft[0] == source]
    assert own == [draft for draft in ranked if draft[0] == source
                  ][:len(own)] and len(own) >= 2
  assert len(few) == len(_drawn(problem, drafts=0, drafts_of_each=0)) + 8
  fastest = _with_sources(problem, drafts=8, drafts_of_each=0)
  assert few != fastest and len(few) == len(fastest)


def _cholesky(tiles):
  """The graph of a Cholesky factorization by tiles, and seconds per op."""
  last, edges, seconds = {}, [], []

  def add(length_s, tile, *others):
    edges.extend((last[read], len(seconds), 10**5) for read in (tile, *others)
                 if read in last)
    last[tile] = len(seconds)
    seconds.append(length_s)

  for k in range(tiles):
    add(1e-4, (k, k))
    for i in range(k + 1, tiles):
      add(1.5e-4, (i, k), (k, k))
    for i in range(k + 1, tiles):
      add(1.5e-4, (i, i), (i, k))
      for j in range(k + 1, i):
        add(2e-4, (i, j), (i, k), (j, k))
  return graphs.make_graph(edges), seconds


def test_few_schedules_are_enough_for_a_wide_graph():
  """In a short time, schedules of a larger graph once took 10 % longer."""
  graph, seconds = _cholesky(12)
  problem = problems.make(graph, presets.preset('4xP100'),
                          [[9 * each, *[each] * 4] for each in seconds])
  fastest = [
      problem.evaluator.price_groups(
          graph, _drawn(problem, maps=0, cuts=0,
                        schedules=schedules)).valid_seconds.min()
      for schedules in (4, 24)
  ]
  assert fastest[0] < 1.01 * fastest[1]


def test_a_large_graph_gets_few_schedules(monkeypatch):
  problem = problems.make(graphs.random_graph(0, 300))
  every = _drawn(problem, maps=0, cuts=0, drafts=99)
  monkeypatch.setattr(proposals, 'LARGE_OPS', 10)
  few = _drawn(problem, maps=0, cuts=0, drafts=99)
  assert len(few) < len(every)


def test_one_schedule_is_made_when_time_is_over():
  problem = problems.make(graphs.random_graph(0, 300))
  config = policy_config.PolicyConfig(maps=0)
  alone = _drawn(problem, maps=0, schedules=0, cuts=0)
  late = drafts.Drafts(problem, config, move_scoring.MoveDescriber(problem),
                       deadlines.within(0.,
                                        itertools.count().__next__)).rows
  assert len(late) == len(alone) + 1


@pytest.mark.parametrize('rounds', [1, 2, 3])
def test_cuts_and_schedules_are_made_in_turn(monkeypatch, rounds):
  made = []

  def few_cuts(problem):
    for number in range(8):
      made.append('cut')
      yield np.full(problem.graph.num_groups, 1 + number % 2, np.int32)

  stock = drafts.Drafts._scheduled

  def row(*arguments):
    made.append('schedule')
    return stock(*arguments)

  monkeypatch.setattr(drafts.metis, 'few_cuts', few_cuts)
  monkeypatch.setattr(drafts.Drafts, '_scheduled', row)
  problem = problems.make(graphs.random_graph(0, 300))
  drafts.Drafts(problem, policy_config.PolicyConfig(maps=0),
                move_scoring.MoveDescriber(problem),
                deadlines.within(2. * rounds, lambda: float(len(made))))
  assert made == ['cut', 'schedule'] * rounds


def test_nothing_is_scheduled_for_one_accelerator():
  problem = problems.make(graphs.random_graph(0, 100), clusters.make_cluster(1))
  assert len(_drawn(problem)) <= 2


def test_every_configuration_schedules_devices_that_differ():
  problem = problems.make(graphs.random_graph(2, 300))
  ways = len(drafts._CONFIGS)
  rows, few = (_drawn(problem, maps=0, cuts=0, schedules=count, drafts=ways)
               for count in (ways, ways // 2))
  assert len(rows) > len(few)


def test_favourite_children_stay_with_their_parents():
  # Two chains. Transfers take longer than ops.
  edges = [(0, 1, 10**6), (1, 2, 10**6), (3, 4, 10**6), (4, 5, 10**6)]
  problem = problems.make(graphs.make_graph(edges), seconds=[[99, 9, 9]] * 6)
  way = next(way for way in drafts._CONFIGS if way.rules.favourites)
  drawn = drafts.Drafts(problem, policy_config.PolicyConfig(),
                        move_scoring.MoveDescriber(problem))
  row = drawn._scheduled(way, problem.cluster.pool_bytes.astype(float))
  assert len({*row[:3].tolist()}) == len({*row[3:].tolist()}) == 1
  assert row[0] != row[3]


def _tight(share):
  """Schedules with their prices, if memories are small.

  Args:
    share: Size of each memory, as a share of the bytes that all ops need.
  """

  def problem(**memory):
    return problems.make(
        graphs.random_graph(23, 120),
        clusters.make_cluster(latency_s=1e-6, bandwidth_bytes_per_s=1e12,
                              **memory))

  roomy = problem()
  alone = np.ones((1, roomy.graph.num_groups), np.int32)
  needed = roomy.evaluator.price_groups(roomy.graph, alone).peak_bytes.max()
  tight = problem(memory_bytes=int(share * needed))
  made = drafts.Drafts(tight, policy_config.PolicyConfig(maps=0, cuts=0),
                       move_scoring.MoveDescriber(tight))
  found = priced_placements.PricedPlacements(tight.graph, tight.evaluator)
  found.add(made.rows, ceiling_s=None)
  return made, found


def test_schedules_that_overflow_are_made_anew_in_less_memory():
  """All prices were once spent on placements that did not fit."""
  made, found = _tight(.7)
  assert not found.fits
  for _ in range(move_policy._MEMORY_ROUNDS):
    rows = made.with_less_memory(found, 4)
    assert 0 < len(rows) <= 4
    found.add(rows, ceiling_s=None)
    if found.fits:
      break
  assert found.fits


def test_schedules_that_fit_are_not_made_anew():
  made, found = _tight(2.)
  assert found.fits
  assert made.with_less_memory(found, 4).shape == (0, found.devices.shape[1])


def test_schedules_slower_than_one_that_fits_are_not_made_anew():
  made, found = _tight(.7)
  seconds = np.arange(len(found.devices), 0., -1)
  valid = seconds == 1.
  prices = types.SimpleNamespace(seconds=seconds, valid=valid,
                                 peak_bytes=found.prices.peak_bytes,
                                 valid_seconds=np.where(valid, seconds, np.inf))
  priced = types.SimpleNamespace(prices=prices, devices=found.devices)
  assert not len(made.with_less_memory(priced, 4))


def test_no_schedule_is_made_anew_when_time_is_over():
  made, found = _tight(.7)
  over = deadlines.within(0., itertools.count(1).__next__)
  assert not len(made.with_less_memory(found, 4, over))

import itertools

import numpy as np

from gdp_grappler import deadlines
from gdp_grappler.placers.policy import improving
from gdp_grappler.placers.policy import policy_config
from gdp_grappler.placers.search import priced_placements
from gdp_grappler.placers.search.moves import move_scoring
from gdp_grappler.placers.search.moves import moves as moves_lib
from gdp_grappler.placers.search.moves import shipped_moves
from helpers import graphs
from helpers import problems


class _Oracle:
  """Scores moves by their true steps."""

  def __init__(self, problem):
    self._problem = problem

  def scores(self, incumbent, candidates, kinds):
    del incumbent, kinds
    return -self._problem.evaluator.price_groups(self._problem.graph,
                                                 candidates).seconds

  def learn(self, chosen, gained):
    """Learns nothing, because all scores are true."""


class _Listener(_Oracle):
  """An oracle that checks the reported gains."""

  def __init__(self, problem):
    super().__init__(problem)
    self.heard = 0
    self._gains = np.zeros(0)

  def scores(self, incumbent, candidates, kinds):
    result = super().scores(incumbent, candidates, kinds)
    self._gains = result > super().scores(incumbent, incumbent[None], kinds)
    return result

  def learn(self, chosen, gained):
    assert gained.tolist() == self._gains[chosen].tolist()
    self.heard += len(chosen)


def _by_chance(problem):
  return move_scoring.RandomScorer(move_scoring.MoveDescriber(problem),
                                   shipped_moves.network(),
                                   np.random.default_rng(0))


def _improved(problem, scorer, deadline=deadlines.NEVER, **config):
  found = priced_placements.PricedPlacements(problem.graph, problem.evaluator)
  found.add(np.ones((1, problem.graph.num_groups), np.int32))
  improving.Improver(found, scorer, policy_config.PolicyConfig(**config),
                     np.random.default_rng(0),
                     moves_lib.Moves(problem)).run(deadline)
  return found


def _branches():
  edges = [(b * 4 + i, b * 4 + i + 1, 8) for b in range(2) for i in range(3)]
  return problems.make(graphs.make_graph(edges), seconds=[[99, 9, 9]] * 8)


def test_no_more_are_priced_than_wanted_and_none_is_worse():
  problem = problems.make(graphs.random_graph(1, 300))
  for prices in 1, 2, 7, 30:
    found = _improved(problem, _by_chance(problem), prices=prices)
    assert len(found.prices) == prices
    assert found.prices.seconds.min() <= found.prices.seconds[0]


def test_what_is_chosen_well_is_better_than_what_is_drawn():
  problem = problems.make(graphs.random_graph(1, 300))
  chosen = _improved(problem, _Oracle(problem), prices=24)
  drawn = _improved(problem, _by_chance(problem), prices=24)
  assert chosen.prices.seconds.min() < drawn.prices.seconds.min()


def test_the_scorer_hears_which_moves_gained():
  problem = problems.make(graphs.random_graph(1, 300))
  listener = _Listener(problem)
  found = _improved(problem, listener, prices=24)
  assert 12 < listener.heard < len(found.prices)


def test_equal_branches_are_parted():
  problem = _branches()
  found = _improved(problem, _Oracle(problem), prices=12)
  assert found.prices.seconds.min() == 36
  assert len({*found.best[:4]}) == len({*found.best[4:]}) == 1


def test_it_ends_where_all_moves_are_known():
  problem = problems.make(graphs.make_graph(num_ops=1))
  found = _improved(problem, _by_chance(problem))
  assert len(found.prices) <= 3


def test_it_ends_when_time_is_over():
  ticks = itertools.count()
  deadline = deadlines.within(2, lambda: next(ticks))
  problem = _branches()
  found = _improved(problem, _by_chance(problem), deadline, at_once=1,
                    prices=64)
  assert 1 < len(found.prices) < 10


class _Slow(_Oracle):
  """An oracle that counts moves; each move takes a second of its clock."""

  def __init__(self, problem):
    super().__init__(problem)
    self.clock_s, self.counts = 0., []

  def scores(self, incumbent, candidates, kinds):
    self.counts.append(len(candidates))
    self.clock_s += len(candidates)
    return super().scores(incumbent, candidates, kinds)


def _counts(seconds, round_s=384.):
  problem = problems.make(graphs.random_graph(1, 2000))
  scorer = _Slow(problem)
  found = priced_placements.PricedPlacements(problem.graph, problem.evaluator)
  found.add(np.ones((1, problem.graph.num_groups), np.int32))
  improving.Improver(found, scorer,
                     policy_config.PolicyConfig(prices=24, draws=384, rounds=4),
                     np.random.default_rng(0), moves_lib.Moves(problem)).run(
                         deadlines.within(seconds, lambda: scorer.clock_s),
                         round_s)
  return scorer.counts


# Least number of different moves among 384 drawn moves.
_FEWEST_FRESH = 270


def test_rounds_draw_fewer_moves_if_time_is_short():
  """A search of a large graph once ended after one round of many moves."""
  counts = _counts(400)
  assert len(counts) >= 4
  assert max(counts) <= 100


def test_rounds_draw_all_moves_if_there_is_time():
  assert min(_counts(1e6)) > _FEWEST_FRESH


def test_rounds_do_not_depend_on_a_clock_that_does_not_end_them():
  assert min(_counts(400, round_s=None)) > _FEWEST_FRESH

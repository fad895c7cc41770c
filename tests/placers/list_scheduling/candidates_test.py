import numpy as np

from gdp_grappler import deadlines
from gdp_grappler.evaluation import recording_evaluator
from gdp_grappler.placers.list_scheduling import candidates
from helpers import clusters
from helpers import graphs
from helpers import problems
from helpers import stopwatches


def test_the_cheapest_that_fits_wins_and_capacities_shrink():
  graph = graphs.make_graph(num_ops=2, param_bytes=80)
  cluster = clusters.make_cluster(2, memory_bytes=100)
  problem = problems.make(graph, cluster, [[9, 2, 2], [9, 2, 2]])
  asked = []

  def together(pool_bytes):
    asked.append(pool_bytes.tolist())
    return np.array([1, 1])

  def apart(_):
    return np.array([1, 2])

  assert candidates.best(problem, [together, apart],
                         other_sources=False).devices.tolist() == [1, 2]
  # `together` is not faster, so it is not called again.
  assert asked == [[100, 100, 100]]
  assert candidates.best(problem, [together],
                         other_sources=False).devices.tolist() == [1, 1]
  assert len(asked) == 5
  assert asked[2][1] < 100 and asked[2][0] == asked[2][2] == 100
  # The placement that does not fit is repaired.
  assert sorted(candidates.best(problem, [together]).devices.tolist()) == [1, 2]


def test_who_is_faster_without_room_is_asked_again_by_himself():
  graph = graphs.make_graph(num_ops=2, param_bytes=80)
  cluster = clusters.make_cluster(2, memory_bytes=100)
  problem = problems.make(graph, cluster, [[9, 1, 2], [9, 1, 2]])
  asked = []

  def greedy(pool_bytes):
    asked.append(pool_bytes[1])
    return np.array([1, 1 if pool_bytes[1] > 90 else 2])

  def slow(pool_bytes):
    asked.append(-1)
    return np.array([0, 2])

  found = candidates.best(problem, [greedy, slow], other_sources=False)
  assert found.devices.tolist() == [1, 2]
  assert sorted(asked)[0] == -1 and asked.count(-1) == 1 and len(asked) == 3


def test_when_the_time_is_over_only_the_first_is_asked():
  problem = problems.make(graphs.make_graph(num_ops=2),
                          clusters.make_cluster(2), time_budget_s=0.)
  asked = []

  def proposer(name, devices):
    return lambda _: (asked.append(name), np.array(devices))[1]

  proposers = [proposer('first', [1, 1]), proposer('second', [1, 2])]
  found = candidates.best(problem, proposers, other_sources=False)
  assert asked == ['first'] and found.devices.tolist() == [1, 1]
  candidates.best(problem.until(deadlines.within(1e6)), proposers,
                  other_sources=False)
  assert sorted(asked) == ['first', 'first', 'second']


def test_time_goes_by_the_clock_of_the_problem():
  """With the machine's clock, results once depended on the machine's load."""
  asked, now = [], [0.]
  deadline = deadlines.within(5., lambda: now[0])
  problem = problems.make(graphs.make_graph(num_ops=2),
                          clusters.make_cluster(2)).until(deadline)

  def proposer(name):
    return lambda _: (asked.append(name), np.array([1, 1]))[1]

  candidates.best(problem,
                  [proposer('first'), proposer('second')], other_sources=False)
  assert sorted(asked) == ['first', 'second']
  now[0] = 6.
  candidates.best(problem.until(deadline),
                  [proposer('a'), proposer('b')], other_sources=False)
  assert sorted(asked) == ['a', 'first', 'second']


def test_one_device_is_priced_however_late_and_nothing_else():
  """On a busy machine, no device was once priced before the end."""
  graph = graphs.make_graph(num_ops=2, param_bytes=80)
  problem = problems.make(graph, clusters.make_cluster(2, memory_bytes=200),
                          [[9, 1, 9], [9, 1, 9]])
  prices = recording_evaluator.Recorder(problem.evaluator)
  found = candidates.best(
      problem.priced_by(prices).until(deadlines.within(0.)),
      [lambda _: np.array([1, 2])])
  assert found.devices.tolist() == [1, 1]
  assert prices.evaluations == 4


def test_no_search_follows_if_a_price_is_a_real_step():
  """In tight memory, a search once measured thousands of steps."""
  graph = graphs.make_graph(num_ops=12, param_bytes=40)
  problem = problems.make(graph, clusters.make_cluster(2, memory_bytes=300),
                          wrap=stopwatches.Stopwatch)
  found = candidates.best(problem, [lambda _: np.arange(12) % 2 + 1])
  assert problem.evaluator.evaluate(graph, found).valid
  assert problem.evaluator.runs < 20


def test_what_does_not_fit_is_asked_again_however_late():
  graph = graphs.make_graph(num_ops=2, param_bytes=80)
  problem = problems.make(graph, clusters.make_cluster(2, memory_bytes=100),
                          time_budget_s=0.)
  found = candidates.best(
      problem, [lambda room: np.array([1, 1 if room[1] > 90 else 2])],
      other_sources=False)
  assert found.devices.tolist() == [1, 2]

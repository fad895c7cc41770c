"""Tests of the chain that a step waits for, on steps computed by hand."""

import hypothesis
from hypothesis import strategies
import numpy as np

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.cluster import presets
from gdp_grappler.evaluation import critical_chain
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from helpers import clusters
from helpers import graphs


def _chain(graph, devices, seconds, cluster=None):
  cluster = cluster or clusters.make_cluster(2)
  placement = placement_lib.Placement(np.array(devices), cluster)
  simulator = simulator_lib.Simulator(cluster, clusters.FixedCosts(seconds))
  schedule = simulator.schedule(graph, placement)
  return critical_chain.critical_chain(graph, placement, schedule)


def _parts(chain):
  return [(p.is_transfer, p.index, p.waited_for) for p in chain]


def test_a_chain_on_one_device():
  chain = _chain(graphs.chain(3), [1, 1, 1], 1.)
  assert _parts(chain) == [(False, 0, 'nothing'), (False, 1, 'input'),
                           (False, 2, 'input')]
  assert [p.gap_s for p in chain] == [0., 0., 0.]


def test_a_transfer_is_a_part():
  chain = _chain(graphs.chain(2), [1, 2], 1.)
  assert _parts(chain) == [(False, 0, 'nothing'), (True, 0, 'input'),
                           (False, 1, 'transfer')]
  assert chain[1].end_s - chain[1].start_s == 2


def test_a_condition_goes_through_the_memory_of_the_host():
  graph = graphs.chain(2).replace(read_on_host=[True])
  assert _parts(_chain(graph, [1, 1], 1.)) == [(False, 0, 'nothing'),
                                               (True, 0, 'input'),
                                               (False, 1, 'transfer')]


def test_what_stays_in_the_memory_of_the_host_is_no_transfer():
  graph = graphs.chain(2).replace(made_on_host=[True], read_on_host=[True])
  assert _parts(_chain(graph, [1, 2], 1.)) == [(False, 0, 'nothing'),
                                               (False, 1, 'input')]


def test_a_busy_device_is_waited_for():
  # Two ops without inputs on one device: the second waits for the first.
  graph = graphs.make_graph([], num_ops=2)
  assert _parts(_chain(graph, [1, 1], 1.)) == [(False, 0, 'nothing'),
                                               (False, 1, 'device')]


def test_a_busy_link_is_waited_for():
  # Both tensors leave GPU:0 at once, and its way out carries one at a time.
  graph = graphs.make_graph([(0, 1, 100, 0), (0, 2, 100, 1)])
  chain = _chain(graph, [1, 2, 2], 1.)
  assert [p.waited_for for p in chain
         ] == ['nothing', 'input', 'link', 'transfer']


def test_no_ops_no_chain():
  assert _chain(graphs.make_graph([], num_ops=0), np.zeros(0, int), 1.) == ()


@hypothesis.settings(max_examples=40, deadline=None)
@hypothesis.given(strategies.integers(0, 10_000), strategies.booleans())
def test_parts_follow_one_another(seed, real):
  rng = np.random.default_rng(seed)
  count = int(rng.integers(1, 30))
  edges = [(int(rng.integers(i)), i, int(rng.integers(0, 500)))
           for i in range(1, count) for _ in range(rng.integers(0, 3))]
  graph = graphs.make_graph(edges, count)
  cluster = presets.preset('2xP100') if real else clusters.make_cluster(2)
  chain = _chain(graph, rng.integers(0, 3, count),
                 rng.choice([0., 1e-6, 1.], count), cluster)
  assert len({(p.is_transfer, p.index) for p in chain}) == len(chain)
  for before, after in zip(chain, chain[1:]):
    assert after.start_s + 1e-6 >= before.end_s or after.gap_s == 0
  assert chain[0].waited_for == 'nothing'

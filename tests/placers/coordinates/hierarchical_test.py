"""Placements in two levels: on hosts, then on the devices of each host."""

import numpy as np
import pytest

from gdp_grappler.cluster import presets
from gdp_grappler.placers import best_of
from gdp_grappler.placers.coordinates import hierarchical
from helpers import graphs
from helpers import problems

pytest.importorskip('pymetis')
# Steps of each of four chains, and bytes from one step to the next.
_STEPS, _MUCH = 12, 50_000_000


def _chains(between):
  """Four chains in two pairs.

  In each step, the chains of a pair send `between` bytes to each other.
  """
  edges = []
  for chain in range(4):
    for step in range(_STEPS):
      op = 1 + chain * _STEPS + step
      edges.append((op - 1 if step else 0, op, _MUCH if step else 1))
      if step and between:
        edges.append(((chain ^ 1) * _STEPS + step, op, between, 1))
  return graphs.make_graph(edges)


def _problem(graph, cluster, seconds=.05):
  cluster = presets.preset(cluster)
  columns = [
      10. * seconds if d.type == 'CPU' else seconds for d in cluster.devices
  ]
  return problems.make(graph, cluster, np.tile(columns, (graph.num_ops, 1)))


def _hosts(problem, placement):
  names = [problem.cluster.device_names[d] for d in placement.devices]
  return [name.split('/task:')[1].split('/')[0] for name in names]


def _place(problem):
  return hierarchical.HierarchicalPlacer().place(problem)


@pytest.mark.parametrize('between', [0, 1_000_000])
def test_what_talks_much_is_on_one_host(between):
  """Hosts send each other nothing, and devices of one host little."""
  problem = _problem(_chains(between), '2x2xV100-eth10')
  placement = _place(problem)
  hosts = _hosts(problem, placement)
  chains = [set(hosts[1 + c * _STEPS:1 + (c + 1) * _STEPS]) for c in range(4)]
  if between:
    assert chains[0] == chains[1] and chains[2] == chains[3]
  assert all(len(chain) == 1 for chain in chains)
  assert len(set(placement.devices[1:].tolist())) == 4
  assert problems.seconds_of(problem, placement) < 1.5 * _STEPS * .05


def test_where_the_network_is_slow_one_host_is_enough():
  problem = _problem(_chains(40_000_000), '2x4xV100-eth10', seconds=.001)
  assert len(set(_hosts(problem, _place(problem)))) == 1


def test_hosts_of_different_size():
  """A host with fewer useful cards gets less work."""
  cluster = presets.preset('2x3xV100-ib400')
  graph = _chains(0)
  seconds = np.full((graph.num_ops, cluster.num_devices), .05)
  # Two cards of the second host are so slow that they are useless.
  seconds[:, [6, 7]] = 50.
  problem = problems.make(graph, cluster, seconds)
  placement = _place(problem)
  assert not {6, 7} & set(placement.devices.tolist())
  assert problems.seconds_of(problem, placement) < 1.5 * _STEPS * .05


def test_on_one_host_others_say_as_much():
  found, skipped = best_of.propose_each(_problem(_chains(0), '2xP100'),
                                        ['single_device', 'hierarchical'])
  assert list(found) == ['single_device']
  assert skipped == {'hierarchical': 'The cluster has one host.'}

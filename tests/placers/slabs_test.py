"""Sets that share coordinates, and the balance that draws them."""

import collections

import numpy as np
import pytest

from gdp_grappler.placers import moves
from gdp_grappler.placers import slabs
from helpers import clusters
from helpers import graphs
from helpers import problems
from helpers import unrolled


def _slabs(problem):
  movable = np.flatnonzero(problem.allowed.sum(axis=1) > 1)
  return slabs.Slabs(problem, movable)


def _unrolled():
  """Three layers of eight steps; the slabs of its groups."""
  made = unrolled.make(3, 8)
  return made, _slabs(problems.make(made.graph, clusters.make_cluster(3)))


def test_a_layer_from_a_step_on_is_drawn():
  made, drawer = _unrolled()
  first = made.graph.first_ops
  layer, time = made.layer[first], made.time[first]
  known = (layer >= 0) & (time >= 0)
  start = int(np.flatnonzero(known & (layer == 1) & (time == 5))[0])
  rng = np.random.default_rng(0)
  drawn = set()
  for _ in range(400):
    groups = drawer.around(start, rng)
    assert start in groups
    drawn.add(tuple(groups[known[groups]].tolist()))
  for wanted in ((layer == 1) & (time >= 5), (layer == 1) & (time <= 5),
                 layer == 1, time == 5, (layer == 1) & (time == 5)):
    assert tuple(np.flatnonzero(known & wanted).tolist()) in drawn


def test_whole_layers_are_drawn_sooner_than_whole_steps():
  made, drawer = _unrolled()
  first = made.graph.first_ops
  layer, time = made.layer[first], made.time[first]
  known = (layer >= 0) & (time >= 0)
  start, other = (int(np.flatnonzero(known & (layer == of) & (time == at))[0])
                  for of, at in ((1, 5), (0, 2)))
  rng = np.random.default_rng(0)
  drawn = collections.Counter()
  for _ in range(400):
    groups = drawer.whole([start, other], rng)
    assert {start, other} <= set(groups.tolist())
    drawn[tuple(groups[known[groups]].tolist())] += 1
  layers, steps = (tuple(np.flatnonzero(known & wanted).tolist())
                   for wanted in ((layer <= 1), (time == 5) | (time == 2)))
  assert drawn[layers] > 2 * drawn[steps] > 0


def test_draws_go_by_the_loads_of_another_placement():
  problem = problems.make(graphs.make_graph(num_ops=4),
                          clusters.make_cluster(3), np.ones((4, 4)))
  drawer, rng = _slabs(problem), np.random.default_rng(0)
  like, devices = np.array([1, 1, 2, 2]), np.array([1, 1, 1, 2])
  drawn = {drawer.from_to(devices, rng, like) for _ in range(200)}
  # The less busy half of the others is the one that has nothing by `like`.
  assert {target for _, target in drawn} == {3, None}
  assert {start for start, _ in drawn} == {0, 1, 2, 3}


def test_work_goes_from_busy_devices_to_idle_ones():
  graph = graphs.make_graph(num_ops=6)
  seconds = np.full((6, 4), 1.)
  seconds[5] = 0
  problem = problems.make(graph, clusters.make_cluster(3), seconds)
  drawer, rng = _slabs(problem), np.random.default_rng(0)
  devices = np.array([1, 1, 1, 1, 2, 3], np.int32)
  drawn = [drawer.from_to(devices, rng) for _ in range(600)]
  starts = np.bincount([start for start, _ in drawn], minlength=6)
  assert starts[5] == 0  # It takes no time.
  assert starts[:4].min() > starts[4] > 0
  targets = {target for start, target in drawn if start < 4}
  # The less busy half of 2 and 3, or whatever: no target then.
  assert targets == {3, None}


def test_without_seconds_any_group_is_drawn():
  problem = problems.make(graphs.make_graph(num_ops=4),
                          clusters.make_cluster(2), np.zeros((4, 3)))
  drawer, rng = _slabs(problem), np.random.default_rng(0)
  devices = np.ones(4, np.int32)
  assert {drawer.from_to(devices, rng)[0] for _ in range(100)} == set(range(4))


def test_without_structure_there_are_none():
  assert not _slabs(problems.make(graphs.make_graph(num_ops=3))).are_there
  assert _unrolled()[1].are_there


@pytest.mark.parametrize(
    'kind', ['slab', 'slab_part', 'slab_swap', 'slab_whole', 'slab_trade'])
def test_moves_are_made_of_them(kind):
  made, _ = _unrolled()
  problem = problems.make(made.graph, clusters.make_cluster(3))
  drawer, rng = moves.Moves(problem), np.random.default_rng(0)
  first = made.graph.first_ops
  devices = (1 + np.maximum(made.layer[first], 0)).astype(np.int32)
  rows = [drawer.draw(kind, devices, rng) for _ in range(200)]
  sources = [set(devices[row != devices].tolist()) for row in rows]
  assert max(map(len, sources)) == {
      'slab': 3, 'slab_part': 1, 'slab_swap': 2, 'slab_whole': 3,
      'slab_trade': 2
  }[kind]


def test_two_layers_trade_places():
  made, _ = _unrolled()
  problem = problems.make(made.graph, clusters.make_cluster(3))
  drawer, rng = moves.Moves(problem), np.random.default_rng(0)
  layer = made.layer[made.graph.first_ops]
  devices = (1 + np.maximum(layer, 0)).astype(np.int32)
  wanted = devices.copy()
  wanted[layer == 1], wanted[layer == 2] = 3, 2
  known = layer >= 1
  assert any(
      (drawer.draw('slab_trade', devices, rng)[known] == wanted[known]).all()
      for _ in range(200))


def test_nobody_trades_with_a_device_that_has_nothing():
  made, _ = _unrolled()
  problem = problems.make(made.graph, clusters.make_cluster(3))
  drawer, rng = moves.Moves(problem), np.random.default_rng(0)
  devices = np.ones(made.graph.num_groups, np.int32)
  for _ in range(50):
    row = drawer.draw('slab_trade', devices, rng)
    assert len(set(row[row != devices].tolist())) == 1

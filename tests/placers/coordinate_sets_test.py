"""Moves of sets with equal coordinates, mostly from busy to idle devices."""

import collections

import numpy as np
import pytest

from gdp_grappler.placers.search.moves import moves
from gdp_grappler.placers.search.moves import native_drawer
from helpers import clusters
from helpers import graphs
from helpers import naive_moves
from helpers import problems
from helpers import unrolled

_KINDS = moves.Moves.kinds


def _unrolled():
  """A graph of three layers in eight time steps, and its problem."""
  made = unrolled.make(3, 8)
  return made, problems.make(made.graph, clusters.make_cluster(3))


def _from(start):
  """Moves of a graph in which only one group takes time, so all start there.

  Args:
    start: Layer and time step of this group.

  Returns:
    The group; the layers [G] and time steps [G] of all groups; whether both are
    known, bool [G]; and the moves.
  """
  made = unrolled.make(3, 8)
  graph = made.graph
  first = graph.first_ops
  layer, time = made.layer[first], made.time[first]
  known = (layer >= 0) & (time >= 0)
  group = int(
      np.flatnonzero(known & (layer == start[0])
                     & (time == start[1]))[0])
  seconds = np.repeat((graph.groups == group)[:, None] * 1., 4, axis=1)
  problem = problems.make(graph, clusters.make_cluster(3), seconds)
  return group, layer, time, known, moves.Moves(problem)


def test_a_layer_from_a_step_on_is_drawn():
  start, layer, time, known, drawer = _from((1, 5))
  rng, devices = np.random.default_rng(0), np.ones(len(layer), np.int32)
  drawn = set()
  for _ in range(400):
    groups = np.flatnonzero(
        naive_moves.one(drawer, 'coordinate_set', devices, rng) != devices)
    assert start in groups
    drawn.add(tuple(groups[known[groups]].tolist()))
  for wanted in ((layer == 1) & (time >= 5), (layer == 1) & (time <= 5),
                 layer == 1, time == 5, (layer == 1) & (time == 5)):
    assert tuple(np.flatnonzero(known & wanted).tolist()) in drawn


def test_whole_layers_are_drawn_sooner_than_whole_steps():
  start, layer, time, known, drawer = _from((1, 5))
  other = int(np.flatnonzero(known & (layer == 0) & (time == 2))[0])
  rng, devices = np.random.default_rng(0), np.ones(len(layer), np.int32)
  devices[other] = 2
  drawn = collections.Counter()
  for _ in range(1000):
    row = naive_moves.one(drawer, 'coordinate_trade', devices, rng)
    if row[start] != 2:
      continue
    groups = np.flatnonzero(row != devices)
    assert {start, other} <= set(groups.tolist())
    drawn[tuple(groups[known[groups]].tolist())] += 1
  layers, steps = (tuple(np.flatnonzero(known & wanted).tolist())
                   for wanted in ((layer <= 1), (time == 5) | (time == 2)))
  assert drawn[layers] > 2 * drawn[steps] > 0


def _starts_and_targets(seconds, devices, count=2000):
  """Moved groups [count] and their targets [count], one group per move.

  Each group has a coordinate of its own.
  """
  groups, num_devices = seconds.shape
  none = np.zeros((0, groups))
  drawer = native_drawer.NativeDrawer(
      native_drawer.MoveLayout(np.zeros(groups + 1), np.zeros(0), np.zeros(0),
                               np.arange(groups), none, none,
                               np.arange(groups)[None], seconds,
                               np.ones((num_devices, groups)),
                               np.arange(num_devices) > 0), len(_KINDS))
  rows = drawer.draw(np.full(count, _KINDS.index('coordinate_whole')), devices,
                     0, 0.,
                     np.ones(len(_KINDS)).cumsum())
  assert ((rows != devices).sum(axis=1) == 1).all()
  starts = (rows != devices).argmax(axis=1)
  return starts, rows[np.arange(count), starts]


def test_work_goes_from_busy_devices_to_idle_ones():
  seconds = np.full((6, 4), 1.)
  seconds[5] = 0
  devices = np.array([1, 1, 1, 1, 2, 3])
  starts, targets = _starts_and_targets(seconds, devices)
  counts = np.bincount(starts, minlength=6)
  assert counts[5] == 0  # This group takes no time.
  assert counts[:4].min() > counts[4] > 0
  # Device 3 is the less busy one of 2 and 3. Some targets are random.
  shares = np.bincount(targets[starts < 4]) / (starts < 4).sum()
  assert .6 < shares[3] < .75 and shares[[0, 2]].min() > .1


def test_what_is_on_busy_devices_is_drawn_sooner_half_of_the_time():
  seconds = np.array([[1., 3.], [2., 3.], [3., 3.], [4., 1.], [5., 2.]])
  devices = np.array([0, 0, 0, 1, 1])
  starts, _ = _starts_and_targets(seconds, devices, 100000)
  own, busy = np.array([1., 2., 3., 1., 2.]), np.array([1., 1., 1., .5, .5])
  sooner = own * busy**4
  np.testing.assert_allclose(
      np.bincount(starts) / len(starts),
      (own / own.sum() + sooner / sooner.sum()) / 2, atol=.006)


def test_without_seconds_any_group_is_drawn():
  devices = np.ones(4, np.int32)
  starts, _ = _starts_and_targets(np.zeros((4, 3)), devices)
  assert np.bincount(starts).min() > 400


def test_without_structure_there_are_none():
  of_sets = np.char.startswith(_KINDS, 'coordinate')
  bare = moves.Moves(problems.make(graphs.make_graph(num_ops=3)))
  assert not bare.shares[of_sets].any()
  assert moves.Moves(_unrolled()[1]).shares[of_sets].all()


@pytest.mark.parametrize('kind', [
    'coordinate_set', 'coordinate_set_part', 'coordinate_set_swap',
    'coordinate_whole', 'coordinate_trade'
])
def test_moves_are_made_of_them(kind):
  made, problem = _unrolled()
  drawer, rng = moves.Moves(problem), np.random.default_rng(0)
  first = made.graph.first_ops
  devices = (1 + np.maximum(made.layer[first], 0)).astype(np.int32)
  rows = [naive_moves.one(drawer, kind, devices, rng) for _ in range(200)]
  sources = [set(devices[row != devices].tolist()) for row in rows]
  assert max(map(len, sources)) == {
      'coordinate_set': 3, 'coordinate_set_part': 1, 'coordinate_set_swap': 2,
      'coordinate_whole': 3, 'coordinate_trade': 2
  }[kind]


def test_two_layers_trade_places():
  made, problem = _unrolled()
  drawer, rng = moves.Moves(problem), np.random.default_rng(0)
  layer = made.layer[made.graph.first_ops]
  devices = (1 + np.maximum(layer, 0)).astype(np.int32)
  wanted = devices.copy()
  wanted[layer == 1], wanted[layer == 2] = 3, 2
  known = layer >= 1
  assert any((naive_moves.one(drawer, 'coordinate_trade', devices, rng)[known]
              == wanted[known]).all() for _ in range(200))


def test_nobody_trades_with_a_device_that_has_nothing():
  made, problem = _unrolled()
  drawer, rng = moves.Moves(problem), np.random.default_rng(0)
  devices = np.ones(made.graph.num_groups, np.int32)
  for _ in range(50):
    row = naive_moves.one(drawer, 'coordinate_trade', devices, rng)
    assert len(set(row[row != devices].tolist())) == 1

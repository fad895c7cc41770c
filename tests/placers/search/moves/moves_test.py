from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
import numpy as np
import pytest

from gdp_grappler.placers.search.moves import moves
from helpers import clusters
from helpers import graphs
from helpers import naive_moves
from helpers import problems
from helpers import unrolled

_kinds = pytest.mark.parametrize('kind', moves.Moves.kinds)


def _drawn(kind, graph, devices, count=200):
  """int [count, G], moves from one placement."""
  drawer = moves.Moves(problems.make(graph))
  rng = np.random.default_rng(0)
  devices = np.array(devices, np.int32)
  before = devices.copy()
  result = np.stack(
      [naive_moves.one(drawer, kind, devices, rng) for _ in range(count)])
  assert (devices == before).all()
  return result


def _moved(kind, graph, devices):
  """The different sets of groups that moves move."""
  return {
      tuple(np.flatnonzero(row != devices).tolist())
      for row in _drawn(kind, graph, devices)
  }


def test_shares_are_for_all_kinds_and_sum_to_one():
  made = unrolled.make(3, 8)
  shares = moves.Moves(problems.make(made.graph)).shares
  assert len(shares) == len(moves.Moves.kinds)
  assert shares.sum() == pytest.approx(1) and shares.min() > 0


def test_only_what_is_wanted_has_a_share():
  problem = problems.make(graphs.chain(20))
  drawer = moves.Moves(problem, ('group', 'unit', 'coordinate_set'))
  assert dict(zip(drawer.kinds, drawer.shares)) == {
      **dict.fromkeys(drawer.kinds, 0), 'group': .5, 'unit': .5
  }
  # If only coordinate sets are wanted and there are none, others are drawn.
  alone = moves.Moves(problem, ('coordinate_set', 'coordinate_set_swap')).shares
  assert sorted(alone)[-3:] == [0, .5, .5]


def test_coordinate_sets_are_not_drawn_where_there_are_none():
  shares = moves.Moves(problems.make(graphs.chain(20))).shares
  assert shares.sum() == pytest.approx(1)
  for kind, share in zip(moves.Moves.kinds, shares):
    assert (share == 0) == kind.startswith('coordinate')


@_kinds
@settings(max_examples=8, deadline=None, derandomize=True)
@given(seed=st.integers(0, 1 << 20), num_ops=st.integers(2, 80),
       num_gpus=st.integers(1, 3))
def test_moves_are_legal(kind, seed, num_ops, num_gpus):
  rng = np.random.default_rng(seed)
  graph = graphs.random_graph(seed, num_ops)
  types = np.ones((num_ops, 2), bool)
  types[:, 1] = (rng.random(graph.num_groups) < .7)[graph.groups]
  types[graph.groups == 0] = True
  problem = problems.make(graph.replace(allowed_types=types),
                          clusters.make_cluster(num_gpus))
  drawer = moves.Moves(problem)
  devices = np.where(problem.allowed, rng.random(problem.allowed.shape),
                     -1).argmax(axis=1)
  for _ in range(10):
    devices = naive_moves.one(drawer, kind, devices, rng)
    assert problem.allowed[np.arange(graph.num_groups), devices].all()


@_kinds
def test_the_same_seed_draws_the_same(kind):
  graph = graphs.random_graph(1, 100)
  devices = np.arange(graph.num_groups) % 3
  assert (_drawn(kind, graph, devices, 20) == _drawn(kind, graph, devices,
                                                     20)).all()


def test_moves_drawn_in_one_go_are_legal_and_further_ones_are_wanted():
  graph = graphs.chain(6)
  drawer, rng = moves.Moves(problems.make(graph)), np.random.default_rng(0)
  devices = np.zeros(6, np.int32)
  kinds = np.full(300, drawer.kinds.index('group'))
  alone = drawer.draw_each(kinds, devices, rng)
  assert ((alone != 0).sum(axis=1) == 1).all()
  groups = moves.Moves(problems.make(graph), ['group'])
  rows = groups.draw_each(kinds, devices, rng, .25)
  counts = np.bincount((rows != 0).sum(axis=1), minlength=4)
  assert counts[1] > counts[2] > counts[3] > 0
  assert rows.dtype == np.int32 and rows.max() == 2
  # With the usual shares, some added moves are of more than one group.
  assert (drawer.draw_each(kinds, devices, rng, .5) != 0).sum(axis=1).max() > 4


def test_a_group_goes_alone_and_goes_anywhere():
  rows = _drawn('group', graphs.chain(4), [0, 0, 0, 0])
  assert ((rows != 0).sum(axis=1) == 1).all()
  assert set(rows.max(axis=1)) == {1, 2} and (rows.max(axis=0) > 0).all()


def test_a_ball_is_connected_and_sees_no_devices_but_one():
  # A ball never leaves the one of two chains in which it begins.
  graph = graphs.make_graph([(i, i + 1, 8) for i in (*range(7), *range(8, 15))])
  for group in _moved('ball', graph, [0] * 16):
    assert max(group) < 8 or min(group) >= 8
    assert group == tuple(range(group[0], group[-1] + 1))


def test_a_patch_stays_on_its_device():
  devices = np.array([0, 0, 0, 1, 1, 0, 0, 0])
  for row in _drawn('patch', graphs.chain(8), devices):
    changed = np.flatnonzero(row != devices)
    assert len(set(devices[changed])) == 1
    assert changed.max() - changed.min() == len(changed) - 1


def test_a_window_is_a_stretch_of_one_device():
  devices = np.array([0, 1] * 10)
  for row in _drawn('window', graphs.chain(20), devices):
    changed = np.flatnonzero(row != devices)
    assert len(set(changed % 2)) == 1
    assert (np.diff(changed) == 2).all()


def test_a_border_moves_by_a_stretch_that_ends_there():
  devices = np.array([0] * 6 + [1] * 6)
  sets = _moved('border', graphs.chain(12), devices)
  assert all(s[0] in (0, 6) or s[-1] in (5, 11) for s in sets)
  assert any(s[-1] == 5 and s[0] > 0 for s in sets)
  assert any(s[0] == 6 and s[-1] < 11 for s in sets)


def test_a_swap_exchanges():
  devices = np.array([0, 1] * 10)
  exchanged = [
      row for row in _drawn('swap', graphs.chain(20), devices)
      if 2 not in row and (row != devices).sum() > 1
  ]
  assert exchanged
  for row in exchanged:
    changed = np.flatnonzero(row != devices)
    assert set(changed % 2) == {0, 1} and (np.diff(changed) == 1).all()


def test_a_device_is_emptied():
  devices = np.array([0, 1, 1, 0, 1])
  assert _moved('device', graphs.chain(5), devices) == {(0, 3), (1, 2, 4)}


def test_a_scope_takes_its_gradients_along():
  names = ['a/x', 'b/x', 'gradients/a/x', 'training/gradients/b/y']
  graph = graphs.make_graph(num_ops=4, names=names)
  assert _moved('scope', graph, [0] * 4) == {(0, 2), (1, 3)}


def _labels(*names):
  """Labels of the scopes at each depth."""
  graph = graphs.make_graph([(i, i + 1, 8) for i in range(len(names) - 1)],
                            names=names)
  return moves.Moves(problems.make(graph))._scopes()


def test_scopes_are_labelled_in_the_order_of_their_names():
  short, long = _labels('b/x/op', 'a/y/op', 'op', 'gradients/b/w/op',
                        'a-1/x/op')
  assert short.tolist() == [3, 1, 0, 3, 2]
  # In the order of names, a dash comes before a slash, and a letter after it.
  assert long.tolist() == [4, 2, 0, 3, 1]


def test_scopes_are_those_of_names_cut_at_each_depth():
  rng = np.random.default_rng(0)
  parts = ['a', 'b', 'a-1', 'a.b', '', 'train', 'gradients', 'c2', 'c10']
  names = [
      '/'.join([*rng.choice(parts, rng.integers(0, 9)), f'op{op}'])
      for op in range(600)
  ]
  expected = []
  for depth in range(1, 6):
    paths = [[
        part for part in name.split('/')[:-1]
        if not part.startswith(('train', 'gradient'))
    ] for name in names]
    expected.append(
        np.unique(['/'.join(path[:depth]) for path in paths],
                  return_inverse=True)[1].tolist())
  assert [labels.tolist() for labels in _labels(*names)] == expected


def _pairs():
  """A hundred pairs of ops without edges between pairs."""
  return graphs.make_graph([(2 * i, 2 * i + 1, 999) for i in range(100)],
                           flops=1e9)


def test_a_unit_is_one_of_the_coarse_graph():
  for group in _moved('unit', _pairs(), [0] * 200):
    assert all((member ^ 1) in group for member in group)


def test_a_part_is_what_a_unit_has_on_a_device():
  for group in _moved('part', _pairs(), np.array([0, 1] * 100)):
    assert len({member % 2 for member in group}) == 1

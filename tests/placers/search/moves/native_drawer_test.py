"""C++ draws the same moves as naive rules in Python, equally often."""

from __future__ import annotations

import collections
import dataclasses
import math

import numpy as np
import pytest

from gdp_grappler.placers.search.moves import moves
from gdp_grappler.placers.search.moves import native_drawer
from helpers import naive_moves

_KINDS = moves.Moves.kinds
_EVENLY = np.full(len(_KINDS), 1 / len(_KINDS))
_SUMS = _EVENLY.cumsum()
_DRAWS = 2500
# Draws of C++ for each draw of the naive rules, which are slow. More draws make
# the test sharper.
_NATIVE_DRAWS = 8


def _layout(seed, groups=9, devices=4, structured=True, sets=True):
  """A random layout. The first group and some others have only one device."""
  rng = np.random.default_rng(seed)
  ends = np.array([(a, b) for a in range(groups) for b in range(groups)
                   if a != b and rng.random() < .25]).reshape(-1, 2)
  allowed = rng.random((devices, groups)) < .75
  allowed[1] |= ~allowed.any(axis=0)
  allowed[:, 0] = [True] + [False] * (devices - 1)
  allowed[:, 1:4] = True
  movable = np.flatnonzero(allowed.sum(axis=0) > 1)
  accelerators = np.arange(devices) % 3 > 0
  seconds = rng.random((groups, devices)) * (rng.random((groups, 1)) < .8)

  def levels(*counts, there):
    return np.array([
        np.unique(rng.integers(count, size=groups), return_inverse=True)[1]
        for count in counts * there
    ])

  return native_drawer.MoveLayout(
      np.searchsorted(ends[:, 0], np.arange(groups + 1)), ends[:, 1],
      .2 + .8 * rng.random(len(ends)), rng.permutation(movable),
      levels(2, 4, there=structured), levels(3, 2, there=structured),
      levels(3, 6, 2, 4, there=sets), seconds, allowed, accelerators)


def _placed(layout, seed):
  """int [G], a random legal placement."""
  rng = np.random.default_rng(seed)
  odds = rng.random(layout.allowed.shape)
  return np.where(layout.allowed, odds, -1).argmax(axis=0)


def _drawer(layout):
  return native_drawer.NativeDrawer(layout, len(_KINDS))


def _drawn(layout, kind, devices, count=_NATIVE_DRAWS * _DRAWS, seed=0,
           compound=0., usual=_EVENLY):
  return _drawer(layout).draw(np.full(count, _KINDS.index(kind)), devices, seed,
                              compound, usual.cumsum())


def _assert_alike(found, expected):
  """Tests by chi-square that samples int [N, G] have one distribution."""
  # Rows become strings of bytes, because tuples take as long as the draws.
  width = found.shape[1]
  first, second = (collections.Counter(
      np.ascontiguousarray(rows, np.int8).view(f'S{width}').ravel().tolist())
                   for rows in (found, expected))
  pairs = [(first[key], second[key]) for key in first | second]
  share = len(expected) / (len(found) + len(expected))
  # Rare rows are counted together.
  common = [pair for pair in pairs if sum(pair) * share >= 10]
  rare = np.array([pair for pair in pairs if sum(pair) * share < 10] or
                  [(0, 0)])
  assert min(map(min, common)) > 0
  a, b = np.array([*common, rare.sum(axis=0)]).T.astype(float)
  both = a + b
  statistic = ((b - both * share)**2 / (np.maximum(both, 1) * share *
                                        (1 - share))).sum()
  assert statistic < len(a) + 4 * math.sqrt(2 * len(a))


def _line():
  """A layout of one coordinate and two devices.

  Moves then show exactly which groups a set has.
  """
  return dataclasses.replace(_layout(3, 8, 2,
                                     structured=False), order=np.arange(8),
                             axes=np.arange(8)[None], allowed=np.ones((2, 8)))


_LAYOUTS = {
    'all': _layout(3),
    'larger': _layout(3, groups=14, devices=3),
    'bare': _layout(3, structured=False, sets=False),
}
# A line has only a coordinate, so only moves of coordinate sets are drawn.
_CASES = [
    pytest.param(kind, layout, _DRAWS, id=f'{name}-{kind}')
    for name, layout in _LAYOUTS.items() for kind in _KINDS
] + [
    pytest.param(kind, _line(), 4 * _DRAWS, id=f'line-{kind}')
    for kind in _KINDS if kind.startswith('coordinate')
]


@pytest.mark.parametrize('kind, layout, count', _CASES)
def test_moves_are_drawn_as_often_as_by_the_naive_rules(kind, layout, count):
  devices = _placed(layout, 0)
  naive = naive_moves.NaiveMoves(layout, np.random.default_rng(2))
  expected = [naive.draw(kind, devices) for _ in range(count)]
  _assert_alike(_drawn(layout, kind, devices, _NATIVE_DRAWS * count),
                np.array(expected))


@pytest.mark.parametrize('seed', range(4, 7))
@pytest.mark.parametrize(
    'kind', ['ball', 'border', 'coordinate_set', 'coordinate_trade'])
def test_so_they_are_in_other_graphs(kind, seed):
  layout = _layout(seed, groups=11, devices=seed - 1)
  devices = _placed(layout, 0)
  naive = naive_moves.NaiveMoves(layout, np.random.default_rng(2))
  expected = [naive.draw(kind, devices) for _ in range(_DRAWS)]
  _assert_alike(_drawn(layout, kind, devices), np.array(expected))


def test_so_are_trades_with_a_device_that_has_little():
  layout = dataclasses.replace(_layout(0, 40, 2), allowed=np.ones((2, 40)),
                               order=np.arange(40))
  devices = np.zeros(40, int)
  devices[[7, 9, 33]] = 1
  naive = naive_moves.NaiveMoves(layout, np.random.default_rng(2))
  expected = [naive.draw('coordinate_trade', devices) for _ in range(_DRAWS)]
  _assert_alike(_drawn(layout, 'coordinate_trade', devices), np.array(expected))


def test_so_are_further_moves_of_kinds_that_are_wanted():
  layout = _layout(1, 6, 3)
  devices, rng = _placed(layout, 0), np.random.default_rng(2)
  usual = np.isin(_KINDS, ['group', 'coordinate_whole']) * [.25] + np.isin(
      _KINDS, ['device']) * [.5]
  naive = naive_moves.NaiveMoves(layout, rng)
  expected = [
      naive_moves.compound(naive, 'part', devices, usual, .4, rng)
      for _ in range(_DRAWS)
  ]
  found = _drawn(layout, 'part', devices, compound=.4, usual=usual)
  _assert_alike(found, np.array(expected))


def test_loads_are_summed_anew_where_a_placement_has_changed_in_place():
  layout = _layout(1, 12)
  devices, drawer = _placed(layout, 0).astype(np.int32), _drawer(layout)
  kinds = np.full(300, _KINDS.index('coordinate_set'))
  first = drawer.draw(kinds, devices, 5, 0., _SUMS)
  assert (drawer.draw(kinds, devices, 5, 0., _SUMS) == first).all()
  devices[:] = _placed(layout, 1)
  second = drawer.draw(kinds, devices, 5, 0., _SUMS)
  assert (second != first).any()
  anew = _drawer(layout).draw(kinds, devices, 5, 0., _SUMS)
  assert (second == anew).all()


def test_every_row_is_a_move_of_its_own_kind():
  layout = _layout(1, 12)
  devices = _placed(layout, 0)
  kinds = np.array([_KINDS.index(k) for k in ('group', 'device') * 100])
  rows = _drawer(layout).draw(kinds, devices, 1, 0., _SUMS)
  moved = (rows != devices).sum(axis=1)
  assert (moved[::2] == 1).all() and (moved[1::2] > 1).any()
  assert all(len(set(devices[row != devices])) == 1 for row in rows)


def test_a_seed_draws_the_same_on_every_machine():
  layout = dataclasses.replace(_layout(0, 9, 3), allowed=np.ones((3, 9)),
                               order=np.arange(9))
  rows = _drawn(layout, 'group', np.zeros(9, int), 6, 123)
  other = _drawn(layout, 'group', np.zeros(9, int), 6, 124)
  assert (rows != other).any()
  # A simple program of the published generator gives these numbers.
  assert [(int(row.argmax()), int(row.max())) for row in rows
         ] == [(1, 1), (3, 1), (6, 2), (0, 2), (2, 2), (2, 1)]


def test_connected_sets_have_a_limit():
  count = 3000
  left, right = np.arange(count - 1), np.arange(1, count)
  ends = np.stack(
      [np.concatenate([left, right]),
       np.concatenate([right, left])])
  ends = ends[:, np.argsort(ends[0], kind='stable')]
  none = np.zeros((0, count))
  layout = native_drawer.MoveLayout(
      np.searchsorted(ends[0], np.arange(count + 1)), ends[1],
      np.ones(ends.shape[1]), np.arange(count), none, none, none,
      np.ones((count, 2)), np.ones((2, count)), np.ones(2))
  devices = np.zeros(count, int)
  moved = _drawn(layout, 'ball', devices, 200).sum(axis=1)
  assert moved.max() == 1000 and moved.min() < 20


def test_where_nothing_may_move_nothing_does():
  layout = dataclasses.replace(_layout(0, 9, 3),
                               allowed=np.arange(3)[:, None] == np.ones(9),
                               order=np.zeros(0, int))
  for kind in _KINDS:
    rows = _drawn(layout, kind, np.ones(9, int), 4, compound=.5)
    assert (rows == 1).all()


def test_no_moves_are_drawn_where_none_are_wanted():
  layout = _layout(0)
  devices = _placed(layout, 0)
  assert _drawn(layout, 'ball', devices, 0).shape == (0, 9)

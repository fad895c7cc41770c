import dataclasses

import numpy as np
import pytest

from gdp_grappler.graph.structure import coordinates
from gdp_grappler.placers.coordinates import coordinate_maps
from helpers import graphs
from helpers import recurrent
from helpers import unrolled


def _tiles(graph):
  found = coordinate_maps.tiles(graph, coordinates.of(graph))
  assert found is not None
  return found


def _rows(made, count, **work):
  """int [K, N], the part of each op in K maps."""
  tiles = _tiles(made.graph)
  of_ops = made.graph.flops + 1. if not work else work['work']
  rows = coordinate_maps.maps(tiles, tiles.totals(of_ops),
                              np.full(count, 1 / count))
  return rows[:, tiles.groups]


def _is_there(rows, expected, known):
  """Whether a map is among the rows, if parts may have other numbers."""
  for row in rows:
    pairs = {*zip(row[known].tolist(), expected[known].tolist())}
    if len(pairs) == len({p for p, _ in pairs}) == len({e for _, e in pairs}):
      return True
  return False


@pytest.mark.parametrize('scoped', [True, False])
def test_the_maps_that_experts_use_are_there(scoped):
  made = unrolled.make(4, 8, scoped)
  rows = _rows(made, 4)
  layer, time = made.layer, made.time
  known = (layer >= 0) & (time >= 0)
  for expected in (layer, time // 2, time % 4, (layer - time) % 4,
                   (layer + time) % 4, (layer // 2) * 2 + time // 4,
                   (layer % 2) * 2 + time % 2, (layer - time // 2) % 4):
    assert _is_there(rows, expected, known)


def test_no_row_is_there_twice():
  rows = _rows(unrolled.make(3, 4), 2)
  assert len(np.unique(rows, axis=0)) == len(rows)


def test_all_parts_are_parts():
  rows = _rows(unrolled.make(3, 5), 6)
  assert rows.min() >= 0 and rows.max() < 6


def test_blocks_are_of_equal_work():
  made = unrolled.make(6, 1)
  work = np.zeros(made.graph.num_ops)
  product = np.array(made.graph.op_types) == 'MatMul'
  # The first layer takes as long as all other layers together.
  work[product] = np.where(made.layer[product] == 0, 5., 1.)
  assert _is_there(_rows(made, 2, work=work), made.layer > 0, product)


def test_a_tile_sends_a_tensor_once():
  # One tensor has three readers, two of them in one layer.
  names = [
      'layer0/w', 'layer0/MatMul', 'layer1/w', 'layer1/MatMul', 'layer1/Add',
      'layer2/w', 'layer2/MatMul'
  ]
  graph = graphs.make_graph([(0, 1, 9), (1, 3, 100), (1, 4, 100), (2, 3, 9),
                             (3, 4, 7), (4, 6, 50), (1, 6, 100), (5, 6, 9)],
                            names=names, op_types=[
                                'VariableV2', 'MatMul', 'VariableV2', 'MatMul',
                                'AddV2', 'VariableV2', 'MatMul'
                            ], param_bytes=[9, 0, 9, 0, 0, 9, 0])
  tiles = _tiles(graph)
  layer = coordinates.of(graph)['layer']
  row = np.empty(tiles.num_tiles, int)
  row[tiles.groups] = layer
  assert tiles.cuts(np.stack([row, row * 0])).tolist() == [[250, 0], [3, 0]]


def test_some_tiles_alone_have_their_own_groups():
  tiles = _tiles(unrolled.make(3, 5).graph)
  weights = np.arange(len(tiles.groups)) + 1.
  own = np.array([5, 1, 3])
  part = tiles.induced(own)
  assert part.num_tiles == 3
  kept = weights[np.isin(tiles.groups, own)]
  assert (part.totals(kept) == tiles.totals(weights)[own]).all()


def test_loads_and_cuts_are_those_of_each_row():
  rng = np.random.default_rng(0)
  tiles = _tiles(unrolled.make(6, 40).graph)
  count = tiles.num_tiles
  pairs = rng.integers(0, count, (9000, 2))
  tiles = dataclasses.replace(tiles, edges=pairs,
                              edge_bytes=rng.integers(1 << 40, size=9000) * 1.,
                              edge_tensors=rng.integers(1, 9, 9000))
  rows, work = rng.integers(0, 4,
                            (70, count)).astype(np.int8), rng.random(count)
  size, tensors = tiles.cuts(rows)
  loads = tiles.loads(rows, work, 5)
  for k, row in enumerate(rows):
    crossing = row[pairs[:, 0]] != row[pairs[:, 1]]
    assert size[k] == tiles.edge_bytes[crossing].sum()
    assert tensors[k] == tiles.edge_tensors[crossing].sum()
    assert (loads[k] == np.bincount(row, work, 5)).all()
  assert tiles.cuts(rows[:0]).shape == (2, 0)
  assert tiles.loads(rows[:0], work, 5).shape == (0, 5)


@pytest.mark.parametrize('count', [3, 64, 65, 130])
def test_skewed_maps_take_turns_whatever_holds_them(count):
  made = unrolled.make(2, 200)
  rows = _rows(made, count)
  known = (made.layer >= 0) & (made.time >= 0)
  assert rows.min() >= 0 and rows.max() == count - 1
  for skewed in (made.layer - made.time, made.layer + made.time):
    assert _is_there(rows, skewed % count, known)


def test_nothing_to_read():
  graph = graphs.chain(9)
  assert coordinate_maps.tiles(graph, coordinates.of(graph)) is None


def test_a_variable_in_the_layer_of_most_of_its_users():
  made = unrolled.make(3, 4)
  # Each layer has one variable, so the axis `part` has only one value.
  assert 'part' not in _tiles(made.graph).axes


def test_no_map_deals_out_parts_of_layers():
  assert 'layer_part' not in _tiles(recurrent.two_readers(5)).axes

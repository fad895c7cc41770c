import dataclasses

import numpy as np
import pytest

from gdp_grappler.cluster import presets
from gdp_grappler.evaluation.costs import roofline
from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.graph.structure import coordinates
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.search import coarse_problem
from helpers import clusters
from helpers import graphs
from helpers import problems
from helpers import recurrent
from helpers import search_configs
from helpers import unrolled


def _problem(graph, cluster=None, **fields):
  problem = problems.make(graph, cluster or clusters.make_cluster(2), **fields)
  return dataclasses.replace(problem, simulator=problem.evaluator)


@pytest.fixture(autouse=True)
def _however_small(monkeypatch):
  search_configs.patch(monkeypatch, coarse={'fewest_nodes': 1, 'most_nodes': 1})


def test_tiles_are_time_steps_of_layers():
  step = unrolled.make(2, 3)
  coarse = coarse_problem.of(_problem(step.graph))
  known = coordinates.of(step.graph)
  tiles = {}
  for tile, *place in zip(coarse.tiles, known['layer'], known['segment']):
    assert tiles.setdefault(tile, place) == place
  assert len(tiles) == coarse.problem.graph.num_groups
  assert len({tuple(place) for place in tiles.values()}) == len(tiles)
  own = coordinates.of(coarse.problem.graph)
  for tile, (layer, segment) in tiles.items():
    assert own['layer'][tile] == layer and own['segment'][tile] == segment
  assert (own['variable'] == -1).all()


def test_there_and_back():
  coarse = coarse_problem.of(_problem(unrolled.make(2, 3).graph))
  rng = np.random.default_rng(0)
  rows = rng.integers(0, 3, (5, coarse.problem.graph.num_groups))
  spread = coarse.spread(rows)
  assert (spread == rows[:, coarse.tiles]).all()
  # The devices of tiles without work do not matter.
  work = np.bincount(coarse.problem.graph.groups,
                     coarse.problem.op_seconds[:, 1]) > 0
  assert (coarse.projected(spread)[:, work] == rows[:, work]).all()


def test_most_of_the_work_says_where_a_tile_is():
  step = unrolled.make(2, 2)
  problem = _problem(step.graph)
  coarse = coarse_problem.of(problem)
  product = step.graph.names.index('layer0/step1/MatMul')
  row = np.ones(step.graph.num_groups, int)
  products = [k for k, t in enumerate(step.graph.op_types) if t == 'MatMul']
  tile = coarse.tiles[product]
  row[[k for k in products if coarse.tiles[k] == tile]] = 2
  assert coarse.projected(row[None])[0, tile] == 2


def test_what_may_not_be_there_is_on_the_host():
  step = unrolled.make(2, 3)
  allowed = np.ones((step.graph.num_ops, 2), bool)
  x = step.graph.names.index('in/x')
  allowed[x, 1] = False
  graph = step.graph.replace(allowed_types=allowed)
  problem = _problem(graph)
  coarse = coarse_problem.of(problem)
  rows = coarse.spread(np.ones((1, coarse.problem.graph.num_groups), int))
  assert rows[0, x] == 0 and rows.sum() == graph.num_groups - 1
  assert coarse.problem.allowed.shape == (coarse.problem.graph.num_groups, 3)


def test_a_tile_may_be_where_most_of_its_work_may():
  step = unrolled.make(2, 2)
  pins = [''] * step.graph.num_ops
  for k, name in enumerate(step.graph.names):
    if 'step1/MatMul' in name:
      pins[k] = 'GPU:1'
  problem = _problem(step.graph.replace(pins=pins))
  coarse = coarse_problem.of(problem)
  tile = coarse.tiles[step.graph.names.index('layer0/step1/MatMul')]
  assert coarse.problem.allowed[tile].tolist() == [False, False, True]
  assert coarse.projected(np.ones((1, step.graph.num_groups), int))[0,
                                                                    tile] == 2


def test_one_heavy_group_does_not_say_where_a_tile_may_be():
  step = unrolled.make(2, 3)
  tanh = np.array([t == 'Tanh' for t in step.graph.op_types])
  allowed = np.ones((step.graph.num_ops, 2), bool)
  allowed[tanh, 1] = False
  product = np.array([t == 'MatMul' for t in step.graph.op_types])
  coarse = coarse_problem.of(
      _problem(step.graph.replace(allowed_types=allowed),
               seconds=np.where(tanh, 1.01, product * 1.)))
  tile = coarse.tiles[step.graph.names.index('layer0/step1/MatMul')]
  assert coarse.problem.allowed[tile].all()


def test_nodes_are_orderable_where_most_of_their_work_is(monkeypatch):
  step = unrolled.make(2, 3)
  problem = _problem(step.graph)
  may = np.array([t != 'MatMul' for t in step.graph.op_types])
  monkeypatch.setattr(problem.simulator, 'orderable', lambda graph: may)
  small = coarse_problem.of(problem).problem
  own = small.simulator.orderable(small.graph)
  products = np.array(['MatMul' in name for name in small.graph.names])
  assert products.any() and not own[products].any() and own.any()


def test_switches_are_nothing_in_the_small_graph():
  """The small graph once read the inputs of a Switch, which may be inside."""
  step = unrolled.make(2, 3)
  count = step.graph.num_ops
  product = step.graph.names.index('layer0/step0/MatMul')
  more = [(count, count + 2), (count + 1, count + 2), (count + 2, count + 3),
          (count + 3, product)]
  tensors = len(step.graph.tensor_ops)
  graph = graphs.make_graph(num_ops=count + 4).replace(
      names=(*step.graph.names, 'a', 'b', 'switch', 'merge'),
      op_types=(*step.graph.op_types, 'Placeholder', 'Placeholder', 'Switch',
                'Merge'), flops=np.append(step.graph.flops, [0] * 4),
      edges=np.concatenate([step.graph.edges, more]),
      edge_tensors=np.append(step.graph.edge_tensors, tensors + np.arange(4)),
      tensor_ops=np.append(step.graph.tensor_ops,
                           [count, count + 1, count + 2, count + 3]),
      tensor_bytes=np.append(step.graph.tensor_bytes, [4] * 4))
  small = coarse_problem.of(_problem(graph)).problem
  assert small.simulator.orderable(small.graph).shape == (small.graph.num_ops,)


def _heavy(graph):
  """Seconds of ops. One tile takes more than the rest of the graph."""
  names = np.array(graph.names)
  light = np.char.find(names, 'MatMul') >= 0
  return light * 1. + 4000. * (names == 'layer1/step1/Tanh')


def test_wholes_are_layers_and_what_does_much_alone():
  step = unrolled.make(3, 8)
  coarse = coarse_problem.of(_problem(step.graph, seconds=_heavy(step.graph)))
  wholes = coarse.wholes()
  known = coordinates.of(step.graph)
  heavy = step.graph.names.index('layer1/step1/Tanh')
  alone = coarse.tiles == coarse.tiles[heavy]
  assert alone.sum() > 1 and (known['layer'][alone] == 1).all()
  assert len(set(wholes.tiles[alone])) == 1
  groups = {}
  for unit, layer, apart in zip(wholes.tiles, known['layer'], alone):
    groups.setdefault((layer, apart), set()).add(unit)
  assert all(len(units) == 1 for units in groups.values())
  assert len(groups) == wholes.problem.graph.num_groups
  own = coordinates.of(wholes.problem.graph)['layer']
  for unit, layer in zip(wholes.tiles, known['layer']):
    assert own[unit] == layer


def test_wholes_have_the_prices_of_their_tiles():
  step = unrolled.make(3, 6)
  cluster = presets.preset('2xP100')
  prices = simulator.Simulator(cluster, threads=1)
  coarse = coarse_problem.of(
      placer_lib.Problem(step.graph, cluster, prices, simulator=prices))
  wholes = coarse.wholes()
  rows = np.random.default_rng(2).integers(1, 3,
                                           (8, wholes.problem.graph.num_groups))
  spread = wholes.spread(rows)
  assert (wholes.projected(spread) == rows).all()
  small, large = (of.problem.evaluator.price_groups(of.problem.graph,
                                                    of.projected(spread))
                  for of in (wholes, coarse))
  np.testing.assert_array_equal(small.seconds, large.seconds)
  np.testing.assert_array_equal(small.peak_bytes, large.peak_bytes)


def test_wholes_are_where_most_of_their_work_may_be():
  step = unrolled.make(2, 4)
  allowed = np.ones((step.graph.num_ops, 2), bool)
  allowed[step.layer == 1, 1] = False
  coarse = coarse_problem.of(_problem(
      step.graph.replace(allowed_types=allowed)))
  wholes = coarse.wholes()
  layer = wholes.tiles[step.graph.names.index('layer1/step1/MatMul')]
  assert wholes.problem.allowed[layer].tolist() == [True, False, False]


def test_prices_are_close():
  step = unrolled.make(4, 12)
  cluster = presets.preset('2xP100')
  prices = simulator.Simulator(cluster, threads=1)
  problem = placer_lib.Problem(step.graph, cluster, prices, simulator=prices)
  coarse = coarse_problem.of(problem)
  rng = np.random.default_rng(1)
  own = coordinates.of(coarse.problem.graph)
  devices = np.array(cluster.accelerators)
  layers = devices[rng.integers(0, 2, (16, 6))]
  rows = layers[:, np.clip(own['layer'], 0, 5)]
  small = coarse.problem.evaluator.price_groups(coarse.problem.graph, rows)
  large = prices.price_groups(step.graph, coarse.spread(rows))
  ratios = small.seconds / large.seconds
  assert .85 < ratios.min() and ratios.max() < 1.15


@pytest.mark.parametrize('graph', [graphs.chain(12), graphs.make_graph()])
def test_without_structure_there_is_none(graph):
  assert coarse_problem.of(_problem(graph)) is None


def test_what_is_hardly_smaller_is_none(monkeypatch):
  problem = _problem(unrolled.make(2, 3).graph)
  search_configs.patch(monkeypatch, coarse={'most_nodes': .1})
  assert coarse_problem.of(problem) is None


def test_finer_where_there_would_be_few_nodes(monkeypatch):
  graph = unrolled.make(2, 6).graph
  values = coordinates.of(graph).values.copy()
  # Each tile gets two variables.
  variable = coordinates.NAMES.index('variable')
  values[:, variable] = np.arange(graph.num_groups) % 2
  problem = _problem(graph.replace(coordinates=values))
  few = coarse_problem.of(problem)
  search_configs.patch(monkeypatch,
                       coarse={'fewest_nodes': few.problem.graph.num_ops + 1})
  many = coarse_problem.of(problem)
  assert many.problem.graph.num_ops > few.problem.graph.num_ops
  assert set(coordinates.of(many.problem.graph)['variable']) == {0, 1}


def test_tiles_are_parted_by_what_chains_wait_for():
  graph = recurrent.two_readers(6)
  coarse = coarse_problem.of(_problem(graph))
  parted = coarse.parted()
  known = coordinates.of(graph)
  at = [
      graph.names.index(f'layer0/{end}/step4/{k}') for end in ('ahead', 'back')
      for k in 'xh'
  ]
  assert len({*coarse.tiles[at].tolist()}) == 1
  assert len({*parted.tiles[at].tolist()}) == 4
  own = coordinates.of(parted.problem.graph)
  for name in ('layer', 'segment', 'layer_part'):
    assert (own[name][parted.tiles] == known[name]).all()
  # The wholes have all nodes and all work. Each part is one group of them.
  whole = parted.wholes()
  assert whole.problem.graph.num_ops == parted.problem.graph.num_ops
  assert whole.problem.op_seconds.sum() == pytest.approx(
      coarse.problem.op_seconds.sum())
  assert len({*whole.tiles[at].tolist()}) == 4


def test_what_chains_use_alone_is_not_parted():
  assert coarse_problem.of(_problem(unrolled.make(3, 8).graph)).parted() is None


def test_parts_that_are_too_many_are_not_looked_at(monkeypatch):
  graph = recurrent.two_readers(6)
  coarse = coarse_problem.of(_problem(graph))
  nodes = coarse.problem.graph.num_ops
  search_configs.patch(monkeypatch,
                       coarse={'most_nodes': nodes / graph.num_ops})
  assert coarse_problem.of(_problem(graph)).parted() is None


def test_layers_have_parts_where_tiles_are_by_variables(monkeypatch):
  monkeypatch.setattr(coarse_problem, '_COORDINATES',
                      (('layer', 'segment', 'variable'),))
  coarse = coarse_problem.of(_problem(recurrent.two_readers(6)))
  parted = coarse.parted()
  assert parted.problem.graph.num_groups == coarse.problem.graph.num_groups
  assert (parted.wholes().problem.graph.num_groups
          > coarse.wholes().problem.graph.num_groups)


def test_nodes_take_as_much_of_the_host_as_their_ops():
  """On a fast card, the host limits a step of small ops."""
  graph = unrolled.make(3, 20).graph
  cluster = presets.preset('2xH100')
  prices = simulator.Simulator(cluster, threads=1)
  coarse = coarse_problem.of(
      placer_lib.Problem(graph, cluster, prices, simulator=prices))
  rows = np.ones((1, coarse.problem.graph.num_groups), np.int32)
  small = coarse.problem.evaluator.price_groups(coarse.problem.graph, rows)
  large = prices.price_groups(graph, coarse.spread(rows))
  launched = np.count_nonzero(prices.op_seconds(graph)[:, 1])
  assert large.seconds[0] > launched * cluster.devices[1].dispatch_s
  assert small.seconds == pytest.approx(large.seconds, rel=.03)


def test_nodes_fill_as_much_of_a_cut_card_as_their_ops():
  step = unrolled.make(2, 3)
  coarse = coarse_problem.of(_problem(step.graph, presets.preset('1xH100:2')))
  problem = coarse.problem
  fine = roofline.Roofline()
  cluster = problem.cluster
  seconds = fine.op_seconds(step.graph, cluster)
  shares = problem.simulator.cost_model.card_shares(problem.graph, cluster,
                                                    None)
  of_ops = fine.card_shares(step.graph, cluster, seconds)
  assert shares[:, 0] == pytest.approx(1)
  assert ((shares > 0) & (shares <= 1)).all()
  for node, tile in enumerate(problem.graph.groups):
    own = of_ops[coarse.tiles[step.graph.groups] == tile, 1]
    assert own.min() - 1e-9 <= shares[node, 1] <= own.max() + 1e-9

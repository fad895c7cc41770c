import numpy as np
import pytest

from gdp_grappler.cluster import presets
from gdp_grappler.evaluation.costs import roofline
from gdp_grappler.features import featurizer
from gdp_grappler.features import schema
from gdp_grappler.graph import coarsening
from helpers import clusters
from helpers import graphs

_CLUSTER = clusters.make_cluster(2)


def _features(graph, units=None, seconds=None, cluster=_CLUSTER):
  if units is None:
    units = coarsening.groups_as_units(graph)
  if seconds is None:
    seconds = np.ones((graph.num_ops, cluster.num_devices))
  return featurizer.featurize(graph, cluster, np.asarray(units), seconds)


def _column(features, name):
  return features.units[:, schema.UNIT_FEATURES.index(name)].tolist()


def test_sums_over_the_ops_of_a_unit():
  graph = graphs.make_graph([(0, 1, 10), (0, 2, 10), (1, 3, 20), (2, 3, 30),
                             (0, 3)], flops=[1, 2, 3, 4],
                            io_bytes=[10, 20, 30, 40], param_bytes=[5, 0, 7, 0])
  features = _features(graph, [0, 1, 1, 2])
  assert _column(features, 'flops') == [1, 5, 4]
  assert _column(features, 'io_bytes') == [10, 50, 40]
  assert _column(features, 'output_bytes') == [10, 50, 0]
  assert _column(features, 'param_bytes') == [5, 7, 0]
  assert _column(features, 'num_ops') == [1, 2, 1]


def test_edges_between_units_count_a_tensor_once():
  graph = graphs.make_graph([(0, 1, 10), (0, 2, 10), (1, 2, 20), (1, 3, 20),
                             (2, 3, 30), (0, 3)])
  features = _features(graph, [0, 1, 1, 2])
  edges = dict(
      zip(map(tuple, features.edges.tolist()), features.edge_bytes.tolist()))
  assert edges == {(0, 1): 10, (1, 2): 50, (0, 2): 0}
  assert _column(features, 'num_inputs') == [0, 1, 2]
  assert _column(features, 'num_outputs') == [2, 1, 0]
  assert _column(features, 'input_bytes') == [0, 10, 50]


def test_ranks_and_times():
  graph = graphs.make_graph([(0, 1, 1), (1, 2, 1), (0, 2, 1)])
  seconds = np.array([[1, 5, 5], [2, 3, 9], [4, 4, 4]])
  features = _features(graph, seconds=seconds)
  assert _column(features, 'fastest_s') == [1, 2, 4]
  assert _column(features, 'slowest_s') == [5, 9, 4]
  assert _column(features, 'downward_rank_s') == [1, 3, 7]
  assert _column(features, 'upward_rank_s') == [7, 6, 4]
  assert _column(features, 'level') == [1, 2, 3]


def test_the_costliest_op_names_a_unit():
  graph = graphs.make_graph([(0, 1, 1), (1, 2, 1)],
                            op_types=['Add', 'MatMul', 'Relu'])
  seconds = np.array([[1.0] * 3, [9.0] * 3, [2.0] * 3])
  assert _features(graph, [0, 0, 1], seconds).op_types == ('MatMul', 'Relu')


def test_a_unit_may_be_where_all_its_ops_may_be():
  graph = graphs.make_graph([(0, 1, 1), (1, 2, 1)], pins=['', 'GPU:1', ''],
                            allowed_types=[[1, 1], [1, 1], [1, 0]])
  assert _features(graph, [0, 0, 1]).allowed.tolist() == [[False, False, True],
                                                          [True, False, False]]


def test_a_unit_stays_where_what_it_computes_is_rounded_as_before():
  graph = graphs.make_graph([(0, 1, 1), (1, 2, 1)], same_numbers=[[1,
                                                                   1], [0, 1],
                                                                  [1, 1]])
  assert _features(graph, [0, 0, 1]).allowed.tolist() == [[False, True, True],
                                                          [True, True, True]]


def test_devices():
  cluster = presets.preset('2xP100')
  rows = _features(graphs.chain(2), cluster=cluster).devices

  def column(name):
    return rows[:, schema.DEVICE_FEATURES.index(name)].tolist()

  assert column('is_cpu') == column('is_host') == [1, 0, 0]
  assert column('is_gpu') == [0, 1, 1]
  assert column('link_bytes_per_s') == [np.float32(12e9)] * 3
  assert column('flops_per_s')[1] == np.float32(9.3e12 * 0.7)
  assert column('devices_on_compute') == [1, 1, 1]
  alone = clusters.make_cluster(0)
  assert np.isfinite(_features(graphs.chain(2), cluster=alone).devices).all()


def _longest(graph, seconds, op, forward):
  a, b = (1, 0) if forward else (0, 1)
  return seconds[op] + max(
      (_longest(graph, seconds, other[b], forward)
       for other in graph.edges.tolist() if other[a] == op), default=0)


@pytest.mark.parametrize('seed', range(3))
def test_ranks_against_recursion(seed):
  graph = graphs.random_graph(seed, 25, fan_in=1.2)
  seconds = np.random.default_rng(seed).random(25)
  down, up = featurizer.path_ranks(graph, seconds)
  for op in range(25):
    assert down[op] == pytest.approx(_longest(graph, seconds, op, True))
    assert up[op] == pytest.approx(_longest(graph, seconds, op, False))


@pytest.mark.parametrize('seed', range(3))
def test_shapes_types_and_totals_of_random_graphs(seed):
  graph = graphs.random_graph(seed, 200)
  seconds = roofline.Roofline().op_seconds(graph, _CLUSTER)
  features = _features(graph, seconds=seconds)
  m = graph.num_groups
  assert features.units.shape == (m, len(schema.UNIT_FEATURES))
  assert features.units.dtype == features.devices.dtype == np.float32
  assert features.edges.dtype == np.int32
  assert features.devices.shape == (3, len(schema.DEVICE_FEATURES))
  assert len(features.op_types) == m and features.allowed.shape == (m, 3)
  assert sum(_column(features, 'num_ops')) == 200
  assert np.isfinite(features.units).all()
  assert (features.edges[:, 0] != features.edges[:, 1]).all()
  assert len(np.unique(features.edges, axis=0)) == len(features.edges)

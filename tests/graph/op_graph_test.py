import gc
import weakref

import numpy as np
import pytest

from gdp_grappler import errors
from gdp_grappler.graph import op_graph
from helpers import graphs


def test_arrays_are_copied_typed_and_read_only():
  flops = np.array([1.0, 2.0])
  graph = graphs.make_graph([(0, 1, 8)], flops=flops)
  flops[0] = 7
  assert graph.flops[0] == 1.0
  assert graph.edges.dtype == np.int32 and graph.edges.shape == (1, 2)
  for array in (graph.edges, graph.flops, graph.groups, graph.allowed_types,
                graph.topological_order):
    with pytest.raises(ValueError, match='read-only'):
      array[0] = 0


def test_bytes_by_edge_and_by_op():
  graph = graphs.make_graph([(0, 1, 8), (0, 2, 8), (0, 2, 5, 1), (1, 2)])
  assert graph.edge_bytes.tolist() == [8, 8, 5, 0]
  assert graph.output_bytes.tolist() == [13, 0, 0]


def test_bytes_of_a_constant_count_once():
  """A constant with bytes as memory and as output occupied memory twice."""
  graph = graphs.make_graph([(0, 3, 8), (1, 3, 8), (2, 3, 8)],
                            op_types=['Const', 'Const', 'VariableV2',
                                      'AddN'], param_bytes=[8, 0, 5, 0])
  assert graph.constants.tolist() == [True, True, False, False]
  assert graph.resident_bytes.tolist() == [8, 8, 5, 0]


def test_ops_of_the_types_that_are_wanted():
  asked = []
  graph = graphs.make_graph(num_ops=4, op_types=['Mul', 'Add', 'Mul', 'Sub'])
  found = graph.where_type(lambda t: asked.append(t) or t in ('Mul', 'Sub'))
  assert found.tolist() == [True, False, True, True]
  assert asked == ['Mul', 'Add', 'Sub']
  assert graphs.make_graph().where_type(bool).tolist() == []


def test_topological_order_puts_producers_first_and_keeps_the_breadth():
  graph = graphs.make_graph([(3, 1, 1), (3, 0, 1), (1, 2, 1), (0, 2, 1)])
  assert graph.topological_order.tolist() == [3, 1, 0, 2]


@pytest.mark.parametrize('seed', range(3))
def test_topological_order_of_random_graphs(seed):
  graph = graphs.random_graph(seed, 200)
  position = np.argsort(graph.topological_order)
  assert sorted(graph.topological_order.tolist()) == list(range(200))
  assert (position[graph.edges[:, 0]] < position[graph.edges[:, 1]]).all()


def test_groups_in_the_order_of_their_first_ops():
  graph = graphs.make_graph([(3, 1), (1, 0)], 4, groups=[0, 1, 2, 1])
  assert graph.topological_order.tolist() == [2, 3, 1, 0]
  assert graph.group_order.tolist() == [2, 1, 0]


def test_cycle_is_named():
  graph = graphs.make_graph([(0, 1, 1), (1, 2, 1), (2, 1, 1)])
  with pytest.raises(errors.InvalidGraphError, match='cycle near "op1"'):
    _ = graph.topological_order


def test_empty_graph():
  graph = graphs.make_graph()
  assert (graph.num_ops, graph.num_groups) == (0, 0)
  assert graph.topological_order.size == 0


@pytest.mark.parametrize('changes, message', [
    ({'flops': [1.0]}, 'flops does not have 2 rows'),
    ({'edges': [[0, 2]]}, 'edges points outside'),
    ({'edges': [[-1, 1]]}, 'edges points outside'),
    ({'edge_tensors': [1]}, 'edge_tensors points outside'),
    ({'edge_tensors': [-2]}, 'edge_tensors points outside'),
    ({'edge_tensors': []}, 'edge_tensors does not have'),
    ({'tensor_bytes': []}, 'tensor_bytes does not have'),
    ({'groups': [0, 2]}, 'groups are not numbered'),
    ({'groups': [-1, 0]}, 'groups are not numbered'),
    ({'pins': ['']}, 'pins does not have 2 rows'),
])
def test_wrong_fields_are_refused(changes, message):
  graph = graphs.chain(2)
  with pytest.raises(errors.InvalidGraphError, match=message):
    graph.replace(**changes)


def test_fingerprint_ignores_devices_and_nothing_else_that_counts():
  graph = graphs.chain(3)
  same = graph.replace(devices=['CPU:0'] * 3)
  assert same.fingerprint == graph.fingerprint
  for other in (graph.replace(names=['a', 'b', 'c']),
                graph.replace(op_types=['Add'] * 3),
                graph.replace(edges=[[0, 1], [0, 2]]),
                graph.replace(tensor_bytes=[1, 2]),
                graph.replace(param_bytes=[1, 0, 0])):
    assert other.fingerprint != graph.fingerprint
  assert len(graph.fingerprint) == 16


def test_device_types_are_the_columns():
  assert op_graph.DEVICE_TYPES == ('CPU', 'GPU')


def test_an_op_that_stands_for_a_variable_is_called_by_it():
  graph = graphs.make_graph([(0, 1, 8)]).replace(variables=('dense/kernel', ''))
  assert [graph.label(op) for op in (0, 1)
         ] == [f'dense/kernel [{graph.names[0]}]', graph.names[1]]


@pytest.mark.parametrize('name, expected',
                         [('unknown', 'dense/kernel'),
                          ('step/unknown_5', 'dense/kernel'),
                          ('unknown_kernel', 'dense/kernel [unknown_kernel]')])
def test_an_argument_without_a_name_is_called_by_its_variable(name, expected):
  # "words/embeddings [unknown] ... must be in one memory".
  assert op_graph.label(name, 'dense/kernel') == expected


def test_full_labels_have_the_name_that_files_have():
  graph = graphs.make_graph([(0, 1, 8)]).replace(variables=('dense/kernel', ''),
                                                 names=('unknown_5', 'add'))
  assert [graph.full_label(op) for op in (0, 1)
         ] == ['dense/kernel [unknown_5]', 'add']


def test_a_result_is_computed_once_and_kept_in_its_graph():
  asked = []

  @op_graph.once_per_graph
  def ops(graph):
    asked.append(graph.num_ops)
    return np.arange(graph.num_ops) if graph.num_ops > 2 else None

  graph, small = graphs.make_graph(num_ops=3), graphs.make_graph(num_ops=2)
  result = weakref.ref(ops(graph))
  assert ops(graph) is result() and ops(small) is ops(small) is None
  assert asked == [3, 2]
  del graph
  gc.collect()
  assert result() is None

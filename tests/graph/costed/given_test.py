"""Graphs that bring their costs, put together from their ops."""

import numpy as np
import pytest

from gdp_grappler import errors
from gdp_grappler.graph.costed import given


def _ops(*names, **fields):
  return [given.Op(name, 'Op', {}, **fields) for name in names]


def test_tensors_are_numbered_by_producer_and_output():
  ops = _ops('a', 'b', 'c')
  ops[0].outputs, ops[1].outputs = [10, 20], [30]
  graph, _ = given.assemble('f', 'g', ops, [(0, 1, 1), (1, 0, 2), (0, -1, 2)])
  assert graph.tensor_ops.tolist() == [0, 0, 1]
  assert graph.tensor_bytes.tolist() == [10, 20, 30]
  assert graph.edges.tolist() == [[0, 1], [1, 2], [0, 2]]
  assert graph.edge_tensors.tolist() == [1, 2, -1]


def test_ops_of_one_label_are_one_group():
  ops = _ops('a', 'b', 'c', 'd')
  ops[1].group = ops[3].group = 'x'
  ops[2].group = ''  # A label like others.
  graph, _ = given.assemble('f', 'g', ops, [])
  assert graph.groups.tolist() == [0, 1, 2, 1]


def test_a_number_as_label_is_not_the_op_of_that_number():
  ops = _ops('a', 'b')
  ops[1].group = '0'
  graph, _ = given.assemble('f', 'g', ops, [])
  assert graph.groups.tolist() == [0, 1]


def test_seconds_are_columns_with_holes():
  ops = _ops('a', 'b', 'c', workspace_bytes=7)
  ops[1].seconds = {'GPU': 2., given.ANYWHERE: 3.}
  ops[2].seconds = {'GPU': 4.}
  _, costs = given.assemble('f', 'g', ops, [])
  assert list(costs.seconds) == ['GPU', given.ANYWHERE]
  np.testing.assert_array_equal(costs.seconds['GPU'], [np.nan, 2, 4])
  np.testing.assert_array_equal(costs.seconds[given.ANYWHERE],
                                [np.nan, 3, np.nan])
  assert costs.workspace_bytes.tolist() == [7, 7, 7]
  assert costs.names == ('a', 'b', 'c') and costs.path == 'f'


def test_pins_are_those_of_users():
  ops = _ops('a', 'b')
  ops[1].pin = 'GPU:0'
  graph, _ = given.assemble('f', 'g', ops, [])
  assert graph.pins == ('', 'GPU:0') and graph.user_pins.tolist() == [0, 1]


def _cycle(count, *more):
  names = [f'n{i}' for i in range(count)]
  return names, [(i, 0, (i + 1) % count) for i in range(count)] + list(more)


@pytest.mark.parametrize('count, said', [
    (1, '"n0" -> "n0"'),
    (2, '"n1" -> "n0" -> "n1"'),
    (9, '-> ... ->'),
])
def test_circles_are_named(count, said):
  names, edges = _cycle(count)
  with pytest.raises(errors.InvalidGraphError) as error:
    given.check_acyclic('f.json', _ops(*names), edges)
  assert said in str(error.value) and str(error.value).startswith('f.json: ')


def test_what_hangs_on_a_circle_is_not_named():
  names, edges = _cycle(3)
  with pytest.raises(errors.InvalidGraphError) as error:
    given.check_acyclic('f', _ops(*names, 'before', 'after'),
                        [(3, 0, 0), (2, 0, 4), *edges])
  assert 'before' not in str(error.value) and 'after' not in str(error.value)


def test_parts_of_a_byte_are_a_byte():
  assert given.bytes_of('f', 'x', 1.2) == 2
  assert given.bytes_of('f', 'x', given.MOST_BYTES) == given.MOST_BYTES


@pytest.mark.parametrize('value', [
    True, '3', None, -1,
    float('nan'),
    float('inf'), given.MOST_BYTES + 1, [1]
])
def test_what_are_no_bytes(value):
  with pytest.raises(errors.InvalidGraphError, match='^f: x: '):
    given.bytes_of('f', 'x', value)


@pytest.mark.parametrize('path, name', [('/a/b c.json', 'b_c'),
                                        ('x-1.2.pb', 'x-1.2'), ('', 'graph')])
def test_graphs_are_called_like_their_files(path, name):
  assert given.graph_name(path) == name


def test_a_question_stays_one():
  assert str(given.wrong('f', 'x', 'a?')) == 'f: x: a?'
  assert str(given.wrong('f', 'x', 'a.')) == 'f: x: a.'

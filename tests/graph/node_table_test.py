"""What C++ says of nodes and inputs is what the naive Python says."""

from __future__ import annotations

import re

import hypothesis
from hypothesis import strategies as st
import numpy as np
import pytest

from gdp_grappler import errors
from gdp_grappler.graph import node_table
from helpers import graph_defs

_INPUT = re.compile(
    r'(?P<control>\^)?(?P<name>[^:^]+)(:(?P<output>[0-9]{1,9}))?')
_SHARED = ('_class', 'shared_name', 'container', 'frame_name', 'index')


def _naive_edges(graph_def):
  """Of every input; None at the first that is not there."""
  index = {node.name: i for i, node in enumerate(graph_def.node)}
  result = []
  for target, node in enumerate(graph_def.node):
    for text in node.input:
      match = _INPUT.fullmatch(text)
      if match is None or match['name'] not in index:
        return None
      output = -1 if match['control'] else int(match['output'] or 0)
      result.append((index[match['name']], output, target))
  return result


def _naive_kind(node):
  return (node.op, node.device,
          tuple(
              (name, (value.HasField('s') and not value.s) if name in _SHARED
               else '' if value.HasField('tensor') else value.SerializeToString(
                   deterministic=True))
              for name, value in sorted(node.attr.items())))


_attributes = st.fixed_dictionaries({}, optional={
    'T':
        st.sampled_from([{'type': 1}, {'type': 2}]),
    'shared_name':
        st.sampled_from([{'s': b''}, {'s': b'a'}, {'s': b'b'}]),
    'frame_name':
        st.sampled_from([{'s': b'f'}, {'s': b'g'}]),
    'index':
        st.sampled_from([{'i': 0}, {'i': 3}]),
    'N':
        st.sampled_from([{'i': 0}, {'i': 3}]),
    'value':
        st.sampled_from([{'tensor': {'dtype': 1}}, {'tensor': {'dtype': 2}},
                         {'i': 1}]),
})
_inputs = st.lists(
    st.tuples(
        st.sampled_from(('', '', '^')), st.integers(0, 5),
        st.sampled_from(
            ('', '', ':0', ':2', ':12', ':', ':x', ':-1', ':1234567890'))),
    max_size=3)


@hypothesis.settings(max_examples=300, deadline=None)
@hypothesis.given(
    st.lists(
        st.tuples(st.sampled_from(('A', 'B')), st.sampled_from(('', '/cpu:0')),
                  _inputs, _attributes), min_size=1, max_size=6))
def test_the_same_as_the_naive_one(drawn):
  graph_def = graph_defs.graph_def(*(graph_defs.node(
      f'n{i}', op,
      [f'{mark}n{number}{output}'
       for mark, number, output in inputs], device=device, **attributes)
                                     for i, (op, device, inputs,
                                             attributes) in enumerate(drawn)))
  expected = _naive_edges(graph_def)
  if expected is None:
    with pytest.raises(errors.InvalidGraphError, match='is not in the graph'):
      node_table.NodeTable('test', graph_def)
    return
  table = node_table.NodeTable('test', graph_def)
  assert list(table.edges) == expected
  assert np.asarray(table.edges).tolist() == [list(e) for e in expected]
  kinds = [_naive_kind(node) for node in graph_def.node]
  numbers = {kind: i for i, kind in enumerate(dict.fromkeys(kinds))}
  assert table.kinds.tolist() == [numbers[kind] for kind in kinds]
  assert table.each(_naive_kind) == kinds


def test_two_nodes_of_one_name():
  graph_def = graph_defs.graph_def(graph_defs.node('a', 'NoOp'),
                                   graph_defs.node('a', 'NoOp'))
  with pytest.raises(errors.InvalidGraphError, match='two nodes of the same'):
    node_table.NodeTable('test', graph_def)

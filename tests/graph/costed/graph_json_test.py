"""Graphs in JSON: what they mean, and what is wrong with bad ones."""

import itertools
import json
import pathlib
import re

import numpy as np
import pytest

from gdp_grappler import errors
from gdp_grappler.graph.costed import graph_json

_DOCS = pathlib.Path(__file__).parents[3] / 'docs' / 'graph_json.md'


def _read(**fields):
  return graph_json.read('g.json', json.dumps(fields).encode())


def _node(name, **fields):
  return {'name': name, 'seconds': 1, **fields}


def _nodes(*names):
  return [_node(name) for name in names]


def test_the_example_of_the_page():
  text = re.search(r'```json\n(.*?)```', _DOCS.read_text(), re.DOTALL)[1]
  graph, costs = graph_json.read('example.json', text.encode())
  assert graph.name == 'two-towers' and graph.num_ops == 6
  assert graph.num_groups == 5 and graph.groups[1] == graph.groups[2]
  index = graph.names.index
  assert graph.output_bytes.tolist() == [
      1600000, 4000000, 800400, 800000 + 400, 800000, 0
  ]
  assert graph.edge_bytes.tolist() == [
      1600000, 1600000, 4000000, 800000, 400, 800000, 800000, 400, 0
  ]
  assert graph.edge_tensors[-1] == -1
  assert graph.param_bytes.tolist() == [0, 4000000, 0, 2400000, 0, 0]
  assert graph.allowed_types.tolist() == [[True, False]] + [[False, True]] * 5
  assert graph.pins[index('join')] == 'GPU:0' and graph.user_pins.sum() == 1
  assert graph.flops[index('norm')] == 1e6
  assert costs.workspace_bytes[index('left')] == 65536
  assert list(costs.seconds) == ['', 'P100', 'K40', 'GPU']
  np.testing.assert_array_equal(costs.seconds['P100'],
                                [np.nan, np.nan, .0021, np.nan, np.nan, np.nan])


def test_every_field_of_the_page_is_read_and_no_other():
  tables = re.findall(r'^\| (`[^|]*) \|', _DOCS.read_text(), re.MULTILINE)
  documented = set(re.findall(r'`(\w+)`', ' '.join(tables)))
  known = {*graph_json._GRAPH, *graph_json._NODE}
  assert known <= documented


def test_edges_of_one_output_are_one_tensor_and_edges_with_bytes_are_not():
  graph, _ = _read(
      nodes=[_node('a', outputs=[5, 6]), *_nodes('b', 'c', 'd')],
      edges=[['a', 'b'], {'from': 'a', 'to': 'c',
                          'output': 0}, {'from': 'a', 'to': 'c', 'output': 1},
             ['a', 'd', 5], ['b', 'd', 7], ['b', 'c', 7], ['c', 'd']])
  assert graph.edge_tensors.tolist() == [0, 0, 1, 2, 3, 4, 5]
  assert graph.tensor_bytes.tolist() == [5, 6, 5, 7, 7, 0]


def test_an_output_may_get_its_size_from_an_edge():
  graph, _ = _read(
      nodes=_nodes('a', 'b', 'c'),
      edges=[{'from': 'a', 'to': 'b', 'output': 0, 'bytes': 3},
             {'from': 'a', 'to': 'c', 'output': 0, 'bytes': 3}])
  assert graph.tensor_bytes.tolist() == [3]


@pytest.mark.parametrize('order', [*itertools.permutations(range(3))])
def test_the_order_of_edges_does_not_change_tensors(order):
  """An edge without bytes read the output that an earlier edge had added."""
  edges = [['a', 'b', 100], ['a', 'c'],
           {'from': 'a', 'to': 'd', 'output': 0, 'bytes': 3}]
  graph, _ = _read(nodes=_nodes(*'abcd'), edges=[edges[i] for i in order])
  assert graph.tensor_bytes.tolist() == [3, 100]
  assert graph.edge_tensors[np.argsort(order)].tolist() == [1, 0, 0]


def test_defaults_numbers_as_names_and_null():
  graph, costs = _read(
      defaults={'seconds': 2, 'memory': 7, 'cpu': False}, nodes=[{'name': 0}, {
          'name': 1, 'seconds': None, 'flops': 0, 'memory': 8.2, 'cpu': None
      }], edges=[[0, 1]])
  assert graph.names == ('0', '1')
  assert graph.param_bytes.tolist() == [7, 9]
  assert graph.allowed_types.tolist() == [[False, True], [True, True]]
  np.testing.assert_array_equal(costs.seconds[''], [2, np.nan])


def test_control_edges_in_both_forms():
  graph, _ = _read(nodes=_nodes('a', 'b', 'c'), control_edges=[['a', 'b']],
                   edges=[{'from': 'b', 'to': 'c', 'control': True}])
  assert graph.edges.tolist() == [[1, 2], [0, 1]]
  assert graph.edge_tensors.tolist() == [-1, -1]


def test_names_of_files_name_graphs():
  graph, _ = graph_json.read('some/my graph.json',
                             json.dumps({'nodes': _nodes('a')}).encode())
  assert graph.name == 'my_graph'


def test_a_long_chain_is_quick_and_no_recursion():
  names = list(range(20000))
  graph, _ = _read(nodes=_nodes(*names), edges=[[a, a + 1] for a in names[:-1]])
  assert graph.topological_order[-1] == names[-1]


@pytest.mark.parametrize(
    'fields, said',
    [
        ({'nodes': [_node('a'), _node('a')]}, r'node "a": it appears twice'),
        ({'nodes': []}, r'nodes: there are none'),
        ({'nodes': {'a': 1}}, r'nodes: it is a dict'),
        ({'nodes': ['a']}, r"nodes\[0\]: it is 'a'; give an object"),
        ({'nodes': [{'seconds': 1}]}, r'nodes\[0\]: "name" is missing'),
        ({'nodes': [_node('')]}, r'nodes\[0\].name: it is \'\''),
        ({'nodes': [{'name': 'a'}]
         }, r'node "a", field "seconds": it is missing'),
        ({'nodes': [_node('a', seconds=-1)]
         }, r'"a", field "seconds": it is -1;'),
        ({'nodes': [_node('a', seconds={})]
         }, r'"a", field "seconds": it is empty'),
        ({'nodes': [_node('a', seconds={'GPU': 'x'})]
         }, r'"a", field "seconds"\["GPU"\]: it is \'x\''),
        ({'nodes': [_node('a', seconds=float('nan'))]
         }, r'"a", field "seconds": it is nan'),
        ({'nodes': [_node('a', memory=-4)]}, r'"a", field "memory": it is -4'),
        ({'nodes': [_node('a', memory=True)]
         }, r'"a", field "memory": it is True'),
        ({'nodes': [_node('a', workspace=float('inf'))]
         }, r'"a", field "workspace": it is inf'),
        ({'nodes': [_node('a', outputs=[1, -2])]
         }, r'"a", field "outputs"\[1\]: it is -2'),
        ({'nodes': [_node('a', outputs=1e30)]
         }, r'"a", field "outputs": 1e\+30'),
        ({'nodes': [_node('a', flops='many')]}, r'"a", field "flops": it is'),
        ({'nodes': [_node('a', gpu='no')]}, r'"a", field "gpu": it is \'no\''),
        ({'nodes': [_node('a', cpu=False, gpu=False)]
         }, r'"a".*no device is left'),
        ({'nodes': [_node('a', device='TPU:0')]
         }, r'"a", field "device": it is'),
        ({'nodes': [_node('a', device=0)]}, r'"a", field "device": it is 0'),
        # An Arabic 1, which int() takes.
        ({'nodes': [_node('a', device='GPU:\u0661')]
         }, r'"a", field "device": it'),
        ({'nodes': [_node('a\ud800')]
         }, r'name: it is .*, which cannot be printed'),
        ({'nodes': [_node('a\x1b[31m')]}, r'name: it is .*, which cannot be'),
        ({'nodes': [_node('a')], 'name': 'a\nb'}, r'name: it is .*cannot be'),
        ({'nodes': [_node('a', op='\u202e')]
         }, r'op.*: it is .*cannot be printed'),
        ({'nodes': [_node('a', seconds=1e308)]
         }, r'1e\+308 is more than can be'),
        ({'nodes': [_node('a', colocate=1.5)]}, r'"a", field "colocate"'),
        ({'nodes': [_node('a', op='')]}, r'"a", field "op"'),
        ({'nodes': [_node('a', memmory=1)]
         }, r'node "a": unknown field "memmory". Did you mean "memory"'),
        ({'nodes': _nodes('a'), 'edgs': []}, r'"edgs". Did you mean "edges"'),
        ({'nodes': _nodes('a'), 'schema': 'gdp-graph/2'}, r'schema: it is'),
        ({'nodes': _nodes('a'), 'name': 3}, r'name: it is 3'),
        ({'nodes': _nodes('a'), 'defaults': {'name': 'b'}}, r'defaults: names'),
        ({'nodes': _nodes('a', 'b'), 'edges': [['a', 'bb']]
         }, r'edges\[0\], field "to": there is no node "bb". Did you mean "b"'),
        ({'nodes': _nodes('a', 'b'), 'edges': [{'to': 'b'}]
         }, r'edges\[0\], field "from": it is missing'),
        ({'nodes': _nodes('a', 'b'), 'edges': [['a']]}, r'edges\[0\]: it is'),
        ({'nodes': _nodes('a', 'b'), 'edges': ['ab']}, r'edges\[0\]: it is'),
        ({'nodes': _nodes('a', 'b'), 'edges': [['a', 'b', -1]]
         }, r'edges\[0\], field "bytes": it is -1'),
        ({
            'nodes': [_node('a', outputs=[1]),
                      _node('b')],
            'edges': [{'from': 'a', 'to': 'b', 'output': 1}]
        }, r'field "output": it is 1, but the number of outputs of "a" is 1'),
        ({
            'nodes': [_node('a', outputs=[1]),
                      _node('b')],
            'edges': [{'from': 'a', 'to': 'b', 'output': 0, 'bytes': 2}]
        }, r'edges\[0\], field "bytes": it is 2 but output 0 of "a" has 1'),
        ({
            'nodes': _nodes('a', 'b'),
            'edges': [{'from': 'a', 'to': 'b', 'output': -1}]
        }, r'edges\[0\], field "output": it is -1'),
        ({'nodes': _nodes('a', 'b'), 'control_edges': [['a', 'b', 3]]
         }, r'control_edges\[0\]: it is'),
        ({
            'nodes': _nodes('a', 'b'),
            'edges': [{'from': 'a', 'to': 'b', 'bytes': 3, 'control': True}]
        }, r'a control edge carries nothing'),
        ({
            'nodes': _nodes('a', 'b', 'c'), 'edges': [['a', 'b'], ['b', 'c'],
                                                      ['c', 'b']]
        }, r'edges: they form a cycle, ("b" -> "c" -> "b"|"c" -> "b" -> "c")'),
        ({'nodes': _nodes('a'), 'control_edges': [['a', 'a']]
         }, r'cycle, "a" -> "a"')
    ])
def test_what_is_wrong_is_said_with_file_and_field(fields, said):
  with pytest.raises(errors.InvalidGraphError, match=said) as raised:
    _read(**fields)
  message = str(raised.value)
  assert message.startswith('g.json: ') and '\n' not in message


@pytest.mark.parametrize(
    'text, said',
    [('{"nodes": [', 'not JSON: Expecting value: line 1 column 12'),
     ('{"nodes": [], "nodes": []}', '"nodes" appears twice'),
     ('[]', 'JSON but no graph'), ('{"devices": {}}', 'JSON but no graph'),
     ('{"nodes": "\xff', 'not JSON')])
def test_what_is_no_graph(text, said):
  """The message named the page 'Docs/graph_json.md', which does not exist."""
  with pytest.raises(errors.InvalidGraphError, match=said) as raised:
    graph_json.read('g.json', text.encode('latin1'))
  assert 'The page docs/graph_json.md' in str(raised.value)


def test_the_example_of_the_message_is_a_graph():
  with pytest.raises(errors.InvalidGraphError) as raised:
    graph_json.read('g.json', b'{}')
  example = re.search('such as (.*?)[.] The page', str(raised.value))[1]
  graph, _ = graph_json.read('g.json', example.encode())
  assert graph.names == ('a', 'b') and graph.edges.tolist() == [[0, 1]]

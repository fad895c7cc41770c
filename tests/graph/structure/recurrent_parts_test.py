import re

import numpy as np
import pytest

from gdp_grappler.graph.structure import coordinates
from gdp_grappler.graph.structure import recurrent_parts
from helpers import graphs
from helpers import recurrent


def _layer_parts(graph, masked=False):
  """Of each kernel."""
  known = recurrent.labels(graph, masked)
  held = np.isin(graph.op_types, ['VarHandleOp', 'Const'])
  found = recurrent_parts.layer_parts(graph, ~held, held, **known)
  return {
      re.sub(r'step\d+/', '', graph.names[op]).replace('mask', 'h').replace(
          'h/h', 'h'):
          int(found[variable]) for op, variable in enumerate(known['variable'])
      if variable >= 0
  }


_EXPECTED = {
    'layer0/ahead/x': 0,
    'layer0/ahead/h': 1,
    'layer0/ahead/y': 0,
    'layer0/back/x': 2,
    'layer0/back/h': 3,
    'layer0/back/y': 2,
    'layer1/above/x': 0,
    'layer1/above/h': 1,
    'layer1/above/y': 0,
    'layer2/logits': 0,
}


@pytest.mark.parametrize('steps', [4, 5, 12])
@pytest.mark.parametrize('options', [{}, {'gates': 4}, {'masked': True}],
                         ids=str)
def test_chains_and_what_feeds_them(steps, options):
  graph = recurrent.two_readers(steps, options=recurrent.Options(**options))
  assert _layer_parts(graph, 'masked' in options) == _EXPECTED


@pytest.mark.parametrize('steps', [6, 12])
def test_what_collects_all_steps_joins_no_chains(steps):
  graph = recurrent.two_readers(steps,
                                options=recurrent.Options(collected=True))
  assert _layer_parts(graph) == _EXPECTED


def test_inputs_may_be_constant():
  graph = recurrent.two_readers(6)
  types = tuple('Const' if kind in ('Placeholder', 'Fill') else kind
                for kind in graph.op_types)
  assert _layer_parts(graph.replace(op_types=types)) == _EXPECTED


@pytest.mark.parametrize('steps', [3, 6])
def test_a_state_that_all_later_ones_need_is_on_a_chain(steps):
  graph = recurrent.two_readers(steps,
                                options=recurrent.Options(looks_back=True))
  found = _layer_parts(graph)
  assert {name for name, part in found.items() if part % 2
         } == {name for name in _EXPECTED if name.endswith('/h')}


@pytest.mark.parametrize('steps', [1, 2])
def test_of_fewer_than_three_steps_nothing_is_told(steps):
  assert not any(
      s % 2 for s in _layer_parts(recurrent.two_readers(steps)).values())


def test_an_input_that_two_readers_share_is_no_chain():
  # As where the same dropout of one step is used by both: the input of a step
  # hangs on another step of the layer, but on no chain.
  graph = recurrent.two_readers(6)
  last = [
      op for op, name in enumerate(graph.names)
      if name.startswith('layer0/back') and name.endswith('/x')
  ]
  shared = graph.names.index('layer0/ahead/step0/x')
  edges = [
      (*edge, size)
      for edge, size in zip(graph.edges.tolist(), graph.edge_bytes.tolist())
  ]
  edges += [(shared, last[3], 10)]
  changed = graphs.make_graph(edges, graph.num_ops, names=graph.names,
                              op_types=graph.op_types,
                              param_bytes=graph.param_bytes.tolist(),
                              flops=graph.flops.tolist())
  found = _layer_parts(changed)
  assert {found['layer0/back/x'], found['layer0/ahead/x']} == {0, 2}
  assert found['layer0/back/h'] == found['layer0/back/x'] + 1


def test_what_has_no_layer_or_time_is_on_no_chain():
  graph = recurrent.two_readers(4)
  for name in ('layer', 'segment'):
    nowhere = np.full(graph.num_ops, -1)
    known = recurrent.labels(graph)
    found = recurrent_parts.layer_parts(graph, np.ones(graph.num_ops, bool),
                                        np.zeros(graph.num_ops, bool),
                                        **{**known, name: nowhere})
    assert not found.any() and len(found) == known['variable'].max() + 1


def test_no_variables():
  graph = graphs.chain(3)
  none = np.full(graph.num_ops, -1)
  assert recurrent_parts.layer_parts(graph, none < 0, none > 0, none, none,
                                     none).tolist() == []


def _naive_before(graph, inside, layer, segment):
  """int [N], changes of time on a path to each op, one op after the other."""
  edges = [
      (a, b)
      for (a,
           b), tensor in zip(graph.edges.tolist(), graph.edge_tensors.tolist())
      if tensor >= 0 and inside[a] and inside[b] and layer[a] == layer[b]
  ]
  result = np.zeros(graph.num_ops, int)
  for op in graph.topological_order.tolist():
    for a, b in edges:
      if b == op:
        result[b] = max(result[b], result[a] + (segment[a] != segment[b]))
  return result


@pytest.mark.parametrize('seed', range(12))
def test_changes_of_time_as_counted_one_by_one(seed):
  graph = graphs.random_graph(seed, 40)
  rng = np.random.default_rng(seed)
  layer, segment = (rng.integers(-1, n, graph.num_ops) for n in (2, 4))
  forward = rng.random(graph.num_ops) < .9
  inside = forward & (layer >= 0) & (segment >= 0)
  found = recurrent_parts._Layers(graph, forward, layer, segment)
  assert found.before.tolist() == _naive_before(graph, inside, layer,
                                                segment).tolist()


def test_coordinates_say_layer_parts():
  graph = recurrent.two_readers(6)
  found = coordinates.of(graph)
  products = [
      op for op, name in enumerate(graph.names)
      if '/step4/' in name and name[-2:] in ('/x', '/h')
  ]
  assert [found['layer_part'][op] for op in products] == [0, 1, 2, 3, 0, 1]

import numpy as np
import pytest

from gdp_grappler.graph.structure import coordinates
from gdp_grappler.graph.structure import recurrence
from helpers import graphs
from helpers import recurrent


def _strands(graph, **changed):
  """By what the product of the last step is called."""
  known = {**recurrent.labels(graph), **changed}
  forward = np.array([kind != 'VarHandleOp' for kind in graph.op_types])
  found = recurrence.strands(graph, forward, known['layer'], known['segment'],
                             known['variable'])
  return {
      name.replace(f'step{int(known["segment"].max())}/', ''):
          int(found[known['variable'][op]])
      for op, name in enumerate(graph.names)
      if graph.op_types[op] == 'MatMul' and
      known['segment'][op] == known['segment'].max()
  }


@pytest.mark.parametrize('steps', [4, 5, 12])
def test_chains_and_what_feeds_them(steps):
  assert _strands(recurrent.two_readers(steps)) == {
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


def test_a_single_step_has_no_chain():
  assert {*_strands(recurrent.two_readers(1)).values()} == {0}


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
  found = _strands(changed)
  assert {found['layer0/back/x'], found['layer0/ahead/x']} == {0, 2}
  assert found['layer0/back/h'] == found['layer0/back/x'] + 1


def test_what_has_no_layer_or_time_is_on_no_chain():
  graph = recurrent.two_readers(4)
  for name in ('layer', 'segment'):
    nowhere = np.full(graph.num_ops, -1)
    known = recurrent.labels(graph)
    found = recurrence.strands(graph, np.ones(graph.num_ops, bool),
                               **{**known, name: nowhere})
    assert not found.any() and len(found) == known['variable'].max() + 1


def test_no_variables():
  graph = graphs.chain(3)
  none = np.full(graph.num_ops, -1)
  assert recurrence.strands(graph, np.ones(graph.num_ops, bool), none, none,
                            none).tolist() == []


def _naive_before(graph, inside, layer, segment):
  """int [N], changes of time on a path to each op, one op after the other."""
  edges = [
      (a, b)
      for (a,
           b), tensor in zip(graph.edges.tolist(), graph.edge_tensors.tolist())
      if tensor >= 0 and inside[a] and inside[b] and layer[a] == layer[b]
  ]
  needs = {}
  for a, b in edges:
    if segment[a] != segment[b]:
      needs.setdefault(a, set()).add(segment[b])
  result = np.zeros(graph.num_ops, int)
  for op in graph.topological_order.tolist():
    for a, b in edges:
      if b == op and (segment[a] == segment[b] or len(needs[a]) <= 2):
        result[b] = max(result[b], result[a] + (segment[a] != segment[b]))
  return result


@pytest.mark.parametrize('seed', range(12))
def test_changes_of_time_as_counted_one_by_one(seed):
  graph = graphs.random_graph(seed, 40)
  rng = np.random.default_rng(seed)
  layer, segment = (rng.integers(-1, n, graph.num_ops) for n in (2, 4))
  forward = rng.random(graph.num_ops) < .9
  inside = forward & (layer >= 0) & (segment >= 0)
  found = recurrence._Layers(graph, forward, layer, segment)
  assert found.before.tolist() == _naive_before(graph, inside, layer,
                                                segment).tolist()


def test_coordinates_say_strands():
  graph = recurrent.two_readers(6)
  found = coordinates.of(graph)
  products = [
      op for op, name in enumerate(graph.names)
      if '/step4/' in name and name[-2:] in ('/x', '/h')
  ]
  assert [found['strand'][op] for op in products] == [0, 1, 2, 3, 0, 1]

import types

import numpy as np

from gdp_grappler.placers.plans import layer_order
from gdp_grappler.placers.plans import layers
from helpers import graphs

# Names of layers. Each has two ops: a variable, and the output of the layer.
_NAMES = ['join', 'tower_2', 'tower_0', 'tower_1', 'top']


def _graph(edges, reads=()):
  """Layers of a variable and an output.

  Args:
    edges: Pairs of layers; the second one reads the output of the first one.
    reads: Pairs of layers; the second one reads the variable of the first one.
  """
  names = [f'{name}/{part}' for name in _NAMES for part in ('read', 'x')]
  pairs = [(2 * i, 2 * i + 1) for i in range(len(_NAMES))]
  pairs += [(2 * a + 1, 2 * b + 1) for a, b in edges]
  pairs += [(2 * a, 2 * b + 1) for a, b in reads]
  # A scope with scalars alone would count as an optimizer.
  return graphs.make_graph([(*pair, 40) for pair in pairs], names=names)


def _ordered(graph, numbers=()):
  """Names of the layers in order; `numbers` are those of their arguments."""
  nodes = [
      types.SimpleNamespace(name=f'{name}/read', op='_Arg',
                            attr={'index': types.SimpleNamespace(i=number)})
      for name, number in zip(_NAMES, numbers) if number >= 0
  ]
  source = types.SimpleNamespace(graph_def=types.SimpleNamespace(node=nodes))
  given = [
      layers.Layer(name, np.array([2 * i, 2 * i + 1]), np.array([], int), ())
      for i, name in enumerate(_NAMES)
  ]
  order = layer_order.LayerOrder(graph, source if numbers else None)
  return [layer.name for layer in order.of(given)]


_TOWERS = [(1, 0), (2, 0), (3, 0), (0, 4)]


def test_layers_beside_one_another_are_in_the_order_of_their_variables():
  """The order was once that of Grappler's sort: tower_2 before tower_0."""
  assert _ordered(_graph(_TOWERS), [-1, 4, 0, 2, 6]) == [
      'tower_0', 'tower_1', 'tower_2', 'join', 'top'
  ]


def test_without_arguments_layers_are_in_the_order_of_the_graph():
  assert _ordered(_graph(_TOWERS),
                  [-1] * 5) == ['tower_2', 'tower_0', 'tower_1', 'join', 'top']


def test_layers_that_read_one_another_begin_with_the_first_used():
  graph = _graph([(1, 2), (2, 3)], reads=[(2, 1)])
  assert _ordered(graph, [9, 4, 0, 2, 6]) == [
      'top', 'join', 'tower_0', 'tower_1', 'tower_2'
  ]


def test_a_layer_without_variables_is_next_to_what_it_reads():
  assert _ordered(_graph([
      (2, 0)
  ]), [-1, 4, 0, 2, 6]) == ['tower_0', 'join', 'tower_1', 'tower_2', 'top']


def test_no_loss_stands_before_layers_that_read_one_another():
  """If layers formed a cycle, a loss without variables once came first."""
  graph = _graph([(1, 2), (2, 3), (3, 0)], reads=[(2, 1)])
  assert _ordered(graph, [-1, 4, 0, 2, 6]) == [
      'top', 'tower_0', 'tower_1', 'join', 'tower_2'
  ]

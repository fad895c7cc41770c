import re

import pytest

from gdp_grappler.placers.plans import planned
from helpers import graphs
from helpers import problems

_NAMES = [
    'w', 'net_1/a_1/read', 'net_1/a_1/MatMul', 'net_1/b_1/MatMul', 'loss',
    'gradient_tape/net_1/a_1/MatMul', 'sgd/mul', 'assign', 'batch', 'metric'
]


def _step():
  """A step with a variable of layer a, which the optimizer updates."""
  return graphs.make_graph([(0, 1, 0), (1, 2, 64), (8, 2, 32), (2, 3, 32),
                            (3, 4, 32), (4, 5, 32), (2, 5, 32), (5, 6, 64),
                            (0, 7, 0), (6, 7, 64), (4, 9, 32)], names=_NAMES,
                           groups=[0, 0, 1, 2, 3, 4, 5, 0, 6, 7],
                           **graphs.variables([64, 0, 0, 0, 0, 0, 0, 0, 0, 4]))


def _notes(graph, *layers):
  return planned.place(layers, problems.make(graph)).notes


@pytest.mark.parametrize('layers, said', [
    ((('a', 'GPU:1'),), '3 ops by layer; 4 variables, slots and updates with '
     'their layers; 3 in no layer of the map, which are where TensorFlow puts '
     'them'),
    ((('*', 'GPU:0'), ('a', 'GPU:1')), '3 ops by layer; 4 variables, slots and '
     'updates with their layers; 3 by "*"'),
])
def test_every_op_is_in_one_count(layers, said):
  """The notes once counted 6 ops by layer, and not the other 70."""
  notes = _notes(_step(), *layers)
  assert '; '.join(notes) == said
  assert sum(int(re.match(r'\d+', note)[0]) for note in notes) == len(_NAMES)


def test_notes_of_one_op_are_in_the_singular():
  """A note once said "1 variables, slots and updates"."""
  graph = graphs.make_graph([(0, 1, 0),
                             (1, 2, 64)], names=['w', 'net_1/a_1/read', 'loss'],
                            groups=[0, 0, 1], param_bytes=[64, 0, 0])
  assert _notes(
      graph,
      ('a', 'GPU:1')) == ('1 op by layer',
                          '1 variable, slot or update with its layer',
                          '1 in no layer of the map, which is where TensorFlow '
                          'puts it')


def test_an_optimizer_that_is_named_is_no_update_of_others():
  first, second, _ = _notes(_step(), ('sgd', 'GPU:1'))
  assert first == '1 op by layer' and second.startswith('3 variables')


def test_layers_that_share_a_variable_are_named():
  graph = graphs.make_graph([(0, 1, 0), (0, 2, 0), (1, 3, 64), (2, 4, 64)],
                            names=['words', 'a/read', 'b/read', 'a/x',
                                   'b/x'], groups=[0, 0, 0, 1, 2],
                            param_bytes=[64, 0, 0, 0, 0])
  *_, said = _notes(graph, ('a', 'GPU:0'), ('b', 'GPU:1'))
  assert said.startswith('Warning: "a" and "b" share "words"')


def test_a_variable_in_a_map_is_told_from_a_layer():
  """Once the note asked whether an op was meant."""
  graph = _step()
  graph = graph.replace(variables=('a/kernel', *[''] * (graph.num_ops - 1)))
  notes = _notes(graph, ('b', 'GPU:0'), ('a/kernel', 'GPU:1'))
  assert notes[3].startswith('Warning: no op is in "a/kernel"')
  assert notes[3].endswith('; "a/kernel" is a variable, so give its layer, "a"')

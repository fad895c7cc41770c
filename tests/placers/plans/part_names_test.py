import dataclasses

import keras
import pytest
import tf_keras

import gdp_grappler
from gdp_grappler.placers.plans import part_names
from gdp_grappler.placers.plans import planned
from helpers import graphs
from helpers import word_tables

# Names of ops and variables of a table in two parts, as Keras 3 makes them.
_NAMES = {
    'arg_0': 'net/words/embeddings_part_0',
    'arg_1': 'net/words/embeddings_part_1', 'net_1/words_1/Gather': '',
    'net_1/words_1/Gather_1': '', 'net_1/words_1/concat': '',
    'gradient_tape/net_1/words_1/Gather_1/Reshape': '', 'adam/Sub': '',
    'arg_2': 'adam/net_words_embeddings_part_1_momentum',
    'net_1/words_1/Gather_10': '', 'net_1/out': ''
}
_EDGES = [(0, 2, 8), (1, 3, 8), (2, 4, 64), (3, 4, 64), (4, 5, 64), (5, 6, 64),
          (1, 6, 8), (7, 6, 8), (8, 4, 64), (4, 9, 64)]


def _graph(names):
  kinds = ['_Arg' if name.startswith('arg_') else 'Gather' for name in names]
  graph = graphs.make_graph(
      _EDGES, names=list(names), op_types=kinds,
      param_bytes=[256 if kind == '_Arg' else 0 for kind in kinds])
  return dataclasses.replace(graph, variables=tuple(names.values()))


def test_ops_of_a_part_have_its_variable_as_a_scope():
  names = dict(zip(_NAMES, part_names.of(_graph(_NAMES))))
  assert names['net_1/words_1/Gather'].endswith(
      'words_1/embeddings_part_0/Gather')
  assert names['net_1/words_1/Gather_1'].endswith(
      'words_1/embeddings_part_1/Gather_1')
  assert names['gradient_tape/net_1/words_1/Gather_1/Reshape'].endswith(
      'words_1/embeddings_part_1/Gather_1/Reshape')
  for whole in ('net_1/words_1/concat', 'adam/Sub', 'arg_2',
                'net_1/words_1/Gather_10'):
    assert names[whole] == whole


def test_an_evaluation_has_parts_although_all_its_ops_update_a_tracker():
  """A map once moved the products of a part only in `fit`."""
  names = {
      'arg_0': 'net/words/embeddings_part_0', 'arg_1': 'loss/total',
      'net_1/words_1/Gather': '', 'net_1/out': '', 'Assign': ''
  }
  graph = graphs.make_graph(
      [(0, 2, 8), (2, 3, 64), (3, 4, 4), (1, 4, 8)], names=list(names),
      op_types=['_Arg', '_Arg', 'Gather', 'Sum', 'AssignAddVariableOp'],
      groups=[0, 1, 2, 3, 1], param_bytes=[256, 4, 0, 0, 0])
  graph = dataclasses.replace(graph, variables=tuple(names.values()))
  assert part_names.of(graph)[2] == 'net_1/words_1/embeddings_part_0/Gather'


def test_without_parts_names_are_as_they_were():
  whole = {name: owner.replace('_part_', '_') for name, owner in _NAMES.items()}
  assert part_names.of(_graph(whole)) == tuple(_NAMES)


@pytest.mark.parametrize('api', [keras, tf_keras])
def test_a_map_moves_a_part_with_slots_gradients_and_products(api):
  """Only `relocate` could once move a part."""

  def make():
    model = word_tables.model(api, 2, 64, 4, 3, 32)
    model.compile('adam', 'mse')
    return model

  layers = {
      'words': 'CPU:0', 'words/embeddings_part_1': 'GPU:1',
      'head/kernel_part_0': 'GPU:1'
  }
  plan = gdp_grappler.place(make, '2xP100', plan=layers, verbose=False)
  labels = plan.placement.cluster.device_labels
  on = [labels[device] for device in plan.placement.devices]
  for part, device in (('embeddings_part_0', 'CPU:0'), ('embeddings_part_1',
                                                        'GPU:1'),
                       ('kernel_part_0', 'GPU:1'), ('kernel_part_1', 'GPU:0')):
    held = [
        where for where, name in zip(on, plan.graph.variables) if part in name
    ]
    assert len(held) == 3 and set(held) == {device}
  names = part_names.of(plan.graph)
  products = [
      where for where, name, kind in zip(on, names, plan.graph.op_types)
      if kind == 'MatMul' and '/kernel_part_0/' in name
  ]
  # The product, and its gradients by the weight and by the input.
  assert products == ['GPU:1'] * 3
  found = plan.layer_map()
  parts = {
      name.rpartition('/')[2]: found[name] for name in found if '_part_' in name
  }
  assert parts == {
      'embeddings_part_0': 'CPU:0', 'embeddings_part_1': 'GPU:1',
      'kernel_part_0': 'GPU:1', 'kernel_part_1': 'GPU:0'
  }
  again = planned.place(tuple(found.items()), plan.step.problem())
  held = plan.graph.param_bytes > 0
  assert (again.placement.devices == plan.placement.devices)[held].all()

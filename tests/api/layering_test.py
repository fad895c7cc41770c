"""Tests of tables by layer, and of maps of layers."""

import pathlib

import numpy as np
import pytest

import gdp_grappler
from gdp_grappler.api import layering
from gdp_grappler.api import placed_step
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.placers import step as step_lib
from gdp_grappler.placers.plans import layers
from gdp_grappler.reports import units
from helpers import clusters
from helpers import graphs

_GRAPH = pathlib.Path(__file__).parents[1] / 'testdata/dense_train_step.pb'


@pytest.fixture(scope='module')
def placed():
  """A small model, layer by layer."""
  return gdp_grappler.place(_GRAPH, '2xP100', plan={'dense': 'GPU:1'})


def test_rows_add_up_to_the_step(placed):
  rows = placed.layers
  assert sum(row.ops for row in rows) == placed.graph.num_ops
  schedule = placed.fifo_schedule
  assert sum(row.seconds for row in rows) == pytest.approx(
      float((schedule.end_s - schedule.start_s).sum()))
  assert (sum(row.cut_tensors for row in rows),
          sum(row.cut_bytes for row in rows)) == placed.placement.cut(
              placed.graph)
  held = placed.graph.param_bytes.sum()
  assert 0 < sum(row.parameter_bytes for row in rows) <= held
  assert sum(row.memory_bytes for row in rows) > held


def test_a_map_gives_the_plan_that_it_is_of(placed):
  found = placed.layer_map()
  assert found['dense'] == 'GPU:1'
  assert {'GPU:0', 'GPU:1'} <= set(found.values())
  again = gdp_grappler.place(_GRAPH, '2xP100', plan=found)
  np.testing.assert_array_equal(again.placement.devices,
                                placed.placement.devices)
  assert again.layer_map() == found


def test_an_edited_map_is_obeyed(placed):
  edited = {layer: 'GPU:0' for layer in placed.layer_map()}
  together = gdp_grappler.place(_GRAPH, '2xP100', plan=edited)
  assert not together.placement.counts()['GPU:1']
  assert set(together.layer_map().values()) == {'GPU:0'}


def test_the_table_is_shown_in_terminals_and_notebooks(placed):
  row = next(row for row in placed.layers if row.name == 'dense')
  for shown in (placed.summary(), placed._repr_html_()):
    for text in ('dense', 'parameters', units.ms(row.seconds)):
      assert text in shown


def test_a_notebook_marks_warnings_as_a_terminal_does():
  """Once a warning looked like a remark below the table."""
  graph = graphs.make_graph([(0, 1, 8)], param_bytes=[1 << 60, 0])
  cluster = clusters.make_cluster(2)
  placed = placed_step.PlacedStep(
      None, step_lib.Step(graph, cluster, None, clusters.FixedCosts(1e-3)),
      placement_lib.Placement(np.array([1, 1]), cluster), 'made')
  assert placed.warnings
  for shown in (placed.summary(), placed._repr_html_()):
    assert f'warning: {placed.warnings[0]}' in shown


def _layering(names, devices, **changes):
  """Returns the layering of layers with one variable each.

  Args:
    names: [L], names of the layers.
    devices: [L], devices of layers, or [3 L], devices of the variable, its read
      and a product of each layer.
    **changes: Changed fields of the graph.
  """
  count = len(names)
  edges = [
      edge for i in range(count)
      for edge in ((3 * i, 3 * i + 1, 8), (3 * i + 1, 3 * i + 2, 40))
  ]
  # Layers with only scalar tensors would look like parts of the optimizer.
  edges += [(3 * i + 2, 3 * i + 5, 40) for i in range(count - 1)]
  graph = graphs.make_graph(
      edges, names=[
          f'{name}/{part}' for name in names for part in ('kernel', 'read', 'x')
      ], op_types=['VarHandleOp', 'ReadVariableOp', 'MatMul'] * count,
      param_bytes=[64, 0, 0] * count,
      groups=[2 * i + j for i in range(count) for j in (0, 0, 1)])
  graph = graph.replace(**changes)
  cluster = clusters.make_cluster(2)
  placed = placed_step.PlacedStep(
      None, step_lib.Step(graph, cluster, None, clusters.FixedCosts(1e-3)),
      placement_lib.Placement(np.repeat(devices, graph.num_ops // len(devices)),
                              cluster), 'made')
  return layering.Layering(graph, placed.placement, placed.fifo_schedule)


def test_layers_of_a_kind_on_one_device_are_one_row():
  found = _layering([f'block_{i}' for i in range(8)], [1] * 4 + [2] * 4)
  assert [row.label for row in found.folded()
         ] == ['block_0 to block_3 (4)', 'block_4 to block_7 (4)']
  assert [row.layers for row in found.folded()] == [4, 4]
  assert len(found.rows) == 8
  assert sum(row.parameter_bytes for row in found.folded()) == 8 * 64


def test_a_few_layers_are_told_apart_and_many_are_not():
  found = _layering(['a', 'b', 'c', 'd'], [1, 1, 2, 2])
  assert [row.label for row in found.folded()] == ['a', 'b', 'c', 'd']
  assert [row.label for row in found.folded(most=3)
         ] == ['a to b (2)', 'c to d (2)']


def test_what_is_elsewhere_is_counted():
  row = layering.LayerRow('a', '', 1, 'GPU:0', 5, {'CPU:0': 2}, 0, 0, 0., 0, 0)
  assert row.where == 'GPU:0, 60 %'
  assert row.with_next(row).elsewhere == {'CPU:0': 4}


def test_layers_inside_a_spread_layer_have_rows_and_full_names_where_needed():
  """The short name 'dense' would also match the encoder's layer."""
  names = ['encoder/dense', 'encoder/out', 'dense']
  found = _layering(names, [1, 2, 2])
  assert [row.name for row in found.rows] == names
  assert found.as_map() == {
      'encoder/dense': 'GPU:0', 'encoder/out': 'GPU:1', 'dense': 'GPU:1'
  }
  together = _layering(names, [1, 1, 2])
  assert [row.name for row in together.rows] == ['encoder', 'dense']


def test_one_place_for_all_ops(placed):
  assert layers.of(placed.graph) is layers.of(placed.graph)


def test_a_loss_with_scalar_variables_does_not_hide_the_layers_of_a_model():
  """Once a model with two outputs had one row, as its loss has variables."""
  names = ['net/low', 'net/high', 'compile_loss']
  found = _layering(names, [1, 1, 2], param_bytes=[64, 0, 0, 64, 0, 0, 4, 0, 0])
  assert list(found.as_map()) == ['low', 'high', 'compile_loss']


def test_only_names_that_mean_others_as_well_are_longer_in_a_map():
  """Once all names were longer, and edits by a short name had no effect."""
  found = _layering(['net_1/a', 'net_1/b', 'net_1/c/a', 'net_1/c/d'],
                    [1, 2, 1, 1])
  assert [row.name for row in found.rows] == ['a', 'b', 'c']
  assert found.as_map() == {
      'net_1/a': 'GPU:0', 'b': 'GPU:1', 'net_1/c': 'GPU:0'
  }


def test_the_map_of_a_plan_that_keeps_numbers_keeps_them():
  """Once a layer's products went to the CPU, as most of the layer was there."""
  same = np.tile([[True, True], [True, True], [False, True]], (2, 1))
  devices = [0, 0, 1, 1, 1, 1]
  found = _layering(['a', 'b'], devices, same_numbers=same)
  assert [row.device for row in found.rows] == ['CPU:0', 'GPU:0']
  assert found.as_map() == {'a': 'GPU:0', 'b': 'GPU:0'}
  found = _layering(['a', 'b'], devices, same_numbers=same, may_round=True)
  assert found.as_map() == {'a': 'CPU:0', 'b': 'GPU:0'}


def test_what_is_outside_of_the_model_has_no_slash_before_its_name():
  """Once a map had the name '/mean_squared_error'."""
  found = _layering(['net_1/a', 'net_1/body/loss', 'net_1/body/o', 'loss'],
                    [1, 1, 1, 2], op_types=[
                        *['VarHandleOp', 'ReadVariableOp', 'MatMul'] * 3,
                        'Const', 'Identity', 'MatMul'
                    ], param_bytes=[*[64, 0, 0] * 3, 0, 0, 0])
  assert found.as_map() == {
      'a': 'GPU:0', 'net_1/body': 'GPU:0', 'loss': 'GPU:1'
  }


def test_parameters_have_moving_averages_and_no_slots():
  """Once a batch normalization had half of the parameters in Keras."""
  names = [
      'kernel', 'mean', 'slot', 'net/norm/read', 'net/norm/mul', 'net/norm/sub',
      'net/norm/Assign', 'gradient_tape/net/norm/mul/Mul', 'adam/sub',
      'adam/Assign', 'adam/Assign_1', 'net/loss'
  ]
  graph = graphs.make_graph([(0, 3, 0), (3, 4, 40), (4, 5, 40), (1, 5, 0),
                             (5, 6, 40), (1, 6, 0), (4, 11, 40), (4, 7, 40),
                             (7, 8, 40), (2, 8, 0), (8, 9, 40), (2, 9, 0),
                             (8, 10, 40), (0, 10, 0)], names=names, op_types=[
                                 '_Arg', '_Arg', '_Arg', 'ReadVariableOp',
                                 'Mul', 'Sub', 'AssignSubVariableOp', 'Mul',
                                 'Sub', 'AssignAddVariableOp',
                                 'AssignSubVariableOp', 'Sum'
                             ], groups=[0, 1, 2, 0, 3, 4, 1, 5, 6, 2, 0, 7],
                            param_bytes=[40, 40, 40, *[0] * 9])
  cluster = clusters.make_cluster(2)
  placed = placed_step.PlacedStep(
      None, step_lib.Step(graph, cluster, None, clusters.FixedCosts(1e-3)),
      placement_lib.Placement(np.ones(graph.num_ops, int), cluster), 'made')
  assert [(row.name, row.parameter_bytes) for row in placed.layers
          if row.parameter_bytes] == [('norm', 80)]

"""Tests of `explain`."""

import json
import pathlib
import re

import numpy as np
import pytest

import gdp_grappler
from gdp_grappler import digests
from gdp_grappler import errors
from gdp_grappler.api import placed_step
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.placers import step as step_lib
from helpers import clusters
from helpers import graphs

_GRAPH = pathlib.Path(__file__).parents[1] / 'testdata/dense_train_step.pb'


def _placed(graph, devices, seconds=1.):
  """Returns a placed step whose ops take `seconds` on each device."""
  cluster = clusters.make_cluster(2)
  step = step_lib.Step(graph, cluster, None, clusters.FixedCosts(seconds))
  return placed_step.PlacedStep(
      None, step, placement_lib.Placement(np.array(devices), cluster), 'test')


@pytest.fixture(scope='module')
def placed():
  """A real graph."""
  return gdp_grappler.place(_GRAPH, '2xP100', placer='metis')


def _why(plan, pattern='*'):
  return {
      re.split(', for it|; it may', op.why)[0]
      for op in gdp_grappler.explain(plan, pattern).ops if op.kind == 'free'
  }


def test_who_chose_is_a_map_of_layers(tmp_path):
  # Once the reason named "the placer", which had chosen nothing.
  plan = gdp_grappler.place(_GRAPH, '2xP100', plan={'dense_1': 'GPU:1'})
  product = '*/dense_1_2/MatMul'
  assert _why(plan,
              product) == {'is free: the map of layers has "dense_1" there'}
  # The kernel has no name of a layer, but follows it.
  assert _why(plan) == {
      'is free: the map of layers has "dense_1" there',
      'is free: the map of layers has "dense_1" there, which it belongs to',
      'is free: no layer of the map has it, and TensorFlow puts it there',
      'is free: no layer of the map has it, and it is with its neighbours'
  }


def test_a_plan_file_knows_which_ops_its_map_named(tmp_path):
  """Once all ops were said to be chosen by a map of layers."""
  plan = gdp_grappler.place(_GRAPH, '2xP100', plan={'dense_1': 'GPU:1'})
  path, again = tmp_path / 'plan.json', tmp_path / 'again.json'
  plan.save(path)
  read = gdp_grappler.load_plan(path, _GRAPH)
  assert len(_why(read)) > 1
  assert _why(read) == _why(plan)
  read.save(again)
  assert again.read_bytes() == path.read_bytes()
  # The map names a device that this cluster lacks.
  fields = json.loads(path.read_text())
  fields['layers'] = {'dense_1': 'GPU:7'}
  path.write_text(json.dumps(digests.sealed(fields)))
  assert _why(gdp_grappler.load_plan(
      path, _GRAPH)) == {'is free: a map of layers chose'}


def test_who_chose_in_a_plan_is_the_placer_until_it_is_edited(tmp_path, placed):
  path = tmp_path / 'plan.json'
  placed.save(path)
  assert json.loads(path.read_text())['placed_by'] == 'metis'
  read = gdp_grappler.load_plan(path, _GRAPH)
  assert _why(read) == _why(placed) == {'is free: the placer chose'}
  read.save(path)
  fields = json.loads(path.read_text())
  assert fields['placed_by'] == 'metis'
  fields['graph'] = 'mine'
  path.write_text(json.dumps(fields))
  assert _why(gdp_grappler.load_plan(path,
                                     _GRAPH)) == {'is free: the plan says so'}


def test_moving_an_op_by_hand():
  # 100 bytes take 1 + 1 s on a link; each op takes 1 s.
  explanation = gdp_grappler.explain(_placed(graphs.chain(3), [1, 2, 1]), 'op1')
  op, = explanation.ops
  assert (op.name, op.device, op.kind, op.group_ops) == ('op1', 'GPU:1', 'free',
                                                         1)
  assert (op.start_s, op.end_s, op.on_critical_chain) == (3., 4., True)
  assert explanation.step_time_s == 7
  moves = {move.device: move for move in explanation.elsewhere}
  assert set(moves) == {'CPU:0', 'GPU:0'}
  assert moves['GPU:0'].step_time_s == 3 and moves['GPU:0'].change_s == -4
  assert moves['GPU:0'].cut_tensors == 0
  assert (moves['CPU:0'].change_s, moves['CPU:0'].cut_bytes) == (0, 200)
  assert [
      (cut.op, cut.source, cut.target, cut.seconds) for cut in explanation.sent
  ] == [('op0', 'GPU:0', 'GPU:1', 2.), ('op1', 'GPU:1', 'GPU:0', 2.)]


def test_a_pattern_moves_all_it_means():
  explanation = gdp_grappler.explain(_placed(graphs.chain(4), [1, 1, 2, 2]),
                                     'op[23]')
  assert [op.name for op in explanation.ops] == ['op2', 'op3']
  together = {m.device: m for m in explanation.elsewhere}['GPU:0']
  assert (together.step_time_s, together.groups) == (4., 2)


def test_variables_are_found_and_called_by_their_paths():
  graph = graphs.chain(3).replace(variables=('net/dense/kernel', '', ''))
  placed = _placed(graph, [1, 2, 1])
  for pattern in ('net/dense/kernel', 'dense', '*/kernel'):
    explanation = gdp_grappler.explain(placed, pattern)
    assert [op.name for op in explanation.ops] == ['op0']
    assert str(explanation).startswith('net/dense/kernel [op0] (')
  assert 'net/dense/kernel [op0]' in explanation._repr_html_()
  moved = gdp_grappler.diff(placed, _placed(graph, [2, 2, 1]))
  assert 'net/dense/kernel [op0]' in str(moved)


def test_texts_are_narrow_and_names_without_what_all_begin_with():
  scope = 'StatefulPartitionedCall/a_model_with_quite_a_long_name/tower_1/'
  graph = graphs.chain(3)
  graph = graph.replace(names=tuple(
      f'{scope}residual_block_{i}/convolution_of_the_second_kind/Conv2D'
      for i in range(3)))
  placed = _placed(graph, [1, 2, 1])
  moved = gdp_grappler.diff(placed, _placed(graph, [2, 1, 1]))
  for shown in (gdp_grappler.explain(placed, '*'), moved):
    lines = str(shown).splitlines()
    assert max(map(len, lines)) <= 80
    together = ''.join(str(shown).split())
    assert together.count(scope) == 1
    assert 'Leftoutbelow,atthebeginningofnames:' + scope in together
    assert scope + graph.names[0][len(scope):] in shown.to_json()
  one = str(gdp_grappler.explain(placed, graph.names[1]))
  assert graph.names[1] in ''.join(one.split())


def test_a_scope_means_all_that_is_in_it():
  names = ['net/left/a', 'net/left/b', 'net/right/c']
  placed = _placed(graphs.chain(3, names=names), [1, 1, 1])
  for pattern in ('left', 'left/*', 'net/left', 'net/left/*'):
    assert [op.name for op in gdp_grappler.explain(placed, pattern).ops
           ] == names[:2]


def test_what_may_not_move_is_not_priced():
  graph = graphs.chain(2, pins=['GPU:1', ''], user_pins=[True, False],
                       groups=[0, 0])
  explanation = gdp_grappler.explain(_placed(graph, [2, 2]), 'op1')
  assert explanation.elsewhere == ()
  assert explanation.ops[0].kind == 'colocation'
  assert explanation.ops[0].why == (
      'shares a device with op0 (a co-location group of the graph file), which '
      'is pinned to GPU:1 by the graph')


def test_only_what_does_not_wait_is_off_the_chain():
  graph = graphs.make_graph([(0, 2, 1), (1, 2, 1)])
  explanation = gdp_grappler.explain(
      _placed(graph, [1, 2, 1], seconds=np.array([1., 9., 1.])), '*')
  assert [op.on_critical_chain for op in explanation.ops] == [False, True, True]


def test_all_of_it_is_json(placed):
  fields = json.loads(gdp_grappler.explain(placed, '*MatMul*').to_json())
  assert fields['simulated'] and len(fields['ops']) > 1
  assert all('MatMul' in op['name'] for op in fields['ops'])
  assert {op['device'] for op in fields['ops']
         } <= set(placed.step.cluster.device_labels)


def test_a_real_graph_is_explained(placed, capsys):
  explanation = gdp_grappler.explain(placed, '*')
  kinds = {op.kind for op in explanation.ops}
  assert {'free', 'stays'} <= kinds
  for op in explanation.ops:
    assert op.device == placed.devices[op.name]
    if op.kind == 'stays':
      assert 'stays where it is: ' in op.why
  explanation.show()
  out = capsys.readouterr().out
  assert f'... and {placed.graph.num_ops - 20} more ops' in out
  assert '<table>' in explanation._repr_html_()
  assert repr(explanation).startswith('<Explanation of ')
  assert '\n' not in repr(explanation)


def test_a_notebook_says_which_tensors_it_leaves_out():
  """Once a notebook did not say that it showed 10 of 29 tensors."""
  explanation = gdp_grappler.explain(_placed(graphs.chain(30), [1, 2] * 15),
                                     '*')
  assert '... and 19 more tensors' in explanation._repr_html_()


@pytest.mark.parametrize('pattern, said', [
    ('op7', r'is called "op7"\. Give a name, .* The heaviest: "'),
    ('x/op', 'Did you mean "op1" or "op0"'),
    ('', 'is called ""'),
    ('op', 'No op or layer of graph "test" is called "op"'),
])
def test_unknown_names_get_one_line(pattern, said):
  with pytest.raises(errors.GdpError, match=said):
    gdp_grappler.explain(_placed(graphs.chain(2), [1, 1]), pattern)


def test_a_misspelt_layer_is_told():
  """Once only names of ops were compared."""
  graph = graphs.chain(2, names=['net/tower/sum', 'net/mul'])
  with pytest.raises(errors.GdpError,
                     match=r'is called "towr" \(did you mean "tower"\?\)\.$'):
    gdp_grappler.explain(_placed(graph, [1, 1]), 'towr')


def test_a_pattern_that_is_no_text():
  with pytest.raises(errors.GdpError, match='pattern is None; give a text'):
    gdp_grappler.explain(_placed(graphs.chain(2), [1, 1]), None)

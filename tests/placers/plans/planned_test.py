import json

import numpy as np
import pytest

from gdp_grappler import errors
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.cluster import plan
from gdp_grappler.placers.plans import misfits
from gdp_grappler.placers.plans import planned
from helpers import clusters
from helpers import graphs
from helpers import problems

_NAMES = [
    'w', 'net_1/a_1/read', 'net_1/a_1/MatMul', 'net_1/b_1/MatMul', 'loss',
    'gradient_tape/net_1/a_1/MatMul', 'sgd/mul', 'assign', 'batch', 'metric'
]


def _step(**fields):
  """A step with a variable of layer a, which the optimizer updates."""
  arguments = dict(names=_NAMES, groups=[0, 0, 1, 2, 3, 4, 5, 0, 6, 7],
                   **graphs.variables([64, 0, 0, 0, 0, 0, 0, 0, 0, 4]),
                   flops=[0, 0, 9, 9, 0, 9, 0, 0, 0, 0])
  return graphs.make_graph([(0, 1, 0), (1, 2, 64), (8, 2, 32), (2, 3, 32),
                            (3, 4, 32), (4, 5, 32), (2, 5, 32), (5, 6, 64),
                            (0, 7, 0), (6, 7, 64), (4, 9, 32)],
                           **(arguments | fields))


def _placed(asked, graph, **fields):
  found = planned.place(asked, problems.make(graph, **fields))
  assert not found.placement.violations(graph)
  labels = found.placement.cluster.device_labels
  return ({
      name: labels[device]
      for name, device in zip(graph.names, found.placement.devices.tolist())
  }, found.origin)


def _file(tmp_path, graph, devices, priorities=None):
  path = str(tmp_path / 'plan.json')
  plan.save(
      path, graph,
      placement_lib.Placement(devices, clusters.make_cluster(2), priorities))
  return path


def test_gradients_updates_and_variables_follow_their_layer():
  on, origin = _placed((('a', 'GPU:1'), ('b', 'GPU:0')), _step())
  assert {
      on[name]
      for name in ('w', 'net_1/a_1/read', 'net_1/a_1/MatMul',
                   'gradient_tape/net_1/a_1/MatMul', 'sgd/mul', 'assign')
  } == {'GPU:1'}
  # Ops in no layer of the map are where TensorFlow puts them.
  assert on['net_1/b_1/MatMul'] == on['loss'] == on['batch'] == 'GPU:0'
  assert origin == ('the map of layers (4 ops by layer; 4 variables, slots and '
                    'updates with their layers; 2 in no layer of the map, '
                    'which are where TensorFlow puts them)')


def test_a_default_is_for_layers_and_not_for_the_updates_of_others():
  on, _ = _placed((('', 'GPU:0'), ('a', 'GPU:1')), _step())
  assert on['sgd/mul'] == on['assign'] == 'GPU:1'
  assert on['batch'] == on['loss'] == on['net_1/b_1/MatMul'] == 'GPU:0'


def test_the_rest_is_on_the_first_gpu_where_nobody_said_where_it_was():
  """All ops once followed the one layer of the map to the CPU."""
  on, _ = _placed((('b', 'CPU:0'),), _step())
  assert on.pop('net_1/b_1/MatMul') == 'CPU:0'
  assert set(on.values()) == {'GPU:0'}


def test_a_pattern_for_layers_does_not_take_the_optimizer_of_others():
  """The pattern 'a*' also matched Adam's scope, and moved all variables."""
  names = [name.replace('sgd', 'adam') for name in _NAMES]
  names[7] = 'adam/assign'
  names[2], names[3] = 'net_1/b_1/MatMul', 'net_1/a_1/MatMul'
  names[1], names[5] = 'net_1/b_1/read', 'gradient_tape/net_1/b_1/MatMul'
  on, _ = _placed((('a*', 'GPU:0'), ('b*', 'GPU:1')), _step(names=names))
  assert on['w'] == on['adam/mul'] == on['adam/assign'] == 'GPU:1'
  assert on['net_1/a_1/MatMul'] == 'GPU:0'


def test_an_optimizer_may_be_named_alone():
  on, origin = _placed((('sgd', 'GPU:1'),), _step())
  assert on['sgd/mul'] == 'GPU:1' and '1 op by layer' in origin


def test_a_map_in_a_file(tmp_path):
  path = tmp_path / 'map.json'
  path.write_text(json.dumps({'a': 'GPU:1', 'b': 'GPU:0'}))
  on, _ = _placed(str(path), _step())
  assert on == _placed((('a', 'GPU:1'), ('b', 'GPU:0')), _step())[0]
  assert planned.may_round(str(path))


def test_a_default_is_not_for_sums_of_gradients():
  names = [
      'net/b/MatMul', 'net/a/MatMul', 'gradient_tape/net/a/MatMul',
      'StatefulPartitionedCall/AddN_1', 'gradient_tape/net/a/Mul'
  ]
  graph = graphs.make_graph(
      [(0, 1, 64), (1, 2, 64), (2, 3, 64), (3, 4, 64)], names=names,
      op_types=['MatMul', 'MatMul', 'MatMul', 'AddN', 'Mul'])
  on, _ = _placed((('*', 'GPU:0'), ('a', 'GPU:1')), graph)
  assert [on[name] for name in names] == ['GPU:0'] + ['GPU:1'] * 4


def test_a_default_is_for_layers_that_hold_their_weights_themselves():
  """In a graph with its own costs, the default once had no effect."""
  graph = graphs.chain(4, names=['a/x', 'b/x', 'c/x', 'd/x'], param_bytes=64)
  on, notes = _placed((('a', 'GPU:0'), ('*', 'GPU:1')), graph)
  assert [on[name] for name in graph.names] == ['GPU:0'] + ['GPU:1'] * 3
  assert notes == 'the map of layers (1 op by layer; 3 by "*")'


def test_slots_follow_and_a_learning_rate_draws_no_update():
  # The update w -= rate * gradient + slot, as Keras' optimizers compute it.
  graph = graphs.make_graph([(0, 1, 64), (1, 2, 64), (3, 2, 4), (2, 4, 64),
                             (5, 4, 64), (4, 6, 64), (5, 6, 0), (6, 7, 64),
                             (0, 7, 0)], names=[
                                 'w', 'net/a/MatMul', 'sgd/mul', 'rate',
                                 'sgd/sub', 'slot', 'sgd/assign_slot', 'assign'
                             ], groups=[0, 1, 2, 3, 4, 5, 5, 0],
                            **graphs.variables([64, 0, 0, 4, 0, 64, 0, 0]))
  on, _ = _placed((('a', 'GPU:1'),), graph)
  assert {on[name] for name in graph.names if name != 'rate'} == {'GPU:1'}


def test_the_value_of_a_loss_is_where_tensorflow_puts_it():
  """The loss of tf_keras once followed the targets to the CPU.

  There it rounded differently.
  """
  names = [
      'w', 'net_1/a_1/MatMul', 'batch', 'mse/SquaredDifference', 'mse/Mean',
      'metric', 'gradient_tape/mse/Mul', 'gradient_tape/net_1/a_1/MatMul',
      'sgd/assign'
  ]
  graph = graphs.make_graph([(0, 1, 64), (2, 1, 32), (1, 3, 32), (2, 3, 32),
                             (3, 4, 32), (4, 5, 4), (1, 6, 32), (2, 6, 32),
                             (6, 7, 32), (2, 7, 32), (7, 8, 64), (0, 8, 0)],
                            names=names, groups=[0, 1, 2, 3, 4, 5, 6, 7, 0],
                            **graphs.variables([64, 0, 0, 0, 0, 4, 0, 0, 0]),
                            pins=['', '', 'CPU:0', *[''] * 6])
  on, _ = _placed((('a', 'GPU:1'),), graph)
  assert on['batch'] == 'CPU:0'
  assert on['mse/SquaredDifference'] == on['mse/Mean'] == 'GPU:0'


def test_a_variable_of_a_layer_is_said_to_be_of_it():
  """The op has another name, so the reason was once that no layer has it."""
  graph = _step().replace(variables=('net/a/kernel',) + ('',) * 9)
  chosen = planned.place((('a', 'GPU:1'),), problems.make(graph)).chosen
  assert chosen[0] == 'the map of layers has "a" there, which it belongs to'
  assert chosen[4] == (
      'no layer of the map has it, and TensorFlow puts it there')


def test_a_default_is_no_reason_for_what_follows_a_layer():
  """The reason was once that the op may not be on the device of '*'."""
  graph = _step().replace(variables=('net/a/kernel',) + ('',) * 9)
  problem = problems.make(graph)
  for default in '*', '':
    found = planned.place(((default, 'GPU:0'), ('a', 'GPU:1')), problem)
    reason = dict(zip(graph.names, found.chosen, strict=True))
    assert reason['w'] == (
        'the map of layers has "a" there, which it belongs to')
    assert reason['sgd/mul'] == (
        'no layer of the map has it, and it is with its neighbours')
    assert reason['loss'] == f'the map of layers has "{default}" there'


def test_where_an_op_may_not_be_is_the_reason():
  types = np.ones((10, 2), bool)
  types[[4, 9], 1] = False
  found = planned.place((('*', 'GPU:1'), ('loss', 'GPU:1')),
                        problems.make(_step(allowed_types=types)))
  assert found.chosen[4] == ('the map of layers has "loss" on another device, '
                             'where this op or its group may not be')
  assert found.chosen[9] == ('the map of layers has "*" on another device, '
                             'where this op or its group may not be')


def test_a_layer_that_shares_the_group_of_a_larger_one_has_this_reason():
  """The reason was once that the op may not be on a device that is legal."""
  graph = graphs.make_graph([(0, 1, 64)], 2, names=['a/x', 'b/y'],
                            groups=[0, 0])
  found = planned.place((('a', 'GPU:0'), ('b', 'GPU:1')), problems.make(graph))
  assert found.chosen == ('the map of layers has "a" there',
                          'the map of layers has "b" on another device, but '
                          'other ops of its group decide')


def test_layers_that_are_not_named_stay():
  device = clusters.make_cluster(2).device_names[1]
  on, _ = _placed((('b', 'GPU:1'),), _step(devices=[device] * 10))
  assert on.pop('net_1/b_1/MatMul') == 'GPU:1'
  assert set(on.values()) == {'GPU:0'}


def test_a_default_alone_is_for_all():
  on, _ = _placed((('*', 'GPU:1'),), _step())
  assert set(on.values()) == {'GPU:1'}


def test_a_variable_that_stays_is_told():
  graph = _step(pins=['GPU:0'] + [''] * 9)
  on, origin = _placed((('a', 'GPU:1'), ('b', 'GPU:1')), graph)
  assert on['w'] == on['net_1/a_1/read'] == on['assign'] == 'GPU:0'
  assert on['sgd/mul'] == 'GPU:0'
  assert on['net_1/a_1/MatMul'] == 'GPU:1'
  assert '1 op stays with its variable' in origin


def test_an_op_that_cannot_be_there_is_told():
  types = np.ones((10, 2), bool)
  types[4, 1] = False
  _, origin = _placed((('loss', 'GPU:1'),), _step(allowed_types=types))
  assert ('1 cannot be on the wanted device, such as "loss", which is on CPU:0'
          in origin)


def test_what_nobody_knows_stays():
  graph = graphs.make_graph([(0, 1, 8)], 3, names=['a/x', 'a/y', 'z'],
                            devices=[clusters.make_cluster(2).device_names[2]]
                            * 3)
  on, _ = _placed((('a', 'GPU:0'),), graph)
  assert on == {'a/x': 'GPU:0', 'a/y': 'GPU:0', 'z': 'GPU:1'}


def test_an_idle_pattern_is_told():
  _, origin = _placed((('a', 'GPU:1'), ('bb', 'GPU:0')), _step())
  assert 'Warning: no op is in "bb"' in origin


def test_a_map_for_other_models():
  with pytest.raises(misfits.DoesNotFitError,
                     match='no op is in "bb" .* or in "net/c"'):
    _placed((('', 'GPU:0'), ('bb', 'GPU:1'), ('net/c', 'GPU:0')), _step())


def test_a_device_that_is_not_there():
  with pytest.raises(errors.PlanError, match='puts "a" .* "GPU:7" is not in'):
    _placed((('a', 'GPU:7'),), _step())


def test_a_file_is_obeyed(tmp_path):
  graph, devices = _step(), [1, 1, 2, 0, 1, 2, 2, 1, 0, 1]
  on, origin = _placed(_file(tmp_path, graph, devices), graph)
  labels = clusters.make_cluster(2).device_labels
  assert list(on.values()) == [labels[device] for device in devices]
  assert origin == f'plan {tmp_path / "plan.json"} (10 ops by name)'


def test_priorities_come_along(tmp_path):
  graph = _step()
  path = _file(tmp_path, graph, [0] * 10, np.arange(10.))
  found = planned.place(path, problems.make(graph))
  assert found.placement.priorities.tolist() == list(range(10))


def test_the_same_model_traced_again(tmp_path):
  path = _file(tmp_path, _step(), [1, 1, 2, 0, 1, 2, 2, 1, 0, 1],
               np.arange(10.))
  again = _step(names=[
      'unknown_3', 'net/a/read', 'net/a/MatMul', 'net/b/MatMul', 'loss_4',
      'gradient_tape/net/a/MatMul', 'sgd/mul_2', 'assign', 'batch', 'metric'
  ])
  on, origin = _placed(path, again)
  assert on['net/a/MatMul'] == 'GPU:1' and on['net/b/MatMul'] == 'CPU:0'
  assert on['unknown_3'] == on['assign'] == 'GPU:0'
  assert '3 ops by name, 6 by name with other numbers, 1 not named' in origin
  assert planned.place(path, problems.make(again)).placement.priorities is None


def test_the_second_model_of_a_program(tmp_path):
  """Keras 3 gives the second model, `net_1`, the scope 'net_1_1'."""
  path = _file(tmp_path, _step(), [1, 1, 2, 0, 1, 2, 2, 1, 0, 1])
  on, origin = _placed(
      path, _step(names=[name.replace('net_1', 'net_1_1') for name in _NAMES]))
  assert on['net_1_1/a_1/MatMul'] == 'GPU:1'
  assert on['net_1_1/b_1/MatMul'] == 'CPU:0'
  assert '6 ops by name, 4 by name with other numbers' in origin


def test_names_that_mean_several_devices_are_not_guessed(tmp_path):
  graph = graphs.chain(3, names=['d_1/x', 'd_2/x', 'y'], flops=1.)
  path = _file(tmp_path, graph, [1, 2, 2])
  on, _ = _placed(
      path, graphs.chain(4, names=['d/x', 'd_2/x', 'y', 'd_3/x'], flops=1.))
  assert on == {name: 'GPU:1' for name in ('d/x', 'd_2/x', 'y', 'd_3/x')}


def test_the_same_model_made_again(tmp_path):
  """In the second fold of a loop, layers on two devices were not found."""
  graph = graphs.chain(3, names=['m/d/x', 'm/d_1/x', 'm/y'], flops=1.)
  path = _file(tmp_path, graph, [1, 2, 0])
  names = ['m_1/d_2/x', 'm_1/d_3/x', 'm_1/y']
  on, _ = _placed(path, graphs.chain(3, names=names, flops=1.))
  assert [*on.values()] == ['GPU:0', 'GPU:1', 'CPU:0']


@pytest.mark.parametrize('flops, share, work', [([1, 1, 1, 1], '25%', '25%'),
                                                ([9, 1, 1, 1], '25%', '75%')])
def test_a_plan_for_another_graph(tmp_path, flops, share, work):
  path = _file(tmp_path, graphs.chain(2, names=['a', 'b']), [1, 2])
  with pytest.raises(
      misfits.DoesNotFitError,
      match=f'made for "test" and knows {share} of the ops and {work} of'):
    _placed(path, graphs.chain(4, names=['a', 'x', 'y', 'z'], flops=flops))


def test_few_heavy_ops_do_not_make_a_graph(tmp_path):
  path = _file(tmp_path, graphs.chain(3, names=['a', 'b', 'c']), [1, 2, 0])
  with pytest.raises(misfits.DoesNotFitError, match='10% of the FLOPs'):
    _placed(path, graphs.chain(4, names=['a', 'b', 'c', 'z'],
                               flops=[1, 0, 0, 9]))


def test_a_file_with_a_device_that_is_not_there(tmp_path):
  path = _file(tmp_path, _step(), [0] * 10)
  with open(path, encoding='utf-8') as file:
    fields = json.load(file)
  fields['devices']['w'] = 'GPU:9'
  with open(path, 'w', encoding='utf-8') as file:
    json.dump(fields, file)
  with pytest.raises(errors.PlanError, match='cannot place "w"'):
    _placed(path, _step())


@pytest.mark.parametrize('seed', range(5))
def test_any_wishes_give_a_legal_placement(tmp_path, seed):
  graph = graphs.random_graph(seed, 60)
  random = np.random.default_rng(seed)
  types = np.ones((60, 2), bool)
  types[random.random(60) < .2, 1] = False
  graph = graph.replace(allowed_types=types)
  path = _file(tmp_path, graph, random.integers(0, 3, 60))
  _placed(path, graph)
  _placed((('op1*', 'GPU:1'), ('op2*', 'GPU:0'), ('op3', 'CPU:0')), graph)

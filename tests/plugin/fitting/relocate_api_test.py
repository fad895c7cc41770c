import json
import types

import keras
import numpy as np
import pytest
import tensorflow as tf
import tf_keras

import gdp_grappler
from gdp_grappler import errors
from gdp_grappler import variable_scopes
from gdp_grappler.cluster import local_devices
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.plugin.fitting import relocate_api
from helpers import clusters
from helpers import graphs

_NAMES = [f'/job:localhost/replica:0/task:0/device:CPU:{i}' for i in range(3)]


@pytest.fixture
def moved(monkeypatch):
  """The variables that would move. This process has only one device."""
  result = []
  monkeypatch.setattr(
      relocate_api.variable_moves, 'move', lambda wanted: result.extend(
          (v.name, d[-5:]) for v, d in wanted))
  from tensorflow.python.eager import context
  monkeypatch.setattr(context.Context, 'devices', lambda self: _NAMES)
  return result


@pytest.fixture
def variables():
  return [
      tf.Variable(1., name=name)
      for name in ('encoder/kernel', 'decoder/kernel', 'decoder/bias')
  ]


def test_one_device_for_all(variables, moved):
  assert gdp_grappler.relocate(variables, 'CPU:1') == 3
  assert [device for _, device in moved] == ['CPU:1'] * 3


@pytest.mark.parametrize('make', [
    lambda: tf.Variable(1., name='x'),
    lambda: tf.Variable([1., 2.], name='x'),
    lambda: keras.Variable([1., 2.], name='x'),
])
def test_one_variable_by_itself(moved, make):
  """Once the rows of the variable were taken for variables."""
  variable = make()
  assert gdp_grappler.relocate(variable, 'CPU:1') == 1
  assert [device for _, device in moved] == ['CPU:1']


@pytest.mark.parametrize('given', [
    None, 'abc', b'abc', {'a': 1}, {'a': tf.Variable}, 3, [1], ['abc'],
    tf.constant(1.),
    tf.constant([1.]), keras.Model,
    types.SimpleNamespace(variables=[1]), [types.SimpleNamespace()],
    tf.data.Dataset.range(1).repeat()
], ids=lambda given: type(given).__name__)
def test_what_has_no_variables_is_refused(moved, given):
  with pytest.raises(errors.InfeasiblePlacementError, match='is no variable'):
    gdp_grappler.relocate(given, 'CPU:1')
  assert not moved


@pytest.mark.parametrize('plan', [None, ['CPU:0'], 3, b'CPU:0'], ids=repr)
def test_what_is_no_plan_is_refused(variables, moved, plan):
  with pytest.raises(errors.PlanError, match='is no plan'):
    gdp_grappler.relocate(variables, plan)
  assert not moved


def test_those_that_are_there_do_not_count(variables, moved):
  assert gdp_grappler.relocate(variables, '/device:CPU:0') == 0
  assert moved == []


@pytest.mark.parametrize('device', ['CPU:0', 'CPU:1'])
def test_variables_of_the_user_do_not_go_back_when_the_option_goes_off(
    variables, moved, device):
  """Once any option of TensorFlow's optimizer moved the variables back."""
  moves = relocate_api.variable_moves
  for variable in variables:  # As if `fit` had moved them.
    moves._moved[id(variable)] = variable
    moves._homes[id(variable)] = _NAMES[2]
  gdp_grappler.relocate(variables[:2], device)
  assert [moves.was_moved(v) for v in variables] == [False, False, True]
  moves.settle(variables)
  del moved[:]
  assert moves.move_back() == 0 and not moved


def test_what_no_gpu_can_hold_stays_with_a_line(moved, monkeypatch):
  """Once an error came after some variables had moved."""
  names = [*_NAMES, _NAMES[0].replace('CPU', 'GPU')]
  from tensorflow.python.eager import context
  monkeypatch.setattr(context.Context, 'devices', lambda self: names)
  lines = []
  monkeypatch.setattr(relocate_api.notices, 'say', lines.append)
  variables = [tf.Variable(1., name='weight'), tf.Variable(0, name='count')]
  assert gdp_grappler.relocate(variables, 'GPU:0') == 1
  assert moved == [('weight:0', 'GPU:0')]
  assert len(lines) == 1 and '1 of 2 variables stay' in lines[0]
  assert gdp_grappler.relocate(variables, 'CPU:1') == 2
  assert len(lines) == 1


def test_names_and_patterns_in_their_order(variables, moved):
  plan = {'decoder/bias': 'CPU:2', 'decoder/*': 'CPU:1'}
  assert gdp_grappler.relocate(variables, plan) == 2
  assert moved == [('decoder/kernel:0', 'CPU:1'), ('decoder/bias:0', 'CPU:2')]


def _built(library):
  """A built model and its optimizer."""
  model = library.Sequential([
      library.Input((4,)) if library is keras else library.layers.InputLayer(
          (4,)),
      library.layers.Dense(3, name='encoder'),
      library.layers.Dense(2, name='decoder')
  ])
  optimizer = library.optimizers.Adagrad()
  optimizer.build(model.trainable_variables)
  return model, optimizer


@pytest.mark.parametrize('plan', [{'decoder':
    'CPU:1'}, {'decoder/*': 'CPU:1', 'relu': 'CPU:2'}, {'*decoder*': 'CPU:1'}])
@pytest.mark.parametrize('library', [keras, tf_keras])
def test_maps_of_layers_as_the_option_takes_them_and_slots(
    library, plan, moved):
  """Once no variable of a Sequential was called "decoder/*"."""
  assert gdp_grappler.relocate(_built(library), plan) == 4
  assert len(moved) == 4
  assert all('decoder' in name and device == 'CPU:1' for name, device in moved)


def test_slots_follow_their_variable_and_scalars_of_optimizers_stay(moved):
  model, optimizer = _built(keras)
  assert gdp_grappler.relocate(optimizer, {'decoder': 'CPU:1'}) == 2
  assert gdp_grappler.relocate([optimizer], 'CPU:2') == 4
  assert gdp_grappler.relocate(model, 'CPU:2') == 4
  assert not any('rate' in name or 'iteration' in name for name, _ in moved)


def test_what_place_returned(moved):
  """Once this raised: expected str, bytes or os.PathLike object."""
  model, optimizer = _built(keras)

  @tf.function
  def step(x):
    with tf.GradientTape() as tape:
      loss = tf.reduce_sum(model(x)**2)
    optimizer.apply(tape.gradient(loss, model.trainable_variables))

  plan = gdp_grappler.place(step, local_devices.local_cluster(_NAMES),
                            signature=(tf.zeros((2, 4)),),
                            plan={'decoder': 'CPU:1'}, tell=[].append)
  assert gdp_grappler.relocate([model, optimizer], plan) == 4
  assert all('decoder' in name and device == 'CPU:1' for name, device in moved)


class _BuiltByItsFirstCall(keras.Model):

  def __init__(self):
    super().__init__(name='net')
    self.lower = keras.layers.Dense(3, name='lower')
    self.upper = keras.layers.Dense(3, name='upper')

  def call(self, inputs):
    return self.upper(self.lower(inputs))


def test_layers_of_a_subclassed_model_go_to_their_own_devices(moved):
  """Once all kernels were called "net/kernel" and went to one device."""
  variable_scopes.watch()
  model = _BuiltByItsFirstCall()
  model(tf.zeros((2, 4)))
  plan = gdp_grappler.place(tf.function(lambda x: model(x)),
                            local_devices.local_cluster(_NAMES),
                            signature=(tf.zeros((2, 4)),),
                            plan={'lower': 'CPU:1',
                                  'upper': 'CPU:2'}, tell=[].append)
  assert {'net/lower/kernel', 'net/upper/kernel'} <= set(plan.graph.variables)
  assert gdp_grappler.relocate(model, plan) == 4
  assert [device for _, device in moved] == ['CPU:1'] * 2 + ['CPU:2'] * 2


def test_a_step_without_these_variables_is_refused(variables, moved):
  graph = graphs.make_graph(num_ops=1, names=['other/kernel'], param_bytes=8)
  placed = types.SimpleNamespace(
      graph=graph, placement=placement_lib.Placement(np.zeros(1, int),
                                                     clusters.make_cluster(1)))
  with pytest.raises(errors.PlanError, match='such as "encoder/kernel"'):
    gdp_grappler.relocate(variables, placed)


def test_variables_of_one_name_share_a_device(moved):
  assert gdp_grappler.relocate(
      [tf.Variable(1.), tf.Variable(2.)], {'Variable': 'CPU:1'}) == 2


def test_a_plan_file(variables, moved, tmp_path):
  path = tmp_path / 'plan.json'
  path.write_text(
      json.dumps({
          'format': 'gdp-plan', 'version': 1, 'graph': 'g',
          'fingerprint': '0' * 16, 'cluster': '2xP100',
          'devices': {'encoder/kernel': 'CPU:1', 'encoder/MatMul': 'CPU:1'}
      }))
  assert gdp_grappler.relocate(variables, path) == 1
  assert moved == [('encoder/kernel:0', 'CPU:1')]


def test_unknown_names_are_refused(variables, moved):
  with pytest.raises(errors.PlanError,
                     match='"decoder/kernels". Did you mean "decoder/kernel"'):
    gdp_grappler.relocate(variables, {'decoder/kernels': 'CPU:1'})
  assert moved == []


@pytest.mark.parametrize('device', ['GPU:0', 'nowhere'])
def test_unknown_devices_are_refused(variables, moved, device):
  with pytest.raises(errors.ClusterError):
    gdp_grappler.relocate(variables, device)


def test_variables_of_datasets_are_refused(moved):
  variable = tf.Variable(1.)
  data = tf.data.Dataset.range(3).map(
      lambda x: tf.cast(x, tf.float32) + variable)
  with pytest.raises(errors.InfeasiblePlacementError, match='a dataset reads'):
    gdp_grappler.relocate([variable], 'CPU:1')
  del data


def test_other_objects_are_refused(moved):
  with tf.Graph().as_default():
    variable = tf.compat.v1.get_variable('x', [2])
  with pytest.raises(errors.InfeasiblePlacementError, match='cannot be moved'):
    gdp_grappler.relocate([variable], 'CPU:1')


def test_a_name_is_not_that_of_a_numbered_sibling(moved):
  """Once only the second variable moved."""
  siblings = [tf.Variable(1., name=f'{n}/w') for n in ('stage_1', 'stage_1_1')]
  assert gdp_grappler.relocate(siblings, {'stage_1': 'CPU:1'}) == 1
  assert moved == [('stage_1/w:0', 'CPU:1')]

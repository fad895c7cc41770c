import json

import pytest
import tensorflow as tf

import gdp_grappler
from gdp_grappler import errors
from gdp_grappler.plugin.fitting import relocate_api


@pytest.fixture
def moved(monkeypatch):
  """What would be moved, as this process has one device."""
  result = []
  monkeypatch.setattr(
      relocate_api.variable_moves, 'move', lambda wanted: result.extend(
          (v.name, d[-5:]) for v, d in wanted))
  names = [f'/job:localhost/replica:0/task:0/device:CPU:{i}' for i in range(3)]
  from tensorflow.python.eager import context
  monkeypatch.setattr(context.Context, 'devices', lambda self: names)
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


def test_those_that_are_there_do_not_count(variables, moved):
  assert gdp_grappler.relocate(variables, '/device:CPU:0') == 0
  assert moved == []


def test_names_and_patterns_in_their_order(variables, moved):
  plan = {'decoder/bias': 'CPU:2', 'decoder/*': 'CPU:1'}
  assert gdp_grappler.relocate(variables, plan) == 2
  assert moved == [('decoder/kernel:0', 'CPU:1'), ('decoder/bias:0', 'CPU:2')]


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
  with pytest.raises(errors.InfeasiblePlacementError,
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

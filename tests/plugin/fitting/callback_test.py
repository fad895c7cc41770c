import math
import sys
import types

import pytest
import tensorflow as tf

from gdp_grappler.plugin.fitting import callback
from gdp_grappler.plugin.fitting import course
from gdp_grappler.plugin.fitting import ways


class _Clock:
  now = 0.

  def perf_counter(self):
    self.now += .5
    return self.now


@pytest.fixture
def lines(monkeypatch):
  result = []
  monkeypatch.setattr(callback.notices, 'say', result.append)
  monkeypatch.setattr(callback, 'time', _Clock())
  return result


def _epoch(watched, batches):
  watched.on_epoch_begin(0)
  for batch in batches:
    watched.on_train_batch_end(batch, {'loss': 1.})
  watched.on_epoch_end(0, {})


def _model(report=None):
  function = types.SimpleNamespace(
      **({'report': lambda: report} if report else {}))
  return types.SimpleNamespace(train_function=function)


def test_reports_predicted_and_measured_steps(lines):
  watched = callback.PlacementCallback()
  watched.set_model(
      _model(course.FitReport({'GPU:0': 20, 'GPU:1': 10}, 3, .0125)))
  _epoch(watched, [0, 1, 2])
  report, = watched.epochs
  assert report == callback.EpochReport(0, {'GPU:0': 20, 'GPU:1': 10}, 3, .0125,
                                        .5)
  assert lines == [
      'epoch 1: step GPU:0 20, GPU:1 10 ops, 3 variables moved; predicted '
      '12.5 ms, measured 500 ms'
  ]


def test_a_step_that_went_back_is_measured_beside_its_own_prediction(lines):
  """Once its line had the prediction of the placed step."""
  watched = callback.PlacementCallback()
  watched.set_model(
      _model(course.FitReport({}, predicted_s=.01, predicted_before_s=.02)))
  _epoch(watched, [0, 1])
  assert lines == [
      'epoch 1: step as TensorFlow placed it; predicted 20 ms, measured 500 ms'
  ]


@pytest.mark.parametrize('way, before_s', [
    (ways.FitWay.XLA, .02),
    (ways.FitWay.AS_IT_WAS, math.inf),
])
def test_a_step_with_xla_or_without_memory_has_no_prediction(
    lines, way, before_s):
  watched = callback.PlacementCallback()
  watched.set_model(
      _model(
          course.FitReport({}, predicted_s=.01, predicted_before_s=before_s,
                           way=way.value)))
  _epoch(watched, [0, 1])
  assert 'predicted -, measured' in lines[0]


def test_steps_of_one_call_share_its_time(lines):
  watched = callback.PlacementCallback()
  watched.set_model(_model())
  _epoch(watched, [4, 9])
  assert watched.epochs[0].measured_s == pytest.approx(.1)
  assert 'as TensorFlow placed it' in lines[0]


def test_one_call_alone_is_not_measured(lines):
  watched = callback.PlacementCallback(verbose=False)
  watched.set_model(_model())
  _epoch(watched, [0])
  assert watched.epochs[0].measured_s is None
  assert not lines


def test_tensorboard_gets_what_is_known(lines, tmp_path):
  watched = callback.PlacementCallback(tmp_path)
  watched.set_model(_model(course.FitReport({'GPU:0': 20}, 1, .01)))
  _epoch(watched, [0, 1])
  watched.on_train_end()
  data, = (file.read_bytes() for file in tmp_path.iterdir())
  for name in ('placed_ops', 'moved_variables', 'predicted_step_ms',
               'measured_step_ms'):
    assert f'placement/{name}'.encode() in data


def test_events_need_no_tensorboard(lines, tmp_path, monkeypatch):
  """Once the end of the first epoch raised an error without TensorBoard."""
  for name in ('tensorboard', 'tensorboard.summary', 'tensorboard.summary.v2'):
    monkeypatch.setitem(sys.modules, name, None)
  watched = callback.PlacementCallback(tmp_path)
  watched.set_model(_model(course.FitReport({'GPU:0': 20}, 1, .01)))
  _epoch(watched, [0, 1])
  watched.on_train_end()
  file, = map(str, tmp_path.iterdir())
  found = {
      value.tag: (value.metadata.plugin_data.plugin_name,
                  value.metadata.data_class, tf.make_ndarray(value.tensor))
      for event in tf.compat.v1.train.summary_iterator(file)
      for value in event.summary.value
  }
  assert found['placement/placed_ops'] == ('scalars', 1, 20.)
  assert found['placement/predicted_step_ms'] == ('scalars', 1, 10.)


def test_all_else_of_the_interface_does_nothing():
  watched = callback.PlacementCallback()
  assert watched.on_predict_batch_begin(3, logs={}) is None
  assert not hasattr(watched, 'anything_else')

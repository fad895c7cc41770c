"""Lines about Keras' functions; `e2e` tests the functions themselves."""

import threading
import types

import pytest
import tensorflow as tf
from tensorflow.python.eager import context

from gdp_grappler.plugin import settings as settings_lib
from gdp_grappler.plugin.fitting import keras_function


@pytest.fixture(name='said')
def _said(monkeypatch):
  lines = []
  monkeypatch.setattr(keras_function.notices, 'say', lines.append)
  return lines


def _explained(**kwargs):
  function = keras_function.KerasFunction(lambda step: step, 'fit of "model"',
                                          **{'eager': False, **kwargs})
  function._explain()
  return function


def test_a_graph_that_the_pass_has_not_seen_is_explained(said):
  assert _explained().was_told
  assert said == [
      'fit of "model": left as it was: its graph has fewer than 16 ops and '
      'no pin, or was seen before and keeps its placement, or Grappler failed '
      'before it called the plugin (TensorFlow has then logged an error)'
  ]


def test_what_runs_op_by_op_is_explained(said):
  _explained(eager=True)
  line, = said
  assert 'run_eagerly=True' in line


def test_what_the_program_switched_off_is_named(said, monkeypatch):
  """Once the line said instead that the graph was too small."""
  monkeypatch.setattr(tf.config.optimizer, 'get_experimental_options',
                      lambda: {'disable_meta_optimizer': True})
  _explained()
  monkeypatch.setattr(tf.config, 'functions_run_eagerly', lambda: True)
  _explained()
  assert 'option disable_meta_optimizer' in said[0]
  assert 'tf.config.run_functions_eagerly' in said[1]


def test_ops_do_not_record_the_frames_of_this_package(monkeypatch):
  """Once the error of an op showed them, if Keras traced a step again."""
  monkeypatch.setattr(keras_function.option, 'connect', lambda: True)
  monkeypatch.setattr(keras_function.switch, 'value', lambda _: True)
  step = tf.function(lambda x: x + 1.)
  function = keras_function.KerasFunction(step, 'fit of "model"', False)
  for size in (2, 3):
    function(tf.ones(size))
    graph = step.get_concrete_function(tf.ones(size)).graph
    files = {f.filename for f in graph.get_operations()[-1].traceback}
    assert __file__ in files
    assert not {file for file in files if '/gdp_grappler/' in file}


def test_calls_run_in_this_thread(monkeypatch):
  """Once `fit` ended with an error if execution was asynchronous."""
  ran = []

  def step(batch):
    del batch
    ran.append((context.context().is_async(), threading.current_thread()))

  function = keras_function.KerasFunction(step, 'fit of "model"', False)
  settings = settings_lib.Settings()
  monkeypatch.setattr(keras_function.option, 'connect', lambda: True)
  monkeypatch.setattr(keras_function, '_with_choice', lambda value: settings)
  with context.execution_mode(context.ASYNC):
    function(tf.zeros(1))
    assert context.context().is_async()
  assert ran == [(False, threading.current_thread())]


def test_a_size_that_the_first_call_did_not_know_is_read_later(
    said, monkeypatch):
  """Once a fit after train_on_batch was planned for an assumed size."""
  sizes = []
  function = keras_function.KerasFunction(
      lambda batch: sizes.append(keras_function.batches.current()),
      'fit of "model"', False)
  monkeypatch.setattr(keras_function.option, 'connect', lambda: True)
  monkeypatch.setattr(keras_function, '_with_choice',
                      lambda value: settings_lib.Settings())
  for batch in iter([1]), tf.zeros([200, 3]), iter([1]):
    function(batch)
  assert sizes == [None, 200, 200] and len(said) == 1


def test_an_option_that_was_off_in_between_is_taken_over_again(monkeypatch):
  """Once steps ran by a plan although its variables had moved back."""
  switched = []
  function = keras_function.KerasFunction(lambda step: step, 'fit of "model"',
                                          False)
  monkeypatch.setattr(keras_function.switch, 'value', lambda context: True)
  monkeypatch.setattr(keras_function.option, 'connect', lambda: True)
  monkeypatch.setattr(keras_function, '_with_choice', lambda value: None)
  monkeypatch.setattr(function, '_switch', switched.append)
  for _ in range(2):
    function([1])
  assert len(switched) == 1
  keras_function.switch.note_off()
  for _ in range(2):
    function([1])
  assert len(switched) == 2


def test_what_workers_run_later_is_for_the_pass_to_explain(said):
  """Once the line called a fit on parameter servers too small."""
  assert _explained(scheduled=True).was_told
  assert not said


@pytest.mark.parametrize('fields, is_trained_placed, ran', [
    ({'xla': 'keep'}, True, 'stock'),
    ({'xla': 'off'}, False, 'placeable'),
    ({}, False, 'stock'),
    ({}, True, 'placeable'),
    ({'keep_best': False}, False, 'placeable'),
    ({'guard': False}, True, 'stock'),
])
def test_evaluate_follows_fit_where_keras_chose_xla(fields, is_trained_placed,
                                                    ran):
  function = keras_function.KerasFunction(lambda: 'stock',
                                          'evaluate of "model"', False,
                                          lambda: lambda: 'placeable',
                                          lambda: is_trained_placed)
  function._switch(settings_lib.Settings(**fields))
  assert function._run() == ran
  function._switch(None)
  assert function._xla is None


@pytest.mark.parametrize('fields, why', [
    ({'xla': 'keep'}, "('xla': 'keep')"),
    ({'guard': False}, 'steps are timed only if the guard is on'),
    ({}, 'it is placed if fit has measured that placed steps are faster'),
])
def test_xla_that_stays_is_explained(said, fields, why):
  function = keras_function.KerasFunction(lambda: None, 'evaluate of "model"',
                                          False, lambda: None)
  function._switch(settings_lib.Settings(**fields))
  function._explain()
  line, = said
  assert line.startswith('evaluate of "model": left as it was: XLA compiles it')
  assert why in line


def test_a_loop_whose_steps_xla_compiles_is_left_alone():
  """Once this loop was placed, and then compared with placed steps."""
  stock, placeable = tf.function(tf.square), tf.function(tf.abs)
  function = keras_function.KerasFunction(lambda x: stock(x), 'fit of "model"',
                                          False, lambda: lambda x: placeable(x))
  tasks = []
  for fields in None, {'xla': 'off'}:
    function._switch(fields and settings_lib.Settings(**fields))
    for each in stock, placeable:
      name = each.get_concrete_function(tf.constant(1.)).name.decode()
      tasks.append(function.task(types.SimpleNamespace(graph_id=name)))
  assert tasks == [None, None, keras_function.outcome.leave_alone, None]


@pytest.mark.parametrize('names, is_on', [
    (['/device:CPU:0', '/device:GPU:0'], False),
    (['/device:CPU:0', '/device:GPU:0', '/device:GPU:1'], True),
])
def test_with_one_gpu_it_is_the_function_itself(said, monkeypatch, names,
                                                is_on):
  monkeypatch.setattr(keras_function.devices, 'names', lambda: names)
  monkeypatch.setattr(keras_function.devices.scopes, 'were_used', lambda: False)
  assert bool(keras_function._with_choice(True)) == is_on
  assert keras_function._with_choice(False) is None
  del said


def test_lines_name_the_method_that_the_user_called(said):
  function = keras_function.KerasFunction(lambda step: step, 'fit of "model"',
                                          eager=True)
  function._settings = settings_lib.Settings()

  class Model:

    def train_on_batch(self):
      function._seen = (keras_function.switch.value(
          keras_function.context.context()), keras_function.switch.times_off())
      return function([1])

  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(keras_function.batch_methods, '_METHODS',
                  {'fit': 'train_on_batch'})
    keras_function.batch_methods.watch(Model)
    Model().train_on_batch()
  line, = said
  assert line.startswith('train_on_batch of "model": left as it was')

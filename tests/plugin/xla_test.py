import inspect
import types

import pytest
import tensorflow as tf
from tensorflow.python.eager.polymorphic_function import polymorphic_function

from gdp_grappler import stack_room
from gdp_grappler.plugin import settings
from gdp_grappler.plugin import xla


def _keras():
  """A module such as that of Keras 3's trainer."""

  class Trainer:
    compiled = False
    jit_compile = None

    def compile(self, optimizer='sgd', jit_compile='auto'):
      self.compiled = True
      self.jit_compile = jit_compile and jit_compile != 'never'

    def compile_from_config(self, config):
      self.compile(**config)

  module = types.SimpleNamespace(Trainer=Trainer)
  xla._wrap_compile(module)
  return module


@pytest.mark.parametrize('arguments, chosen', [({}, True),
                                               ({'jit_compile': 'auto'}, True),
                                               ({'jit_compile': True}, False),
                                               ({'jit_compile': False}, False)])
def test_only_auto_is_the_choice_of_keras(arguments, chosen):
  model = _keras().Trainer()
  model.compile('adam', **arguments)
  assert xla.chosen_by_keras(model) == chosen


def test_the_last_compile_counts():
  model = _keras().Trainer()
  model.compile()
  model.compile('adam', True)
  assert not xla.chosen_by_keras(model)


def test_a_loaded_model_counts_as_one_for_which_keras_chose():
  """Once no loaded model was placed, because "auto" is stored as True."""
  model = _keras().Trainer()
  model.compile_from_config({'jit_compile': True})
  assert xla.chosen_by_keras(model)
  model.compile(jit_compile=True)
  assert not xla.chosen_by_keras(model)


def test_a_loaded_model_without_xla_stays_without():
  model = _keras().Trainer()
  model.compile_from_config({'jit_compile': False})
  assert not xla.chosen_by_keras(model)


def test_models_that_were_never_compiled_are_resolved_by_keras():
  model = _keras().Trainer()
  model.jit_compile = True
  assert xla.chosen_by_keras(model)


def test_models_of_keras_2_say_what_they_want():
  assert not xla.chosen_by_keras(types.SimpleNamespace(jit_compile=True))


def test_wraps_once():
  module = _keras()
  wrapped = module.Trainer.compile
  xla._wrap_compile(module)
  assert module.Trainer.compile is wrapped


def test_a_module_that_is_half_imported_is_left_alone():
  xla._wrap_compile(types.SimpleNamespace())


def test_traces_have_room_on_the_stack(monkeypatch):
  """Once a trace took a sixth longer because its stack was deeper."""
  function = polymorphic_function.Function
  # Restores what `watch_functions` changes.
  monkeypatch.setattr(function, '_initialize',
                      inspect.unwrap(function._initialize))
  told, traced, made = [], [], []
  stock = stack_room.call
  monkeypatch.setattr(
      stack_room, 'call', lambda called, *arguments, **named:
      (made.append(called.__name__), stock(called, *arguments, **named))[1])
  xla.watch_functions(told.append, traced.append)
  assert tf.function(lambda x: x + 1.)(tf.ones(())) == 2.
  assert '_initialize' in made and not told and not traced


def test_ops_do_not_record_the_frames_of_this_package(monkeypatch):
  """Once the error of an op showed them between those of the program."""
  function = polymorphic_function.Function
  monkeypatch.setattr(function, '_initialize',
                      inspect.unwrap(function._initialize))
  xla.watch_functions(print, print)
  step = tf.function(lambda x: x + 1.)
  step(tf.ones(()))
  op = step.get_concrete_function(tf.ones(())).graph.get_operations()[-1]
  assert __file__ in {frame.filename for frame in op.traceback}
  assert not [f for f in op.traceback if f.filename == stack_room.__file__]


@pytest.mark.parametrize('fields, expected', [
    ({}, xla.Handling.COMPARED),
    ({'guard': True}, xla.Handling.COMPARED),
    ({'guard': True, 'plan': 'p.json'}, xla.Handling.COMPARED),
    ({'mode': 'report', 'guard': False}, xla.Handling.COMPARED),
    ({'guard': False}, xla.Handling.KEPT),
    ({'guard': False, 'may_round': True}, xla.Handling.KEPT),
    ({'xla': 'keep', 'keep_best': False}, xla.Handling.KEPT),
    ({'plan': 'p.json'}, xla.Handling.HELD_BACK),
    ({'keep_best': False}, xla.Handling.HELD_BACK),
    ({'keep_best': False, 'guard': False}, xla.Handling.HELD_BACK),
    ({'xla': 'off'}, xla.Handling.HELD_BACK),
])
def test_what_becomes_of_the_choice_of_keras(fields, expected):
  assert xla.handling(settings.Settings(**fields)) is expected

"""The methods of TensorFlow's context that the hook replaces."""

import contextlib
import copy
import types

import pytest
from tensorflow.python.eager import context as context_lib

from gdp_grappler.plugin import hook
from gdp_grappler.plugin import notices
from gdp_grappler.plugin import splitting
from gdp_grappler.plugin import switch
from gdp_grappler.plugin.fitting import variable_moves


@pytest.fixture
def context(monkeypatch):
  """A context with options, like TensorFlow's, that the hook has wrapped."""

  class Context:
    """Has the attributes that the hook replaces."""

    def __init__(self):
      self._optimizer_experimental_options = {}
      self._thread_local_data = types.SimpleNamespace(
          function_call_options=None)
      self.is_eager = True

    def executing_eagerly(self):
      return self.is_eager

    @property
    def function_call_options(self):
      """The options with which a function is called."""
      data = self._thread_local_data
      if data.function_call_options is None:
        data.function_call_options = context_lib.FunctionCallOptions()
      return data.function_call_options

    @function_call_options.setter
    def function_call_options(self, options):
      self._thread_local_data.function_call_options = options

    def set_optimizer_experimental_options(self, options):
      self._optimizer_experimental_options.update(options)

    def get_optimizer_experimental_options(self):
      return dict(self._optimizer_experimental_options)

  monkeypatch.delenv('GDP_PLACEMENT', raising=False)
  monkeypatch.setattr(hook, '_switch_on', lambda: None)
  monkeypatch.setattr(splitting, 'arm_of', lambda *_, **__: None)
  hook._wrap(Context)
  return Context()


@pytest.fixture
def calls(monkeypatch):
  """A list that grows with each call of `move_back`."""
  result = []
  monkeypatch.setattr(variable_moves, 'move_back', lambda: result.append(1))
  return result


def test_another_option_moves_no_variable_back(context, calls):
  """Once any option moved back the variables that `relocate` had moved."""
  context.set_optimizer_experimental_options({'layout_optimizer': True})
  context.set_optimizer_experimental_options({switch.NAME: False})
  assert not calls


def test_the_split_of_an_option_is_taken_back_when_it_is_off(
    context, calls, monkeypatch):
  """Once cards were split although the option was off at the start."""
  armed = []
  monkeypatch.setattr(splitting, 'arm_of',
                      lambda _, value, by_option: armed.append(value))
  for value in ({'split': 2}, {'seed': 1}, False):
    context.set_optimizer_experimental_options({switch.NAME: value})
  assert armed == [2, None, None]


def test_switching_off_is_counted(context, calls):
  before = switch.times_off()
  for value in (True, False, False, True):
    context.set_optimizer_experimental_options({switch.NAME: value})
  assert switch.times_off() == before + 1


def test_switching_off_moves_variables_back_once(context, calls):
  for option in ({switch.NAME: True}, {'layout_optimizer': True}):
    context.set_optimizer_experimental_options(option)
    assert not calls
  for option in ({switch.NAME: False}, {'layout_optimizer': True}):
    context.set_optimizer_experimental_options(option)
    assert len(calls) == 1


@contextlib.contextmanager
def _one_thread(context):
  """Like `tf.experimental.function_executor_type`, for any context."""
  options = context.function_call_options
  old_options = copy.copy(options)
  options.executor_type = 'SINGLE_THREADED_EXECUTOR'
  yield
  context.function_call_options = old_options


def _call(context):
  """Whether the next call has the pass, and the name of its executor."""
  options = context.function_call_options
  return b'placement' in options.config_proto_serialized, options.executor_type


def test_functions_whose_executor_has_one_thread_are_left_alone(
    context, monkeypatch):
  """Once such a function waited forever for a tensor of another device."""
  lines = []
  monkeypatch.setattr(notices, 'say_once', lines.append)
  monkeypatch.setattr(hook, '_is_on', lambda _: True)
  monkeypatch.setattr(hook, '_has_no_choice', lambda _: False)

  def add(config, unused_value, is_planned=False):
    config.graph_options.rewrite_options.custom_optimizers.add(
        name=f'placement {is_planned}')

  monkeypatch.setattr(hook, '_add_to', add)
  for is_eager in (True, False, True, False):
    context.is_eager = is_eager
    assert _call(context) == (is_eager, None)
    with _one_thread(context):
      for context.is_eager in (True, False):
        assert _call(context) == (False, 'SINGLE_THREADED_EXECUTOR')
  assert len(set(lines)) == 1 and 'SINGLE_THREADED_EXECUTOR' in lines[0]

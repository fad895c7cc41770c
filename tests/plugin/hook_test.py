"""When the hook moves variables back."""

import pytest

from gdp_grappler.plugin import hook
from gdp_grappler.plugin import splitting
from gdp_grappler.plugin import switch
from gdp_grappler.plugin.fitting import variable_moves


@pytest.fixture
def context(monkeypatch):
  """Has options as TensorFlow's context has; the hook has wrapped it."""

  class Context:
    """Has the attributes that the hook replaces."""

    def __init__(self):
      self._optimizer_experimental_options = {}

    @property
    def function_call_options(self):
      """Never asked for here."""

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
  """Grows with each call of `move_back`."""
  result = []
  monkeypatch.setattr(variable_moves, 'move_back', lambda: result.append(1))
  return result


def test_another_option_moves_no_variable_back(context, calls):
  """Once any option moved those back that `relocate` had moved."""
  context.set_optimizer_experimental_options({'layout_optimizer': True})
  context.set_optimizer_experimental_options({switch.NAME: False})
  assert not calls


def test_the_split_of_an_option_is_taken_back_when_it_is_off(
    context, calls, monkeypatch):
  """Cards were split although the option was off at the start."""
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

"""What a train function says of itself; what it does is in `e2e`."""

import types

import pytest

from gdp_grappler.plugin import outcome as outcome_lib
from gdp_grappler.plugin import settings as settings_lib
from gdp_grappler.plugin.fitting import plan as plan_lib
from gdp_grappler.plugin.fitting import single_steps
from gdp_grappler.plugin.fitting import train_function

_PLACED = outcome_lib.Outcome(('CPU:1',), 'step: 1 ops placed')


@pytest.fixture(name='said')
def _said(monkeypatch):
  lines = []
  monkeypatch.setattr(train_function.notices, 'say', lines.append)
  return lines


@pytest.fixture(name='function')
def _function():
  steps = single_steps.SingleSteps(types.SimpleNamespace(steps_per_execution=1))
  return train_function.TrainFunction(lambda step: step, 'fit of "model"',
                                      False, False, steps)


def _measured(function, before_s, placed_s):
  """The function at the end of its guard."""
  course = function._course
  course.plan = plan_lib.Plan({'a': 'CPU:1'}, (), _PLACED)
  course.before._seconds = [before_s] * 5
  course.after._seconds = [placed_s] * 5
  function._choose()


@pytest.mark.parametrize('before_s, placed_s, stays', [(1., 2., True),
                                                       (1., 1., True),
                                                       (2., 1., False)])
def test_the_faster_way_is_kept(function, said, before_s, placed_s, stays):
  _measured(function, before_s, placed_s)
  assert said == [
      f'fit of "model": {before_s * 1e3:.3g} ms as it was, '
      f'{placed_s * 1e3:.3g} ms placed (measured, medians of 5 and 5 calls): ' +
      ('goes back to what it was' if stays else 'stays placed')
  ]
  assert bool(function.report().placed_ops) != stays


def test_switched_on_again_it_says_that_it_was_measured(function, said):
  """Once it blamed a graph of fewer than 16 ops."""
  _measured(function, 1., 2.)
  function._explain()
  assert said[-1] == ('fit of "model": left as it was, which was measured to '
                      'be as fast as placed')


def test_each_option_has_a_plan_of_its_own(function):
  """Once the first one was forgotten for the second, and never made again."""
  first, second = settings_lib.Settings(), settings_lib.Settings(seed=1)
  function._switch(first)
  plan = plan_lib.Plan({}, (), outcome_lib.Outcome(None, 'no gain'))
  function._course.plan = plan
  function._switch(second)
  assert function._course.plan is None
  function._switch(None)
  function._switch(first)
  assert function._course.plan is plan

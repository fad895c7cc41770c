"""Lines and states of a train function; `e2e` tests its steps."""

import dataclasses
import types

import pytest
import tensorflow as tf

from gdp_grappler.graph import source_graph
from gdp_grappler.plugin import outcome as outcome_lib
from gdp_grappler.plugin import settings as settings_lib
from gdp_grappler.plugin.fitting import keras_function
from gdp_grappler.plugin.fitting import phases
from gdp_grappler.plugin.fitting import plan as plan_lib
from gdp_grappler.plugin.fitting import single_steps
from gdp_grappler.plugin.fitting import train_function
from gdp_grappler.plugin.fitting import variable_moves
from gdp_grappler.plugin.fitting import ways

_PLACED = outcome_lib.Outcome(('CPU:1',), 'step: 1 ops placed')


class _Model:
  """The attributes of a model that a train function reads."""

  def __init__(self, name='model', steps_per_execution=1):
    self.name = name
    self.steps_per_execution = steps_per_execution


@pytest.fixture(name='said')
def _said(monkeypatch):
  lines = []
  monkeypatch.setattr(train_function.notices, 'say', lines.append)
  return lines


@pytest.fixture(name='function')
def _function():
  steps = single_steps.SingleSteps(_Model())
  return train_function.TrainFunction(lambda step: step, 'fit of "model"',
                                      False, steps)


def _measured(function, before_s, placed_s):
  """Brings a function to the end of its guard."""
  function._settings = settings_lib.Settings()
  plan = function._course.plan = plan_lib.FitPlan({'a': 'CPU:1'}, (), _PLACED)
  function._compare(plan)
  for seconds in (before_s, placed_s):
    function._course.timing._seconds = [seconds] * 5
    function._choose()


@pytest.mark.parametrize('before_s, placed_s, stays', [(1., 2., True),
                                                       (1., 1., True),
                                                       (2., 1., False)])
def test_the_faster_way_is_kept(function, said, before_s, placed_s, stays):
  _measured(function, before_s, placed_s)
  assert said == [
      f'fit of "model": {before_s * 1e3:.0f} ms as it was, '
      f'{placed_s * 1e3:.0f} ms placed (measured, medians of 5 and 5 calls): ' +
      ('goes back to what it was' if stays else 'stays placed')
  ]
  assert bool(function.report().placed_ops) != stays


def _batches(size):
  """An iterator that does not know the size of its batches, like Keras' own.

  Args:
    size: Size that Keras has announced for the batches.
  """
  dataset = tf.data.Dataset.from_generator(lambda: iter([[1.]]),
                                           output_signature=tf.TensorSpec(None))
  train_function.batch_sizes._dataset_sizes[dataset] = size
  return iter(dataset)


def test_steps_of_different_batches_are_not_compared(compiled):
  """Once steps of 8 examples were compared with placed steps of 4096."""
  compiled._compare(compiled._course.plan)
  for size in [8] * 7 + [3]:  # The last batch of an epoch is not timed.
    compiled._step(_batches(size))
  assert compiled._course.way is ways.FitWay.XLA
  for size in [8] + [None] + [4096] * 7:
    compiled._step(_batches(size))
  assert compiled._course.way is ways.FitWay.PLACED
  compiled._step(_batches(4096))
  assert compiled._course.way is ways.FitWay.XLA
  assert not compiled._course.comparison.measured
  for _ in range(7):
    compiled._step(_batches(4096))
  assert compiled._course.way is ways.FitWay.PLACED


def test_switched_on_again_it_says_that_it_was_measured(function, said):
  """Once it blamed a graph of fewer than 16 ops."""
  _measured(function, 1., 2.)
  function._explain()
  assert said[-1] == ('fit of "model": left as it was, which was measured to '
                      'be no slower than placed')


def test_switched_on_again_it_says_that_steps_are_still_timed(function, said):
  """Once it blamed a graph of fewer than 16 ops."""
  function._switch(settings_lib.Settings())
  function._course.plan = plan_lib.FitPlan({'a': 'CPU:1'}, (), _PLACED)
  function._compare(function._course.plan)
  function._switch(None)
  function._switch(settings_lib.Settings())
  function._explain()
  assert function.was_told
  assert said == [
      'step: 1 ops placed; the first steps run as they were, to compare'
  ]


def _movable(variable, name):
  return variable_moves.movable([variable], _Model(name))


def test_variables_of_a_placed_model_stay_for_others_and_this_is_told(
    monkeypatch):
  """Once no line said that the variables stay."""
  lines = []
  monkeypatch.setattr(variable_moves.notices, 'say_once', lines.append)
  variable, first = tf.Variable(0.), _Model('first')
  assert variable_moves.movable([variable], first)
  assert not _movable(variable, 'second')
  assert lines == [
      '1 variables of "second" stay where they are, because "first" was '
      'planned with them'
  ]


@pytest.mark.parametrize('plan', [
    None,
    plan_lib.FitPlan({}, (), outcome_lib.Outcome(None, 'no gain')),
])
def test_a_model_that_is_not_placed_keeps_no_variables(function, plan):
  """Layers of two models belonged for good to the one that was planned."""
  variable = tf.Variable(0.)
  assert variable_moves.movable([variable], function._steps.model)
  function._course.plan = plan
  function._settings = settings_lib.Settings()
  function._planning_step('batch')
  assert _movable(variable, 'second')


@pytest.mark.parametrize('before_s, placed_s, is_free', [(1., 2., True),
                                                         (2., 1., False)])
def test_a_model_that_goes_back_keeps_no_variables(function, said, before_s,
                                                   placed_s, is_free):
  """Layers of two models belonged for good to the one that was planned."""
  variable = tf.Variable(0.)
  assert variable_moves.movable([variable], function._steps.model)
  _measured(function, before_s, placed_s)
  assert bool(_movable(variable, 'second')) == is_free
  function.retire()
  assert _movable(variable, 'third')


def test_each_option_has_a_plan_of_its_own(function):
  """Once a second option dropped the plan of the first, for good."""
  first, second = settings_lib.Settings(), settings_lib.Settings(seed=1)
  function._switch(first)
  plan = plan_lib.FitPlan({}, (), outcome_lib.Outcome(None, 'no gain'))
  function._course.plan = plan
  function._switch(second)
  assert function._course.plan is None
  function._switch(None)
  function._switch(first)
  assert function._course.plan is plan


@pytest.fixture(name='compiled')
def _compiled():
  """The train function of a model that Keras has compiled by XLA."""
  steps = single_steps.SingleSteps(_Model())
  function = train_function.TrainFunction(lambda step: ('xla', step),
                                          'fit of "model"', False, steps,
                                          lambda: lambda step: ('tf', step))
  function._switch(settings_lib.Settings())
  function._course.plan = plan_lib.FitPlan({'a': 'CPU:1'}, (), _PLACED)
  return function


def _time(function, *several_s):
  """Runs a step per way, and sets its time; returns 'xla' or 'tf' per way."""
  ran = []
  for seconds in several_s:
    ran.append(function._step('batch')[0])
    function._course.timing._seconds = [seconds] * 5
    function._choose()
  return ran


@pytest.mark.parametrize('xla_s, placed_s, plain_s, stays, runs', [
    (1., 2., 3., 'stays with XLA, as Keras chose', 'xla'),
    (2., 1., 3., 'stays placed', 'tf'),
    (3., 2., 1., 'stays without XLA', 'tf'),
])
def test_the_step_with_xla_is_what_others_have_to_beat(compiled, said, xla_s,
                                                       placed_s, plain_s, stays,
                                                       runs):
  compiled._compare(compiled._course.plan)
  assert _time(compiled, xla_s, placed_s, plain_s) == ['xla', 'tf', 'tf']
  assert compiled._step('batch') == (runs, 'batch')
  assert compiled.is_placed == (stays == 'stays placed')
  line, = said
  assert f': {stays}. Steps ran in these ways in turn' in line
  assert compiled.report().before_s == xla_s


def test_a_pin_holds_without_a_comparison(compiled):
  """Once the guard went back to steps in which an op was not on its pin."""
  outcome = dataclasses.replace(_PLACED, before_s=float('inf'))
  compiled._course.plan = plan_lib.FitPlan({'a': 'CPU:1'}, (), outcome)
  compiled._planning_step('batch')
  assert compiled.report().way == 'placed'
  assert compiled._course.comparison is None


@pytest.mark.parametrize('fitted, way', [(False, 'placed'), (True, 'with XLA')])
@pytest.mark.parametrize('has_streams', [False, True])
def test_a_step_that_would_not_fit_is_placed_at_once(compiled, said, fitted,
                                                     has_streams, way):
  """Once XLA stayed, and the line blamed streams of random numbers."""
  outcome = dataclasses.replace(_PLACED, fitted=fitted)
  plan = plan_lib.FitPlan({'a': 'CPU:1'}, (), outcome, has_streams=has_streams)
  compiled._course.plan = plan
  line = train_function.course_lib.of_kept_xla(plan, 'fit',
                                               compiled._is_certain(plan))
  compiled._planning_step('batch')
  assert compiled.report().way == way
  assert ('draws random numbers' in line) == fitted
  is_timed = compiled._course.comparison is not None
  assert is_timed == (fitted and not has_streams)


def test_steps_without_xla_stay_so_if_variables_cannot_move(
    compiled, said, monkeypatch):
  """Once XLA compiled the steps in spite of 'xla': 'off'."""

  def refuse(moves):
    if list(moves):
      raise train_function.errors.PluginError('No room.')

  monkeypatch.setattr(train_function.variable_moves, 'move', refuse)
  monkeypatch.setattr(train_function.notices, 'warn_once', said.append)
  compiled._switch(settings_lib.Settings(xla='off'))
  moves = ((tf.Variable(0.), 'CPU:1'),)
  compiled._course.plan = plan_lib.FitPlan({'a': 'CPU:1'}, moves, _PLACED)
  compiled._enter(ways.FitWay.PLACED)
  assert 'cannot be moved: No room.' in said[-1]
  assert compiled._step('batch') == ('tf', 'batch')


def test_what_the_user_has_relocated_does_not_move_back(function, monkeypatch):
  """Once switching the option off moved these variables back."""
  moved = []
  monkeypatch.setattr(train_function.variable_moves, 'move', moved.extend)
  variables = [
      types.SimpleNamespace(device=device) for device in ('CPU:1', 'CPU:2')
  ]
  moves = tuple((variable, 'CPU:1') for variable in variables)
  function._course.plan = plan_lib.FitPlan({'a': 'CPU:1'}, moves, _PLACED)
  function._origins = tuple((variable, 'CPU:0') for variable in variables)
  function._switch(None)
  assert moved == [(variables[0], 'CPU:0')]


@pytest.mark.parametrize('is_on_its_way_back', [False, True])
def test_a_move_that_ctrl_c_stopped_is_finished_by_the_next_call(
    function, monkeypatch, is_on_its_way_back):
  """Once half of the variables stayed where they were for good."""
  variables = [types.SimpleNamespace(device='CPU:0') for _ in range(2)]
  stops = []

  def move(devices):
    for variable, device in devices:
      if stops and variable is variables[1]:
        raise stops.pop()
      variable.device = device

  settings = settings_lib.Settings(keep_best=False, guard=False)
  moves = tuple((variable, 'CPU:1') for variable in variables)
  monkeypatch.setattr(variable_moves, 'move', move)
  monkeypatch.setattr(variable_moves, 'claim', lambda devices, owner: devices)
  monkeypatch.setattr(keras_function.option, 'connect', lambda: True)
  monkeypatch.setattr(keras_function, '_with_choice', lambda value: settings)
  monkeypatch.setattr(train_function.current_call, 'run',
                      lambda call, function, *args: function(*args))
  monkeypatch.setattr(function, '_explain', lambda: None)
  function('batch')
  function._course.plan = plan_lib.FitPlan({'a': 'CPU:1'}, moves, _PLACED)
  if is_on_its_way_back:
    function._enter(ways.FitWay.PLACED)
  stops.append(KeyboardInterrupt)
  with pytest.raises(KeyboardInterrupt):
    function._enter(
        ways.FitWay.AS_IT_WAS if is_on_its_way_back else ways.FitWay.PLACED)
  assert {v.device for v in variables} == {'CPU:0', 'CPU:1'}
  function('batch')
  assert {v.device for v in variables} == {'CPU:1'}
  assert function.is_placed and len(function._origins) == 2


def test_devices_of_a_step_that_cannot_follow_are_recorded(
    function, monkeypatch):
  """Once the callback printed the plan although `relocate` had changed it."""
  monkeypatch.setattr(plan_lib, 'follow', lambda *unused: _PLACED)
  function._course.plan = plan_lib.FitPlan({'a': 'CPU:1'}, (), _PLACED)
  source = source_graph.SourceGraph('step', tf.compat.v1.GraphDef())
  function._followed('step_7', source, settings_lib.Settings())
  assert function._course.instead is not None


@pytest.fixture(name='looped')
def _looped():
  """The train function of a model whose steps Keras puts into a loop."""
  model = _Model(steps_per_execution=3)
  function = train_function.TrainFunction(lambda iterator: iterator,
                                          'fit of "model"', False,
                                          single_steps.SingleSteps(model))
  function._settings = settings_lib.Settings()
  function._has_loop = True
  return function


def test_steps_that_the_pass_never_sees_return_to_their_loop(looped):
  """Once the steps ran one by one for good."""
  iterator = iter(tf.data.Dataset.range(4))
  looped._phase = phases.Phase.PLANNING
  assert looped._step(iterator) is not iterator
  assert looped._step(iterator) is iterator


def test_a_method_of_one_step_says_that_fit_plans(looped, said):
  """Once its line said that the graph is too small."""
  looped._phase = phases.Phase.LOOKING
  looped._step(iter([1]))
  looped._explain()
  assert 'only fit searches for a placement' in said[0]


def test_a_kept_xla_runs_what_keras_made(compiled):
  compiled._switch(settings_lib.Settings(xla='keep'))
  assert compiled._step('batch') == ('xla', 'batch')
  assert compiled.report().way == 'with XLA'


def test_switched_off_between_two_ways_it_goes_on_where_it_was(compiled, said):
  """Once its line named XLA while steps without XLA were timed."""
  compiled._compare(compiled._course.plan)
  for seconds, is_placed in ((1., True), (2., False)):
    _time(compiled, seconds)
    assert compiled.is_placed == is_placed
    compiled._switch(None)
    assert not compiled.is_placed
    compiled._switch(settings_lib.Settings())
    assert compiled.is_placed == is_placed
    assert compiled._phase is phases.Phase.TIMING
  compiled._explain()
  assert said[-1].endswith('; the next steps run without XLA, to compare')


def test_another_function_of_the_model_takes_over_the_way(compiled, said):
  compiled._compare(compiled._course.plan)
  _time(compiled, 1., 2., 3.)
  compiled._course.instead = compiled._course.plan
  other = train_function.TrainFunction(lambda step: ('new xla', step),
                                       'fit of "model"', False, compiled._steps,
                                       lambda: lambda step: ('new tf', step))
  other.take_over(compiled)
  assert other._step('batch') == ('new xla', 'batch')
  assert len(said) == 1 and other._course.instead is None


def test_variables_that_cannot_be_moved_leave_xla_there(compiled, said,
                                                        monkeypatch):

  def refuse(moves):
    if moves:
      raise train_function.errors.PluginError('No room.')

  monkeypatch.setattr(train_function.variable_moves, 'move', refuse)
  monkeypatch.setattr(train_function.notices, 'warn_once', said.append)
  compiled._course.plan = plan_lib.FitPlan({'a': 'CPU:1'},
                                           ((tf.Variable(0.), 'CPU:1'),),
                                           _PLACED)
  monkeypatch.setattr(compiled, '_undo',
                      lambda: setattr(compiled, 'is_placed', False))
  compiled._compare(compiled._course.plan)
  _time(compiled, 1.)
  assert compiled._step('batch') == ('xla', 'batch')
  assert compiled._course.stays and not compiled.is_placed
  assert 'cannot be moved: No room.' in said[-1]

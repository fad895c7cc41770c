import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from gdp_grappler.graph import source_graph
from gdp_grappler.plugin import optimizer
from gdp_grappler.plugin import outcome as outcome_lib
from gdp_grappler.plugin import settings as settings_lib
from gdp_grappler.plugin.fitting import plan as plan_lib

_DEVICES = tuple(
    f'/job:localhost/replica:0/task:0/device:CPU:{i}' for i in range(2))
_RANDOM = settings_lib.Settings(placer='random', keep_best=False, seed=1)


def _source(units=6, extra=0):
  """A step that reads `units` variables, all on the first device."""
  variables = [tf.Variable(tf.ones((4, 4))) for _ in range(units)]

  @tf.function
  def step(x):
    for _ in range(extra):
      x = tf.sin(x)
    for variable in variables:
      variable.assign_add(tf.matmul(x, variable))
    return x

  concrete = step.get_concrete_function(tf.TensorSpec((4, 4)))
  graph_def = tf.compat.v1.GraphDef()
  graph_def.CopyFrom(concrete.graph.as_graph_def())
  for node in graph_def.node:
    node.device = _DEVICES[0]
    if node.op == 'Placeholder':
      node.op = '_Arg'
      index = [t.op.name for t in concrete.inputs].index(node.name)
      dtype = node.attr['dtype'].type
      for key in list(node.attr):
        if key != '_handle_dtypes':
          del node.attr[key]
      node.attr['T'].type = dtype
      node.attr['index'].i = index
      if dtype == tf.resource:
        node.attr['_handle_dtypes'].list.type.append(1)
        shape = node.attr['_handle_shapes'].list.shape.add()
        for size in (4, 4):
          shape.dim.add(size=size)
  fetches = tuple(n.name for n in graph_def.node if n.op.startswith('Assign'))
  found = dict(enumerate([None, *variables]))
  del found[0]
  return source_graph.SourceGraph('step', graph_def, ('x',), fetches,
                                  _DEVICES), found


def test_variables_move_where_the_optimizer_wants_them():
  source, variables = _source()
  plan = plan_lib.make(source, _RANDOM, variables)
  assert plan.changes
  assert 0 < len(plan.moves) < 6
  assert {device for _, device in plan.moves} == {_DEVICES[1]}
  assert plan.moved_bytes == 64 * len(plan.moves)
  assert sum(plan.counts.values()) == len(source.graph_def.node)
  assert f'{len(plan.moves)} variables moved' in plan.describe()
  # Reads and updates have the device of their variable.
  for node in source.graph_def.node:
    if node.op.startswith(('ReadVariable', 'Assign')):
      assert plan.devices[node.name] == plan.devices[node.input[0]]


def test_variables_that_nobody_knows_stay():
  source, variables = _source()
  before = source.graph_def.SerializeToString(deterministic=True)
  plan = plan_lib.make(source, _RANDOM, {1: variables[1]})
  assert all(variable is variables[1] for variable, _ in plan.moves)
  assert source.graph_def.SerializeToString(deterministic=True) == before


def test_counters_and_what_they_are_computed_of_stay(monkeypatch):
  """Once counters moved, and a step without a batch did not count."""
  source, variables = _source()
  node = next(n for n in source.graph_def.node if n.op == 'MatMul')
  stay = {node.name, *node.input}
  free = plan_lib.make(source, _RANDOM, variables).devices
  assert _DEVICES[1] in {free[name] for name in stay}
  monkeypatch.setattr(plan_lib.counters, 'ops', lambda nodes: stay)
  plan = plan_lib.make(source, _RANDOM, variables)
  assert {plan.devices[name] for name in stay} == {_DEVICES[0]}


def _with_gpus():
  """The step with two GPUs: variables on the host, products on a GPU."""
  source, variables = _source()
  gpus = tuple(_DEVICES[0].replace('CPU', 'GPU')[:-1] + str(i) for i in (0, 1))
  for node in source.graph_def.node:
    if node.op == 'MatMul':
      node.device = gpus[0]
  devices = (_DEVICES[0], *gpus)
  settings = dataclasses.replace(_RANDOM, cluster='2xP100')
  return dataclasses.replace(source, devices=devices), variables, settings


def test_variables_that_wait_on_the_host_may_leave_it_for_gpus():
  """Once their updates, which round on the CPU, kept them there."""
  source, variables, settings = _with_gpus()
  assert not plan_lib.make(source, settings, variables).moves
  for variable in variables.values():
    variable._gdp_waits = True
  plan = plan_lib.make(source, settings, variables)
  assert {device for _, device in plan.moves} == set(source.devices[1:])


@pytest.mark.parametrize('how',
                         [{'may_round': True}, {'plan': (
                             ('MatMul', 'GPU:1'),)}])
def test_variables_change_the_type_of_device_if_the_user_lets_them(how):
  """Once a variable could only have devices of its present type."""
  source, variables, settings = _with_gpus()
  plan = plan_lib.make(source, dataclasses.replace(settings, **how), variables)
  assert source.devices[2] in {device for _, device in plan.moves}


def test_variables_that_tf_device_keeps_stay_and_are_told():
  source, variables = _source()
  asked = set(list(variables)[:3])
  free = {i: v for i, v in variables.items() if i not in asked}
  plan = plan_lib.make(source, _RANDOM, free, asked=asked)
  assert not {id(v) for v, _ in plan.moves} - set(map(id, free.values()))
  assert "3 variables stay where tf.device put them" in plan.describe()


def test_no_gain_is_no_plan():
  source, variables = _source()
  plan = plan_lib.make(source, settings_lib.Settings(placer='metis'), variables)
  assert not plan.changes and not plan.moves and not plan.devices
  assert 'left as they were' in plan.outcome.message


def _moved(source, plan):
  """The graph of a step whose variables have moved."""
  graph_def = tf.compat.v1.GraphDef()
  graph_def.CopyFrom(source.graph_def)
  for node in graph_def.node:
    if node.op in ('_Arg', 'ReadVariableOp') or node.op.startswith('Assign'):
      node.device = plan.devices[node.name]
  return source_graph.SourceGraph('step', graph_def, source.feeds,
                                  source.fetches, _DEVICES)


def test_the_next_instantiation_follows():
  source, variables = _source()
  plan = plan_lib.make(source, _RANDOM, variables)
  outcome = plan_lib.follow(_moved(source, plan), _RANDOM, plan)
  assert outcome.devices == tuple(
      plan.devices[node.name] for node in source.graph_def.node)
  assert outcome.message == ''


def test_of_the_very_function_the_planned_graph_runs():
  """Grappler rewrites the step differently after its variables moved."""
  source, variables = _source()
  plan = plan_lib.make(source, _RANDOM, variables, 'step_7')
  moved = _moved(source, plan)
  moved.graph_def.node.add(name='new', op='NoOp', device=_DEVICES[1])
  outcome = plan_lib.follow(moved, _RANDOM, plan, 'step_7')
  assert outcome.graph == source.graph_def.SerializeToString()
  assert outcome.devices == plan.outcome.devices
  assert plan_lib.follow(moved, _RANDOM, plan, 'step_8').graph is None
  # The variables, or some of them, have not moved.
  assert plan_lib.follow(source, _RANDOM, plan, 'step_7').graph is None


def test_new_ops_go_with_their_group():
  source, variables = _source()
  plan = plan_lib.make(source, _RANDOM, variables)
  moved = _moved(source, plan)
  moved.graph_def.node.add(name='new', op='NoOp', device=_DEVICES[1])
  outcome = plan_lib.follow(moved, _RANDOM, plan)
  assert outcome.devices[-1] == _DEVICES[1]


@pytest.mark.parametrize('how',
                         [{'may_round': True}, {'plan': (
                             ('MatMul', 'CPU:0'),)}])
def test_a_plan_that_may_round_is_followed(how, monkeypatch):
  """Once the plan broke the rule of rounding, and steps were placed anew."""
  source, variables, settings = _with_gpus()
  settings = dataclasses.replace(settings, **how)
  plan = plan_lib.make(source, settings, variables, 'step_7')
  assert any('CPU' in plan.devices[node.name] for node in source.graph_def.node
             if node.op == 'MatMul')
  moved = dataclasses.replace(_moved(source, plan), devices=source.devices)

  def refuse(*unused_args, **unused_kwargs):
    raise AssertionError('Placed again.')

  monkeypatch.setattr(plan_lib.decisions, 'optimize', refuse)
  outcome = plan_lib.follow(moved, settings, plan, 'step_8')
  assert outcome.devices == tuple(
      plan.devices[node.name] for node in source.graph_def.node)


def test_another_graph_is_placed_as_any_is():
  source, variables = _source()
  plan = plan_lib.make(source, _RANDOM, variables)
  other, _ = _source(2, extra=9)
  assert plan_lib.follow(other, _RANDOM,
                         plan) == optimizer.optimize(other, _RANDOM)


def test_variables_that_are_elsewhere_are_not_followed():
  source, variables = _source()
  plan = plan_lib.make(source, _RANDOM, variables)
  # The variables have not moved, so the devices of the plan are illegal.
  assert plan_lib.follow(source, _RANDOM,
                         plan) == optimizer.optimize(source, _RANDOM)


def test_groups_go_by_the_majority():
  assert plan_lib._by_group(
      np.array([0, 0, 0, 1, 2]), ['b', 'a', 'a', '', 'c'],
      ['x', 'x', 'x', 'y', 'z']) == ['a', 'a', 'a', 'y', 'c']


@pytest.mark.parametrize('moves', [0, 2])
def test_the_line_counts_variables(moves):
  plan = plan_lib.FitPlan({}, ((tf.Variable([1., 2.]), 'd'),) * moves,
                          outcome_lib.Outcome(None, 'placed'))
  assert plan.describe() == ('placed; 2 variables moved, 0.00 MB'
                             if moves else 'placed')


def test_the_line_of_a_step_that_is_traced_later_counts_no_variables():
  """Once `train_on_batch` after `fit` told of variables that had moved."""
  plan = plan_lib.FitPlan({}, ((tf.Variable([1., 2.]), 'd'),),
                          outcome_lib.Outcome(None, 'placed'),
                          function='step_7')
  assert plan.describe('step_7') == plan.describe()
  assert plan.describe('step_8') == 'placed'


def test_a_step_whose_iterator_is_elsewhere_is_not_the_planned_one():
  """Once a fit under another `tf.device` ran apart from its iterator."""
  source, variables = _source()
  iterator, other = source.graph_def.node.add(), tf.compat.v1.GraphDef()
  iterator.name, iterator.op, iterator.device = 'it', '_Arg', _DEVICES[0]
  iterator.attr['T'].type = tf.resource.as_datatype_enum
  iterator.attr['index'].i = 7
  plan = plan_lib.make(source, _RANDOM, variables, 'step_7')
  moved = _moved(source, plan)
  assert plan_lib.follow(moved, _RANDOM, plan, 'step_7').graph == plan.graph
  other.CopyFrom(moved.graph_def)
  other.node[-1].device = _DEVICES[1]
  other = dataclasses.replace(moved, graph_def=other)
  assert plan_lib.follow(other, _RANDOM, plan, 'step_7').graph is None

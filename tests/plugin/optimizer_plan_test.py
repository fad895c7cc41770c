"""The key `plan` of the option, in the optimizer."""

import dataclasses
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.cluster import plan
from gdp_grappler.cluster import resolve
from gdp_grappler.graph import graph_def_io
from gdp_grappler.graph import source_graph
from gdp_grappler.graph.legality import pins
from gdp_grappler.graph.sources import sources
from gdp_grappler.plugin import optimizer
from gdp_grappler.plugin import settings as settings_lib
from helpers import graph_defs

_TESTDATA = pathlib.Path(__file__).parents[1] / 'testdata'
_CPUS = tuple(map(graph_defs.CPU, range(3)))


def _captured(name):
  return dataclasses.replace(
      sources.load(str(_TESTDATA / f'{name}_train_step.pb')), devices=_CPUS)


@pytest.mark.parametrize('name', ['dense', 'lstm'])
def test_a_plan_is_applied_whatever_is_predicted(name):
  source = _captured(name)
  settings = settings_lib.Settings(plan=(('dense', 'CPU:1'),))
  outcome = optimizer.optimize(source, settings)
  on = dict(zip([n.name for n in source.graph_def.node], outcome.devices))
  gradients = [op for op in on if '/dense_1/MatMul/MatMul' in op]
  assert gradients and {on[op] for op in gradients} == {_CPUS[1]}
  assert set(outcome.devices) <= set(_CPUS[:2])
  assert 'placed by the map of layers (' in outcome.message
  assert ' ms (simulated)' in outcome.message


def test_a_plans_variables_move_where_they_may():
  source = _captured('dense')
  settings = settings_lib.Settings(plan=(('*', 'CPU:2'),))
  free = optimizer.optimize(source, settings, relocatable=True)
  fixed = optimizer.optimize(source, settings)
  handles = [
      i for i, node in enumerate(source.graph_def.node)
      if pins.is_variable_argument(node)
  ]
  assert {free.devices[i] for i in handles} == {_CPUS[2]}
  assert {fixed.devices[i] for i in handles} == {_CPUS[0]}


def test_a_plan_for_other_graphs_leaves_this_one():
  settings = settings_lib.Settings(plan=(('encoder', 'CPU:2'),))
  outcome = optimizer.optimize(_captured('dense'), settings)
  assert outcome.devices is None
  assert 'left as it was: no op is in "encoder"' in outcome.message
  assert outcome.topic == 'no op is in "encoder"'


@pytest.mark.parametrize(
    'layer, said', [('encoder', ''),
                    ('towr', 'f: left as it was: no op is in "towr" (did you '
                     'mean "tower"?)')])
def test_a_function_of_no_model_needs_no_layer(layer, said):
  """Once each function without a layer of the map had a line."""

  @tf.function
  def function(x):
    with tf.name_scope('tower'):
      for _ in range(4):
        x = tf.sin(x) @ x
    return x

  graph_def = function.get_concrete_function(tf.ones(
      (4, 4))).graph.as_graph_def()
  for node in graph_def.node:
    node.device = _CPUS[0]
  source = source_graph.SourceGraph('f', graph_def, (), (), _CPUS)
  outcome = optimizer.optimize(source,
                               settings_lib.Settings(plan=((layer, 'CPU:1'),)))
  assert outcome.devices is None and outcome.message == said


def test_a_pin_holds_beside_a_plan_for_other_graphs():
  """Once the graph was left as it was, with the op elsewhere."""

  @tf.function
  def function(x):
    return tf.sin(tf.cos(x) @ x)

  graph_def = function.get_concrete_function(tf.ones(
      (4, 4))).graph.as_graph_def()
  for node in graph_def.node:
    node.device = _CPUS[0]
    if node.op == 'Cos':
      node.attr[pins.PIN_ATTRIBUTE].s = b'/device:CPU:2'
  source = source_graph.SourceGraph('f', graph_def, (), (), _CPUS)
  outcome = optimizer.optimize(
      source, settings_lib.Settings(plan=(('encoder', 'CPU:1'),)))
  assert outcome.devices == tuple(
      _CPUS[2 if node.op == 'Cos' else 0] for node in graph_def.node)
  assert 'placed by pins: CPU:0 4, CPU:1 0, CPU:2 1' in outcome.message
  assert outcome.message.endswith(
      '; no op is in "encoder", so only pinned ops move')


def test_a_frozen_graph_without_a_layer_of_the_map_has_a_line():
  """Once a graph whose weights are constants was silently ignored."""
  weights = np.random.default_rng(0).random((32, 32)).astype(np.float32)

  @tf.function
  def function(x):
    for _ in range(8):
      x = tf.sin(x) @ weights
    return x

  graph_def = function.get_concrete_function(tf.ones(
      (4, 32))).graph.as_graph_def()
  for node in graph_def.node:
    node.device = _CPUS[0]
  source = source_graph.SourceGraph('f', graph_def, (), (), _CPUS)
  outcome = optimizer.optimize(
      source, settings_lib.Settings(plan=(('encoder', 'CPU:1'),)))
  assert outcome.message == 'f: left as it was: no op is in "encoder"'


@pytest.mark.parametrize('layer', ['encoder', '*'])
def test_no_plan_is_for_the_graph_that_makes_variables(layer):
  """Once the first line of a fit was that no op is in "encoder"."""
  source = dataclasses.replace(_captured('dense'), name='initialize_variables')
  settings = settings_lib.Settings(plan=((layer, 'CPU:2'), ('decoder',
                                                            'CPU:1')))
  outcome = optimizer.optimize(source, settings)
  assert outcome.devices is None and not outcome.message


def test_a_plan_of_gdp_place_is_applied(tmp_path):
  source, path = _captured('dense'), str(tmp_path / 'plan.json')
  cluster = resolve.resolve('local', _CPUS)
  graph = graph_def_io.read(source)
  devices = [i % 2 + 1 for i in graph.groups]
  plan.save(path, graph, placement_lib.Placement(devices, cluster))
  outcome = optimizer.optimize(source, settings_lib.Settings(plan=path),
                               relocatable=True)
  assert set(outcome.devices) == set(_CPUS)
  assert f'{graph.num_ops} ops by name' in outcome.message
  free = [i for i, pin in enumerate(graph.pins) if not pin]
  same = sum(_CPUS[devices[i]] == outcome.devices[i] for i in free)
  assert same > .95 * len(free)

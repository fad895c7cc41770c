"""The placement of a graph before the plugin changes it."""

import dataclasses

import pytest

from gdp_grappler.cluster import resolve
from gdp_grappler.placers import step as step_lib
from gdp_grappler.plugin import optimizer
from gdp_grappler.plugin import placement_before
from gdp_grappler.plugin import settings as settings_lib
from helpers import divided_loops
from helpers import graph_defs

_MOVED = dict.fromkeys(divided_loops.WEIGHTS, graph_defs.CPU(1))


def _problem(source, relocatable=False):
  cluster = resolve.resolve('local', source.devices)
  return step_lib.of_source(source, cluster, live=True,
                            relocatable=relocatable).problem()


def _before(source, **how):
  problem = _problem(source, **how)
  return problem, placement_before.placement(problem, source)


def test_a_graph_is_where_tensorflow_put_it():
  source = divided_loops.source()
  problem, before = _before(source)
  assert set(before.device_strings()) == {graph_defs.CPU(0)}
  assert not placement_before.num_rejoined(problem.graph, before)


@pytest.mark.parametrize('relocatable', [False, True])
def test_a_loop_is_where_its_variables_are(relocatable):
  """Once each iteration got the weights from the other device."""
  problem, before = _before(divided_loops.source(**_MOVED),
                            relocatable=relocatable)
  graph = problem.graph
  assert not before.violations(graph)
  devices = before.device_strings()
  assert divided_loops.loop_devices(graph.op_types,
                                    devices) == {graph_defs.CPU(1)}
  assert placement_before.num_rejoined(graph, before) > 100


def test_a_loop_with_variables_on_two_devices_is_left_alone():
  source = divided_loops.source(**_MOVED | {'unknown_1': graph_defs.CPU(2)})
  problem, before = _before(source)
  assert before.device_strings() == list(problem.graph.devices)
  assert not placement_before.num_rejoined(problem.graph, before)


def test_a_loop_in_which_the_user_pins_an_op_is_left_alone():
  source = divided_loops.source(**_MOVED)
  node = next(n for n in source.graph_def.node
              if n.op == 'Tanh' and 'lstm/while/' in n.name)
  node.attr['_gdp_leave_alone'].b = True
  problem, before = _before(source)
  assert not placement_before.num_rejoined(problem.graph, before)
  assert before.device_strings() == list(problem.graph.devices)


def test_ops_on_a_device_that_the_cluster_lacks_are_on_the_host():
  source = divided_loops.source()
  problem = _problem(source)
  for node in source.graph_def.node:
    if node.op == 'Tanh':
      node.device = graph_defs.CPU(7)
  problem = dataclasses.replace(
      problem, graph=step_lib.of_source(source, problem.cluster).graph)
  before = placement_before.placement(problem, source)
  assert set(before.device_strings()) == {graph_defs.CPU(0)}


@pytest.mark.parametrize('mode', ['apply', 'report'])
def test_without_a_gain_the_loop_alone_moves_and_a_line_says_so(mode):
  source = divided_loops.source(**_MOVED)
  outcome = optimizer.optimize(
      source, settings_lib.Settings(placer='cpu_only', mode=mode))
  would = '' if mode == 'apply' else 'would '
  assert f'ops {would}stay where they were, except ' in outcome.message
  assert 'which go to the device of the variables of' in outcome.message
  if mode == 'report':
    assert outcome.devices is None
    return
  types = [node.op for node in source.graph_def.node]
  assert divided_loops.loop_devices(types,
                                    outcome.devices) == {graph_defs.CPU(1)}
  moved = sum(node.device != device
              for node, device in zip(source.graph_def.node, outcome.devices))
  assert f'except {moved} ops of loops' in outcome.message

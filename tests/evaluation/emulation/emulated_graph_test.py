"""Tests of gdp_grappler.evaluation.emulation.emulated_graph."""

import numpy as np

from gdp_grappler.evaluation.emulation import emulated_graph
from gdp_grappler.evaluation.emulation import machine
from helpers import clusters
from helpers import graphs

MACHINE = machine.Machine(clusters.make_cluster(2))


def emulated(graph, workspace=0):
  return emulated_graph.of(graph, clusters.FixedCosts(1., workspace), MACHINE)


def nodes(graph):
  return list(emulated_graph.node_defs(emulated(graph)).node)


def test_inputs_are_those_of_the_graph():
  graph = graphs.make_graph([(0, 2, 10, 0), (0, 2, 20, 1), (1, 2)])
  assert list(nodes(graph)[2].input) == ['op0:0', 'op0:1', '^op1']
  assert list(nodes(graph)[0].attr['output_bytes'].list.i) == [10, 20]


def test_a_tensor_with_two_consumers_is_one_output():
  graph = graphs.fan_out(2, 30)
  assert nodes(graph)[0].attr['num_outputs'].i == 1
  assert [list(n.input) for n in nodes(graph)[1:]] == [['op0:0'], ['op0:0']]


def test_control_edge_twice_is_one():
  graph = graphs.make_graph([(0, 1), (0, 1)])
  assert list(nodes(graph)[1].input) == ['^op0']


def test_what_does_not_run_produces_nothing():
  graph = graphs.chain(3, 50).replace(executions=[1, 0, 1])
  found = emulated(graph, workspace=7)
  np.testing.assert_array_equal(found.tensor_bytes, [50, 0])
  np.testing.assert_array_equal(found.workspace_bytes[:, 1], [7, 0, 7])


def test_aliases_and_parameters_are_told():
  graph = graphs.chain(2, op_types=['VarHandleOp', 'MatMul'],
                       param_bytes=[8, 0])
  first, second = nodes(graph)
  assert first.attr['aliased_input'].i == -1
  assert second.attr['aliased_input'].i == -2
  assert first.attr['parameter_bytes'].i == 8


def test_a_merge_passes_on_the_memory_of_the_branch_that_runs():
  """The emulated Merge once passed on the first input, even a dead one."""
  graph = graphs.make_graph([(0, 2, 0), (1, 2, 100)],
                            op_types=['MatMul', 'MatMul',
                                      'Merge']).replace(executions=[0, 1, 1])
  assert list(nodes(graph)[2].input) == ['op1:0', 'op0:0']


def test_sinks_are_what_nothing_waits_for():
  graph = graphs.make_graph([(0, 1, 5), (0, 2)], 4)
  assert emulated(graph).sinks() == ['op1', 'op2', 'op3']


def test_placed_has_devices_and_more_control_edges():
  template = emulated_graph.node_defs(emulated(graphs.make_graph([(0, 1)], 3)))
  placed = emulated_graph.placed(template, np.array([0, 1, 0]), ['a', 'b'],
                                 np.array([[0, 1], [0, 2]]))
  assert [n.device for n in placed.node] == ['a', 'b', 'a']
  assert [list(n.input) for n in placed.node] == [[], ['^op0'], ['^op0']]
  assert not template.node[2].input

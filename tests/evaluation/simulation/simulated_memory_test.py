"""Bytes on devices over time, as one can simulate them in the head.

Links have a latency of 1 s and carry 100 bytes per second unless said
otherwise: a tensor of 100 bytes takes 2 s.
"""

import numpy as np

from helpers import clusters
from helpers import graphs
from helpers import simulations

CPU, GPU0, GPU1 = simulations.CPU, simulations.GPU0, simulations.GPU1


class TestMemory:

  def test_tensor_lives_until_its_last_consumer_ends(self):
    graph = graphs.make_graph([(0, 1, 100), (1, 2, 10), (0, 3, 100), (2, 3, 1)])
    schedule = simulations.simulate(graph, [GPU0] * 4)
    assert simulations.memory_curve(schedule, GPU0) == [(0, 100), (1, 110),
                                                        (2, 111), (3, 101),
                                                        (4, 0)]
    assert schedule.peak_bytes.tolist() == [0, 111, 0]

  def test_tensor_nobody_consumes_lives_while_its_op_runs(self):
    graph = graphs.make_graph(num_ops=1).replace(tensor_ops=[0],
                                                 tensor_bytes=[70])
    assert simulations.memory_curve(simulations.simulate(graph, [GPU0]),
                                    GPU0) == [(0, 70), (1, 0)]

  def test_copy_lives_from_transfer_to_last_consumer(self):
    schedule = simulations.simulate(graphs.fan_out(2), [GPU0, GPU1, GPU1])
    assert simulations.memory_curve(schedule, GPU0) == [(0, 100), (3, 0)]
    assert simulations.memory_curve(schedule, GPU1) == [(0, 0), (1, 100),
                                                        (5, 0)]

  def test_waiting_transfer_has_no_copy_but_keeps_its_tensor(self):
    schedule = simulations.simulate(graphs.fan_out(2), [GPU0, CPU, GPU1])
    assert simulations.memory_curve(schedule, GPU0) == [(0, 100), (5, 0)]
    assert simulations.memory_curve(schedule, GPU1) == [(0, 0), (3, 100),
                                                        (6, 0)]

  def test_devices_share_a_pool(self):
    cluster = clusters.make_cluster(memory=['c', 'g', 'g'])
    schedule = simulations.simulate(graphs.chain(2), [GPU0, GPU1],
                                    cluster=cluster)
    assert schedule.peak_bytes.tolist() == [0, 200]

  def test_workspace_lives_while_its_op_runs(self):
    workspace = np.array([[0, 5, 0], [0, 7, 0], [0, 0, 9]])
    schedule = simulations.simulate(graphs.chain(3, 1), [GPU0, GPU0, GPU1],
                                    workspace=workspace)
    assert simulations.memory_curve(schedule, GPU0) == [(0, 6), (1, 9), (2, 1),
                                                        (3.01, 0)]
    assert schedule.peak_bytes.tolist() == [0, 9, 10]

  def test_parameters_are_there_throughout(self):
    graph = graphs.chain(2, 1, param_bytes=[0, 500])
    schedule = simulations.simulate(graph, [GPU0, GPU0])
    assert simulations.memory_curve(schedule, GPU0) == [(0, 501), (2, 500)]

  def test_a_constant_given_as_memory_and_as_output_is_there_once(self):
    """Its bytes counted twice."""
    graph = graphs.chain(2, 100, op_types=['Const', 'MatMul'],
                         param_bytes=[100, 0])
    schedule = simulations.simulate(graph, [GPU0, GPU0])
    assert schedule.peak_bytes.tolist() == [0, 100, 0]

  def test_reads_of_a_variable_cost_nothing_where_it_is(self):
    graph = _variable_read_twice()
    schedule = simulations.simulate(graph, [GPU0] * 5)
    assert schedule.peak_bytes.tolist() == [0, 1000, 0]

  def test_every_read_elsewhere_is_a_copy(self):
    # Reads end at 2 and 3; copies start at 2 and 13 and go at 14 and 25.
    graph = _variable_read_twice()
    schedule = simulations.simulate(graph, [GPU0, GPU0, GPU0, GPU1, GPU1])
    assert schedule.peak_bytes.tolist() == [0, 1000, 2000]
    assert simulations.memory_curve(schedule, GPU1) == [(0, 0), (2, 1000),
                                                        (13, 2000), (14, 1000),
                                                        (25, 0)]

  def test_alias_keeps_its_inputs_buffer(self):
    graph = graphs.make_graph(
        [(0, 1, 100), (1, 2, 100),
         (2, 3, 7)], op_types=['MatMul', 'Identity', 'Reshape', 'MatMul'])
    schedule = simulations.simulate(graph, [GPU0] * 4)
    assert simulations.memory_curve(schedule, GPU0) == [(0, 100), (4, 0)]

  def test_alias_keeps_a_received_copy(self):
    graph = graphs.make_graph([(0, 1, 100), (1, 2, 100)],
                              op_types=['MatMul', 'Identity', 'MatMul'])
    schedule = simulations.simulate(graph, [GPU0, GPU1, GPU1])
    assert simulations.memory_curve(schedule, GPU0) == [(0, 100), (3, 0)]
    assert simulations.memory_curve(schedule, GPU1) == [(0, 0), (1, 100),
                                                        (5, 0)]

  def test_a_merge_keeps_the_buffer_of_the_branch_that_runs(self):
    """The memory once went too early if the second branch ran."""
    graph = graphs.make_graph([(0, 2, 0), (1, 2, 100), (2, 3, 100)],
                              op_types=['MatMul', 'MatMul', 'Merge', 'MatMul'
                                       ]).replace(executions=[0, 1, 1, 1])
    schedule = simulations.simulate(graph, [GPU0] * 4, [0.0, 1.0, 1.0, 1.0])
    assert simulations.memory_curve(schedule, GPU0) == [(0, 100), (3, 0)]


def _variable_read_twice():
  return graphs.make_graph([(0, 1, 0), (0, 2, 0), (1, 3, 1000), (2, 4, 1000)],
                           op_types=[
                               'VarHandleOp', 'ReadVariableOp',
                               'ReadVariableOp', 'MatMul', 'MatMul'
                           ], param_bytes=[1000, 0, 0, 0, 0])

"""Ops on compute units, as one can simulate them in the head.

Links have a latency of 1 s and carry 100 bytes per second unless said
otherwise: a tensor of 100 bytes takes 2 s.
"""

import numpy as np

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation.simulation import simulator
from helpers import clusters
from helpers import graphs
from helpers import simulations

CPU, GPU0, GPU1 = simulations.CPU, simulations.GPU0, simulations.GPU1


class TestCompute:

  def test_chain_on_one_device_adds_up(self):
    schedule = simulations.simulate(graphs.chain(3), [GPU0] * 3,
                                    [1.0, 2.0, 4.0])
    assert schedule.start_s.tolist() == [0, 1, 3]
    assert schedule.end_s.tolist() == [1, 3, 7]
    assert schedule.step_time_s == 7
    assert len(schedule.transfer_tensors) == 0

  def test_costs_are_those_of_the_device(self):
    seconds = np.array([[1, 10, 100], [2, 20, 200]])
    graph = graphs.make_graph(num_ops=2)
    schedule = simulations.simulate(graph, [GPU1, CPU], seconds)
    assert schedule.end_s.tolist() == [100, 2]

  def test_independent_ops_run_side_by_side_on_two_devices(self):
    graph = graphs.make_graph(num_ops=2)
    assert simulations.simulate(graph, [GPU0, GPU1]).step_time_s == 1
    assert simulations.simulate(graph, [GPU0, GPU0]).step_time_s == 2

  def test_devices_of_one_compute_unit_take_turns(self):
    graph = graphs.make_graph(num_ops=3)
    cluster = clusters.make_cluster(compute=['c', 'g', 'g'])
    schedule = simulations.simulate(graph, [GPU1, GPU0, CPU], cluster=cluster)
    assert schedule.start_s.tolist() == [0, 1, 0]

  def test_first_ready_first_served(self):
    # 2 waits for 0, so that 3, ready one second earlier, precedes it.
    graph = graphs.make_graph([(0, 2), (1, 3)])
    schedule = simulations.simulate(graph, [CPU, GPU0, GPU1, GPU1],
                                    [3.0, 1.0, 1.0, 5.0])
    assert schedule.start_s.tolist() == [0, 0, 7, 2]

  def test_ready_at_one_moment_go_in_topological_order(self):
    # 0 and 1 both wait for 2; the edge to 1 comes first.
    graph = graphs.make_graph([(2, 1, 8), (2, 0, 8)])
    assert graph.topological_order.tolist() == [2, 1, 0]
    assert simulations.simulate(graph, [GPU0] * 3).start_s.tolist() == [2, 1, 0]

  def test_ops_of_no_duration(self):
    graph = graphs.chain(4)
    schedule = simulations.simulate(graph, [GPU0] * 4, [0.0, 0.0, 3.0, 0.0])
    assert schedule.end_s.tolist() == [0, 0, 3, 3]

  def test_graph_without_ops(self):
    schedule = simulations.simulate(graphs.make_graph(num_ops=0), [])
    assert schedule.step_time_s == 0
    assert schedule.peak_bytes.tolist() == [0, 0, 0]

  def test_step_begins_with_what_every_step_takes(self):
    cluster = simulations.cluster_of(step_s=10.0)
    schedule = simulations.simulate(graphs.chain(2, param_bytes=[5, 0]),
                                    [GPU0, GPU1], cluster=cluster)
    assert schedule.start_s.tolist() == [10, 13]
    assert schedule.step_time_s == 14
    assert simulations.memory_curve(schedule, GPU0) == [(0, 5), (10, 105),
                                                        (13, 5)]

  def test_empty_step_takes_what_every_step_takes(self):
    schedule = simulations.simulate(graphs.make_graph(num_ops=0), [],
                                    cluster=simulations.cluster_of(step_s=10.0))
    assert schedule.step_time_s == 10


class TestContention:
  """GPU:0 and GPU:1 share a bus; each slows the other by a half."""

  def _schedule(self, graph, devices, seconds, cluster=None, buses=(0, 1, 1),
                shares=(0., .5, .5)):
    cluster = cluster or clusters.make_cluster()
    return simulator.Simulator(cluster,
                               clusters.FixedCosts(seconds, 0, buses,
                                                   shares)).schedule(
                                                       graph,
                                                       placement_lib.Placement(
                                                           devices, cluster))

  def test_what_starts_beside_a_running_op_takes_longer(self):
    # 1 and 2 begin at one moment: neither is in the middle of something. 3
    # begins when 1 ends, beside 2.
    graph = graphs.make_graph(num_ops=3)
    schedule = self._schedule(graph, [GPU0, GPU1, GPU0], [1., 4., 2.])
    assert schedule.start_s.tolist() == [0, 0, 1]
    assert schedule.end_s.tolist() == [1, 4, 4]

  def test_what_ends_at_that_moment_slows_nobody(self):
    graph = graphs.make_graph(num_ops=4)
    schedule = self._schedule(graph, [GPU0, GPU1, GPU0, GPU1], [1., 1., 1., 1.])
    assert schedule.end_s.tolist() == [1, 1, 2, 2]

  def test_another_bus_slows_nobody(self):
    graph = graphs.make_graph(num_ops=3)
    schedule = self._schedule(graph, [GPU0, GPU1, GPU0], [1., 4., 2.],
                              buses=(0, 1, 2))
    assert schedule.end_s.tolist() == [1, 4, 3]

  def test_each_other_unit_counts(self):
    graph = graphs.make_graph(num_ops=4)
    schedule = self._schedule(graph, [CPU, GPU0, GPU1, GPU1], [9., 9., 1., 2.],
                              buses=(0, 0, 0))
    assert schedule.end_s.tolist() == [9, 9, 1, 1 + 2 * 2]

  def test_devices_of_one_unit_do_not_slow_each_other(self):
    cluster = clusters.make_cluster(compute=['c', 'g', 'g'])
    graph = graphs.make_graph(num_ops=2)
    schedule = self._schedule(graph, [GPU0, GPU1], [1., 2.], cluster)
    assert schedule.end_s.tolist() == [1, 3]

  def test_copying_is_slowed_and_slows(self):
    cluster = simulations.cluster_of(changes={GPU0: {'copy_s': 2.}})
    # 0 ends at 1, GPU0 copies for 2 s, 1.5 times as long beside op 2.
    graph = graphs.make_graph([(0, 1, 100)], num_ops=3)
    schedule = self._schedule(graph, [GPU0, CPU, GPU1], [1., 1., 2.], cluster)
    assert schedule.work_end_s.tolist() == [4]


class TestSlots:

  def test_unit_runs_as_many_ops_at_a_time(self):
    cluster = simulations.cluster_of(changes={CPU: {'slots': 2}})
    schedule = simulations.simulate(graphs.make_graph(num_ops=5), [CPU] * 5,
                                    [1.0, 3.0, 1.0, 1.0, 1.0], cluster)
    assert schedule.start_s.tolist() == [0, 0, 1, 2, 3]
    assert schedule.slots.tolist() == [0, 1, 0, 0, 0]

  def test_lowest_free_slot_is_filled(self):
    cluster = simulations.cluster_of(changes={CPU: {'slots': 3}})
    graph = graphs.make_graph([(0, 3), (0, 4)])
    schedule = simulations.simulate(graph, [CPU] * 5, [1.0, 5.0, 1.0, 1.0, 1.0],
                                    cluster)
    assert schedule.slots.tolist() == [0, 1, 2, 0, 2]

  def test_largest_device_of_a_unit_says_how_many(self):
    cluster = simulations.cluster_of(changes={GPU1: {'slots': 2}},
                                     compute=['c', 'g', 'g'])
    schedule = simulations.simulate(graphs.make_graph(num_ops=3), [GPU0] * 3,
                                    cluster=cluster)
    assert schedule.start_s.tolist() == [0, 0, 1]


class TestPriorities:

  def test_higher_goes_first(self):
    schedule = simulations.simulate(graphs.make_graph(num_ops=3), [GPU0] * 3,
                                    priorities=[1.0, -2.0, 3.5])
    assert schedule.start_s.tolist() == [1, 2, 0]

  def test_later_but_higher_goes_first(self):
    # 3 is ready at 1, 2 from the beginning; the unit is free at 1.
    graph = graphs.make_graph([(0, 3)])
    fifo = simulations.simulate(graph, [GPU0, GPU1, GPU0, GPU0])
    ranked = simulations.simulate(graph, [GPU0, GPU1, GPU0, GPU0],
                                  priorities=[9.0, 0.0, 1.0, 2.0])
    assert fifo.start_s.tolist() == [0, 0, 1, 2]
    assert ranked.start_s.tolist() == [0, 0, 2, 1]

  def test_running_op_is_not_interrupted(self):
    graph = graphs.make_graph([(0, 2)])
    schedule = simulations.simulate(graph, [GPU0, GPU1, GPU1], [1.0, 9.0, 1.0],
                                    priorities=[0.0, 0.0, 5.0])
    assert schedule.start_s[2] == 9

  def test_ties_are_first_in_first_out(self):
    graph = graphs.make_graph([(0, 2), (1, 3)])
    devices, seconds = [CPU, GPU0, GPU1, GPU1], [3.0, 1.0, 1.0, 5.0]
    assert simulations.simulate(
        graph, devices, seconds,
        priorities=np.zeros(4)).start_s.tolist() == [0, 0, 7, 2]

  def test_infinite_priorities(self):
    schedule = simulations.simulate(graphs.make_graph(num_ops=3), [GPU0] * 3,
                                    priorities=[-np.inf, 0.0, np.inf])
    assert schedule.start_s.tolist() == [2, 1, 0]


class TestExecutions:

  def _condition(self):
    """0 switches to 1, which runs, and to 2, which does not; 3 merges."""
    return graphs.make_graph([(0, 1, 100, 0), (0, 2, 100, 1), (1, 3, 100),
                              (2, 3, 100)],
                             op_types=['Switch', 'MatMul', 'MatMul', 'Merge'
                                      ]).replace(executions=[1, 1, 0, 1])

  def test_branch_not_taken_sends_messages_and_occupies_nothing(self):
    graph = self._condition().replace(op_types=['MatMul'] * 4)
    schedule = simulations.simulate(graph, [GPU0, GPU0, GPU1, GPU0],
                                    [1.0, 1.0, 0.0, 1.0],
                                    workspace=[0, 0, 500, 0])
    # The tensor of 0 is sent 1-3; that of 2 is dead, 3-4.
    assert schedule.transfer_tensors.tolist() == [1, 3]
    assert schedule.transfer_end_s.tolist() == [3, 4]
    assert schedule.start_s.tolist() == [0, 1, 3, 4]
    assert simulations.memory_curve(schedule, GPU1) == [(0, 0), (1, 100),
                                                        (3, 0)]

  def test_dead_alias_does_not_keep_its_input(self):
    graph = graphs.make_graph([(0, 1, 100), (1, 2, 100)],
                              op_types=['MatMul', 'Identity',
                                        'MatMul']).replace(executions=[1, 0, 0])
    schedule = simulations.simulate(graph, [GPU0] * 3, [1.0, 0.0, 2.0])
    assert simulations.memory_curve(schedule, GPU0) == [(0, 100), (1, 0)]

  def test_constants_stay(self):
    """The memory of frozen weights was free after their last reader."""
    graph = graphs.make_graph([(0, 1, 100), (1, 2, 40)],
                              op_types=['Const', 'MatMul', 'MatMul'])
    schedule = simulations.simulate(graph, [GPU0] * 3)
    assert simulations.memory_curve(schedule, GPU0) == [(0, 100), (1, 140),
                                                        (3, 100)]

  def test_tensors_of_a_loop_have_their_size(self):
    graph = graphs.chain(2).replace(executions=[7, 7])
    schedule = simulations.simulate(graph, [GPU0, GPU1])
    assert schedule.transfer_end_s.tolist() == [3]
    assert schedule.peak_bytes.tolist() == [0, 100, 100]

"""Cases that one can simulate in the head.

Links have a latency of 1 s and carry 100 bytes per second unless said
otherwise: a tensor of 100 bytes takes 2 s.
"""

import dataclasses

import numpy as np

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation.simulation import simulator
from helpers import clusters
from helpers import graphs

CPU, GPU0, GPU1 = range(3)


def _simulate(graph, devices, seconds=1.0, cluster=None, priorities=None,
              workspace=0):
  cluster = cluster or clusters.make_cluster()
  costs = clusters.FixedCosts(seconds, workspace)
  return simulator.Simulator(cluster, costs).schedule(
      graph, placement_lib.Placement(devices, cluster, priorities))


def _cluster_of(step_s=0.0, changes=None, **fields):
  """make_cluster(**fields) with changes of some devices, {index: {...}}."""
  cluster = clusters.make_cluster(**fields)
  devices = [
      dataclasses.replace(device,
                          **(changes or {}).get(i, {}))
      for i, device in enumerate(cluster.devices)
  ]
  return dataclasses.replace(cluster, devices=devices, step_s=step_s)


def _curve(schedule, pool):
  mine = schedule.memory_pools == pool
  return list(
      zip(schedule.memory_s[mine].tolist(),
          schedule.memory_bytes[mine].tolist()))


class TestCompute:

  def test_chain_on_one_device_adds_up(self):
    schedule = _simulate(graphs.chain(3), [GPU0] * 3, [1.0, 2.0, 4.0])
    assert schedule.start_s.tolist() == [0, 1, 3]
    assert schedule.end_s.tolist() == [1, 3, 7]
    assert schedule.step_time_s == 7
    assert schedule.num_transfers == 0

  def test_costs_are_those_of_the_device(self):
    seconds = np.array([[1, 10, 100], [2, 20, 200]])
    graph = graphs.make_graph(num_ops=2)
    schedule = _simulate(graph, [GPU1, CPU], seconds)
    assert schedule.end_s.tolist() == [100, 2]

  def test_independent_ops_run_side_by_side_on_two_devices(self):
    graph = graphs.make_graph(num_ops=2)
    assert _simulate(graph, [GPU0, GPU1]).step_time_s == 1
    assert _simulate(graph, [GPU0, GPU0]).step_time_s == 2

  def test_devices_of_one_compute_unit_take_turns(self):
    graph = graphs.make_graph(num_ops=3)
    cluster = clusters.make_cluster(compute=['c', 'g', 'g'])
    schedule = _simulate(graph, [GPU1, GPU0, CPU], cluster=cluster)
    assert schedule.start_s.tolist() == [0, 1, 0]

  def test_first_ready_first_served(self):
    # 2 waits for 0, so that 3, ready one second earlier, precedes it.
    graph = graphs.make_graph([(0, 2), (1, 3)])
    schedule = _simulate(graph, [CPU, GPU0, GPU1, GPU1], [3.0, 1.0, 1.0, 5.0])
    assert schedule.start_s.tolist() == [0, 0, 7, 2]

  def test_ready_at_one_moment_go_in_topological_order(self):
    # 0 and 1 both wait for 2; the edge to 1 comes first.
    graph = graphs.make_graph([(2, 1, 8), (2, 0, 8)])
    assert graph.topological_order.tolist() == [2, 1, 0]
    assert _simulate(graph, [GPU0] * 3).start_s.tolist() == [2, 1, 0]

  def test_ops_of_no_duration(self):
    graph = graphs.chain(4)
    schedule = _simulate(graph, [GPU0] * 4, [0.0, 0.0, 3.0, 0.0])
    assert schedule.end_s.tolist() == [0, 0, 3, 3]

  def test_graph_without_ops(self):
    schedule = _simulate(graphs.make_graph(num_ops=0), [])
    assert schedule.step_time_s == 0
    assert schedule.peak_bytes.tolist() == [0, 0, 0]

  def test_step_begins_with_what_every_step_takes(self):
    cluster = _cluster_of(step_s=10.0)
    schedule = _simulate(graphs.chain(2, param_bytes=[5, 0]), [GPU0, GPU1],
                         cluster=cluster)
    assert schedule.start_s.tolist() == [10, 13]
    assert schedule.step_time_s == 14
    assert _curve(schedule, GPU0) == [(0, 5), (10, 105), (13, 5)]

  def test_empty_step_takes_what_every_step_takes(self):
    schedule = _simulate(graphs.make_graph(num_ops=0), [],
                         cluster=_cluster_of(step_s=10.0))
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
    cluster = _cluster_of(changes={GPU0: {'copy_s': 2.}})
    # 0 ends at 1, GPU0 copies for 2 s, 1.5 times as long beside op 2.
    graph = graphs.make_graph([(0, 1, 100)], num_ops=3)
    schedule = self._schedule(graph, [GPU0, CPU, GPU1], [1., 1., 2.], cluster)
    assert schedule.work_end_s.tolist() == [4]


class TestSlots:

  def test_unit_runs_as_many_ops_at_a_time(self):
    cluster = _cluster_of(changes={CPU: {'slots': 2}})
    schedule = _simulate(graphs.make_graph(num_ops=5), [CPU] * 5,
                         [1.0, 3.0, 1.0, 1.0, 1.0], cluster)
    assert schedule.start_s.tolist() == [0, 0, 1, 2, 3]
    assert schedule.slots.tolist() == [0, 1, 0, 0, 0]

  def test_lowest_free_slot_is_filled(self):
    cluster = _cluster_of(changes={CPU: {'slots': 3}})
    graph = graphs.make_graph([(0, 3), (0, 4)])
    schedule = _simulate(graph, [CPU] * 5, [1.0, 5.0, 1.0, 1.0, 1.0], cluster)
    assert schedule.slots.tolist() == [0, 1, 2, 0, 2]

  def test_largest_device_of_a_unit_says_how_many(self):
    cluster = _cluster_of(changes={GPU1: {'slots': 2}}, compute=['c', 'g', 'g'])
    schedule = _simulate(graphs.make_graph(num_ops=3), [GPU0] * 3,
                         cluster=cluster)
    assert schedule.start_s.tolist() == [0, 0, 1]


class TestPriorities:

  def test_higher_goes_first(self):
    schedule = _simulate(graphs.make_graph(num_ops=3), [GPU0] * 3,
                         priorities=[1.0, -2.0, 3.5])
    assert schedule.start_s.tolist() == [1, 2, 0]

  def test_later_but_higher_goes_first(self):
    # 3 is ready at 1, 2 from the beginning; the unit is free at 1.
    graph = graphs.make_graph([(0, 3)])
    fifo = _simulate(graph, [GPU0, GPU1, GPU0, GPU0])
    ranked = _simulate(graph, [GPU0, GPU1, GPU0, GPU0],
                       priorities=[9.0, 0.0, 1.0, 2.0])
    assert fifo.start_s.tolist() == [0, 0, 1, 2]
    assert ranked.start_s.tolist() == [0, 0, 2, 1]

  def test_running_op_is_not_interrupted(self):
    graph = graphs.make_graph([(0, 2)])
    schedule = _simulate(graph, [GPU0, GPU1, GPU1], [1.0, 9.0, 1.0],
                         priorities=[0.0, 0.0, 5.0])
    assert schedule.start_s[2] == 9

  def test_ties_are_first_in_first_out(self):
    graph = graphs.make_graph([(0, 2), (1, 3)])
    devices, seconds = [CPU, GPU0, GPU1, GPU1], [3.0, 1.0, 1.0, 5.0]
    assert _simulate(graph, devices, seconds,
                     priorities=np.zeros(4)).start_s.tolist() == [0, 0, 7, 2]

  def test_infinite_priorities(self):
    schedule = _simulate(graphs.make_graph(num_ops=3), [GPU0] * 3,
                         priorities=[-np.inf, 0.0, np.inf])
    assert schedule.start_s.tolist() == [2, 1, 0]


class TestTransfers:

  def test_transfer_takes_latency_and_bytes(self):
    schedule = _simulate(graphs.chain(2, 300), [GPU0, GPU1])
    assert schedule.transfer_start_s.tolist() == [1]
    assert schedule.transfer_end_s.tolist() == [1 + 1 + 3]
    assert schedule.start_s.tolist() == [0, 5]
    assert schedule.step_time_s == 6

  def test_tensor_is_sent_once_per_device(self):
    schedule = _simulate(graphs.fan_out(2), [GPU0, GPU1, GPU1])
    assert schedule.num_transfers == 1
    assert schedule.start_s.tolist() == [0, 3, 4]

  def test_two_tensors_of_one_op_are_sent_one_after_the_other(self):
    graph = graphs.make_graph([(0, 1, 100, 0), (0, 1, 100, 1)])
    schedule = _simulate(graph, [GPU0, GPU1])
    assert schedule.transfer_tensors.tolist() == [0, 1]
    assert schedule.transfer_start_s.tolist() == [1, 3]
    assert schedule.start_s[1] == 5

  def test_sender_with_one_way_out_sends_in_turn(self):
    schedule = _simulate(graphs.fan_out(2), [GPU0, CPU, GPU1])
    assert schedule.transfer_targets.tolist() == [CPU, GPU1]
    assert schedule.transfer_start_s.tolist() == [1, 3]
    assert schedule.start_s.tolist() == [0, 3, 5]

  def test_receiver_with_one_way_in_receives_in_turn(self):
    graph = graphs.make_graph([(0, 2, 100), (1, 2, 100)])
    schedule = _simulate(graph, [CPU, GPU0, GPU1])
    assert schedule.transfer_sources.tolist() == [CPU, GPU0]
    assert schedule.transfer_start_s.tolist() == [1, 3]
    assert schedule.start_s[2] == 5

  def test_links_without_a_common_channel_do_not_wait(self):
    graph = graphs.make_graph([(0, 2, 100), (1, 3, 100)])
    schedule = _simulate(graph, [GPU0, GPU1, GPU1, GPU0])
    assert schedule.transfer_start_s.tolist() == [1, 1]

  def test_all_links_on_one_bus_wait(self):
    graph = graphs.make_graph([(0, 2, 100), (1, 3, 100)])
    cluster = clusters.make_cluster(channels=lambda a, b: ('bus',))
    schedule = _simulate(graph, [GPU0, GPU1, GPU1, GPU0], cluster=cluster)
    assert schedule.transfer_start_s.tolist() == [1, 3]

  def test_transfers_run_beside_compute(self):
    graph = graphs.make_graph([(0, 1, 100), (0, 2, 100)])
    schedule = _simulate(graph, [GPU0, GPU0, GPU1], [1.0, 5.0, 1.0])
    assert schedule.start_s.tolist() == [0, 1, 3]

  def test_channel_serves_in_the_order_of_requests(self):
    # The transfer of 1 to the CPU waits for that of 0 to GPU:1, although the
    # CPU's own channel is free.
    graph = graphs.make_graph([(0, 2, 900), (1, 3, 100)])
    schedule = _simulate(graph, [GPU0, GPU0, GPU1, CPU])
    assert schedule.transfer_start_s.tolist() == [1, 11]

  def test_op_with_the_same_tensor_twice(self):
    graph = graphs.make_graph([(0, 1, 100), (0, 1, 100)])
    schedule = _simulate(graph, [GPU0, GPU1])
    assert schedule.num_transfers == 1
    assert schedule.start_s[1] == 3


class TestChannels:

  def test_transfer_waits_for_all_of_its_channels(self):
    # Every link has a channel of its own, and those into GPU:1 one switch.
    def channels(a, b):
      return (a, b, a + b, *(['switch'] if b == 'GPU:1' else []))

    graph = graphs.make_graph([(0, 2, 100), (1, 3, 100)])
    cluster = clusters.make_cluster(3, channels=channels)
    schedule = _simulate(graph, [CPU, GPU0, GPU1, GPU1], cluster=cluster)
    assert schedule.transfer_start_s.tolist() == [1, 3]
    schedule = _simulate(graph, [CPU, GPU0, GPU1, 3], cluster=cluster)
    assert schedule.transfer_start_s.tolist() == [1, 1]

  def test_eight_channels(self):

    def channels(a, b):
      return tuple(f'{a} {i}' for i in range(7)) + (b,)

    graph = graphs.make_graph([(0, 2, 100), (1, 3, 100), (1, 4, 100)])
    schedule = _simulate(graph, [GPU0, CPU, GPU1, GPU1, GPU0],
                         cluster=(clusters.make_cluster(channels=channels)))
    assert schedule.transfer_start_s.tolist() == [1, 3, 5]


class TestDevicesWithoutCopyEngines:
  """GPU:0 needs 2 s + bytes / 50 for a transfer: 4 s for 100 bytes."""

  _COPIES = {'copy_s': 2.0, 'copy_bytes_per_s': 50.0}

  def _simulate(self, graph, devices, who=(GPU0,), seconds=1.0, **fields):
    cluster = _cluster_of(changes={d: self._COPIES for d in who})
    return _simulate(graph, devices, seconds, cluster, **fields)

  def test_sender_copies_before_the_transfer(self):
    schedule = self._simulate(graphs.chain(2), [GPU0, GPU1])
    assert schedule.work_transfers.tolist() == [0]
    assert schedule.work_devices.tolist() == [GPU0]
    assert schedule.work_start_s.tolist() == [1]
    assert schedule.work_end_s.tolist() == [5]
    assert schedule.transfer_start_s.tolist() == [5]
    assert schedule.start_s.tolist() == [0, 7]

  def test_receiver_copies_after_the_transfer(self):
    schedule = self._simulate(graphs.chain(2), [GPU1, GPU0])
    assert schedule.transfer_end_s.tolist() == [3]
    assert schedule.work_devices.tolist() == [GPU0]
    assert schedule.work_start_s.tolist() == [3]
    assert schedule.start_s.tolist() == [0, 7]

  def test_both_copy(self):
    schedule = self._simulate(graphs.chain(2), [GPU0, GPU1], (GPU0, GPU1))
    assert schedule.work_devices.tolist() == [GPU0, GPU1]
    assert schedule.work_start_s.tolist() == [1, 7]
    assert schedule.start_s.tolist() == [0, 11]

  def test_copying_goes_ahead_of_waiting_ops(self):
    graph = graphs.make_graph([(0, 1, 100)], 3)
    schedule = self._simulate(graph, [GPU0, GPU1, GPU0],
                              priorities=[1.0, 0.0, 0.0])
    assert schedule.start_s.tolist() == [0, 7, 5]

  def test_copying_waits_for_a_running_op(self):
    graph = graphs.make_graph([(0, 1, 100)], 3)
    schedule = self._simulate(graph, [GPU1, GPU0, GPU0],
                              seconds=[1.0, 1.0, 20.0])
    assert schedule.work_start_s.tolist() == [20]
    assert schedule.start_s.tolist() == [0, 24, 0]

  def test_message_costs_no_bytes(self):
    schedule = self._simulate(graphs.make_graph([(0, 1)]), [GPU0, GPU1])
    assert schedule.work_end_s.tolist() == [3]
    assert schedule.start_s.tolist() == [0, 4]

  def test_nothing_is_owed_for_a_message_without_overhead(self):
    cluster = _cluster_of(changes={GPU0: {'copy_bytes_per_s': 50.0}})
    schedule = _simulate(graphs.make_graph([(0, 1), (0, 2, 100)]),
                         [GPU0, GPU1, GPU1], cluster=cluster)
    assert schedule.transfer_tensors.tolist() == [0, -1]
    assert schedule.work_transfers.tolist() == [0]

  def test_what_fell_due_first_goes_first(self):
    schedule = self._simulate(graphs.fan_out(2), [GPU0, GPU1, CPU])
    assert schedule.transfer_targets.tolist() == [GPU1, CPU]
    assert schedule.work_start_s.tolist() == [1, 5]

  def test_copies_fill_slots(self):
    cluster = _cluster_of(changes={GPU0: {**self._COPIES, 'slots': 2}})
    schedule = _simulate(graphs.fan_out(2), [GPU0, GPU1, CPU], cluster=cluster)
    assert schedule.work_start_s.tolist() == [1, 1]
    assert schedule.work_slots.tolist() == [0, 1]

  def test_received_copy_lives_while_the_receiver_copies(self):
    schedule = self._simulate(graphs.chain(2), [GPU1, GPU0])
    assert _curve(schedule, GPU1) == [(0, 100), (3, 0)]
    assert _curve(schedule, GPU0) == [(0, 0), (1, 100), (8, 0)]


class TestExecutions:

  def _condition(self):
    """0 switches to 1, which runs, and to 2, which does not; 3 merges."""
    return graphs.make_graph([(0, 1, 100, 0), (0, 2, 100, 1), (1, 3, 100),
                              (2, 3, 100)],
                             op_types=['Switch', 'MatMul', 'MatMul', 'Merge'
                                      ]).replace(executions=[1, 1, 0, 1])

  def test_branch_not_taken_sends_messages_and_occupies_nothing(self):
    graph = self._condition().replace(op_types=['MatMul'] * 4)
    schedule = _simulate(graph, [GPU0, GPU0, GPU1, GPU0], [1.0, 1.0, 0.0, 1.0],
                         workspace=[0, 0, 500, 0])
    # The tensor of 0 is sent 1-3; that of 2 is dead, 3-4.
    assert schedule.transfer_tensors.tolist() == [1, 3]
    assert schedule.transfer_end_s.tolist() == [3, 4]
    assert schedule.start_s.tolist() == [0, 1, 3, 4]
    assert _curve(schedule, GPU1) == [(0, 0), (1, 100), (3, 0)]

  def test_dead_alias_does_not_keep_its_input(self):
    graph = graphs.make_graph([(0, 1, 100), (1, 2, 100)],
                              op_types=['MatMul', 'Identity',
                                        'MatMul']).replace(executions=[1, 0, 0])
    schedule = _simulate(graph, [GPU0] * 3, [1.0, 0.0, 2.0])
    assert _curve(schedule, GPU0) == [(0, 100), (1, 0)]

  def test_tensors_of_a_loop_have_their_size(self):
    graph = graphs.chain(2).replace(executions=[7, 7])
    schedule = _simulate(graph, [GPU0, GPU1])
    assert schedule.transfer_end_s.tolist() == [3]
    assert schedule.peak_bytes.tolist() == [0, 100, 100]


class TestMessages:

  def test_control_edge_orders_on_one_device(self):
    graph = graphs.make_graph([(1, 0)])
    assert _simulate(graph, [GPU0, GPU0]).start_s.tolist() == [1, 0]

  def test_control_edge_across_devices_takes_the_latency(self):
    schedule = _simulate(graphs.make_graph([(0, 1)]), [GPU0, GPU1])
    assert schedule.transfer_tensors.tolist() == [-1]
    assert schedule.start_s.tolist() == [0, 2]

  def test_control_edges_of_one_op_are_one_message_per_device(self):
    graph = graphs.make_graph([(0, 1), (0, 2), (0, 3)])
    schedule = _simulate(graph, [GPU0, GPU1, GPU1, CPU])
    assert schedule.transfer_targets.tolist() == [GPU1, CPU]

  def test_messages_and_empty_tensors_do_not_occupy_channels(self):
    graph = graphs.make_graph([(0, 1, 100, 0), (0, 2, 0, 1), (0, 3)])
    schedule = _simulate(graph, [GPU0, GPU1, GPU1, GPU1])
    assert schedule.transfer_tensors.tolist() == [0, 1, -1]
    assert schedule.transfer_start_s.tolist() == [1, 1, 1]
    assert schedule.transfer_end_s.tolist() == [3, 2, 2]


class TestMemory:

  def test_tensor_lives_until_its_last_consumer_ends(self):
    graph = graphs.make_graph([(0, 1, 100), (1, 2, 10), (0, 3, 100), (2, 3, 1)])
    schedule = _simulate(graph, [GPU0] * 4)
    assert _curve(schedule, GPU0) == [(0, 100), (1, 110), (2, 111), (3, 101),
                                      (4, 0)]
    assert schedule.peak_bytes.tolist() == [0, 111, 0]

  def test_tensor_nobody_consumes_lives_while_its_op_runs(self):
    graph = graphs.make_graph(num_ops=1).replace(tensor_ops=[0],
                                                 tensor_bytes=[70])
    assert _curve(_simulate(graph, [GPU0]), GPU0) == [(0, 70), (1, 0)]

  def test_copy_lives_from_transfer_to_last_consumer(self):
    schedule = _simulate(graphs.fan_out(2), [GPU0, GPU1, GPU1])
    assert _curve(schedule, GPU0) == [(0, 100), (3, 0)]
    assert _curve(schedule, GPU1) == [(0, 0), (1, 100), (5, 0)]

  def test_waiting_transfer_has_no_copy_but_keeps_its_tensor(self):
    schedule = _simulate(graphs.fan_out(2), [GPU0, CPU, GPU1])
    assert _curve(schedule, GPU0) == [(0, 100), (5, 0)]
    assert _curve(schedule, GPU1) == [(0, 0), (3, 100), (6, 0)]

  def test_devices_share_a_pool(self):
    cluster = clusters.make_cluster(memory=['c', 'g', 'g'])
    schedule = _simulate(graphs.chain(2), [GPU0, GPU1], cluster=cluster)
    assert schedule.peak_bytes.tolist() == [0, 200]

  def test_workspace_lives_while_its_op_runs(self):
    workspace = np.array([[0, 5, 0], [0, 7, 0], [0, 0, 9]])
    schedule = _simulate(graphs.chain(3, 1), [GPU0, GPU0, GPU1],
                         workspace=workspace)
    assert _curve(schedule, GPU0) == [(0, 6), (1, 9), (2, 1), (3.01, 0)]
    assert schedule.peak_bytes.tolist() == [0, 9, 10]

  def test_parameters_are_there_throughout(self):
    graph = graphs.chain(2, 1, param_bytes=[0, 500])
    schedule = _simulate(graph, [GPU0, GPU0])
    assert _curve(schedule, GPU0) == [(0, 501), (2, 500)]

  def test_reads_of_a_variable_cost_nothing_where_it_is(self):
    graph = _variable_read_twice()
    schedule = _simulate(graph, [GPU0] * 5)
    assert schedule.peak_bytes.tolist() == [0, 1000, 0]

  def test_every_read_elsewhere_is_a_copy(self):
    # Reads end at 2 and 3; copies start at 2 and 13 and go at 14 and 25.
    graph = _variable_read_twice()
    schedule = _simulate(graph, [GPU0, GPU0, GPU0, GPU1, GPU1])
    assert schedule.peak_bytes.tolist() == [0, 1000, 2000]
    assert _curve(schedule, GPU1) == [(0, 0), (2, 1000), (13, 2000), (14, 1000),
                                      (25, 0)]

  def test_alias_keeps_its_inputs_buffer(self):
    graph = graphs.make_graph(
        [(0, 1, 100), (1, 2, 100),
         (2, 3, 7)], op_types=['MatMul', 'Identity', 'Reshape', 'MatMul'])
    schedule = _simulate(graph, [GPU0] * 4)
    assert _curve(schedule, GPU0) == [(0, 100), (4, 0)]

  def test_alias_keeps_a_received_copy(self):
    graph = graphs.make_graph([(0, 1, 100), (1, 2, 100)],
                              op_types=['MatMul', 'Identity', 'MatMul'])
    schedule = _simulate(graph, [GPU0, GPU1, GPU1])
    assert _curve(schedule, GPU0) == [(0, 100), (3, 0)]
    assert _curve(schedule, GPU1) == [(0, 0), (1, 100), (5, 0)]


def _variable_read_twice():
  return graphs.make_graph([(0, 1, 0), (0, 2, 0), (1, 3, 1000), (2, 4, 1000)],
                           op_types=[
                               'VarHandleOp', 'ReadVariableOp',
                               'ReadVariableOp', 'MatMul', 'MatMul'
                           ], param_bytes=[1000, 0, 0, 0, 0])

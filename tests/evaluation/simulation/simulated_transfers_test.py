"""Tensors and messages between devices, as one can simulate them in the head.

Links have a latency of 1 s and carry 100 bytes per second unless said
otherwise: a tensor of 100 bytes takes 2 s.
"""

from helpers import clusters
from helpers import graphs
from helpers import simulations

CPU, GPU0, GPU1 = simulations.CPU, simulations.GPU0, simulations.GPU1


class TestTransfers:

  def test_transfer_takes_latency_and_bytes(self):
    schedule = simulations.simulate(graphs.chain(2, 300), [GPU0, GPU1])
    assert schedule.transfer_start_s.tolist() == [1]
    assert schedule.transfer_end_s.tolist() == [1 + 1 + 3]
    assert schedule.start_s.tolist() == [0, 5]
    assert schedule.step_time_s == 6

  def test_tensor_is_sent_once_per_device(self):
    schedule = simulations.simulate(graphs.fan_out(2), [GPU0, GPU1, GPU1])
    assert len(schedule.transfer_tensors) == 1
    assert schedule.start_s.tolist() == [0, 3, 4]

  def test_two_tensors_of_one_op_are_sent_one_after_the_other(self):
    graph = graphs.make_graph([(0, 1, 100, 0), (0, 1, 100, 1)])
    schedule = simulations.simulate(graph, [GPU0, GPU1])
    assert schedule.transfer_tensors.tolist() == [0, 1]
    assert schedule.transfer_start_s.tolist() == [1, 3]
    assert schedule.start_s[1] == 5

  def test_sender_with_one_way_out_sends_in_turn(self):
    schedule = simulations.simulate(graphs.fan_out(2), [GPU0, CPU, GPU1])
    assert schedule.transfer_targets.tolist() == [CPU, GPU1]
    assert schedule.transfer_start_s.tolist() == [1, 3]
    assert schedule.start_s.tolist() == [0, 3, 5]

  def test_receiver_with_one_way_in_receives_in_turn(self):
    graph = graphs.make_graph([(0, 2, 100), (1, 2, 100)])
    schedule = simulations.simulate(graph, [CPU, GPU0, GPU1])
    assert schedule.transfer_sources.tolist() == [CPU, GPU0]
    assert schedule.transfer_start_s.tolist() == [1, 3]
    assert schedule.start_s[2] == 5

  def test_links_without_a_common_channel_do_not_wait(self):
    graph = graphs.make_graph([(0, 2, 100), (1, 3, 100)])
    schedule = simulations.simulate(graph, [GPU0, GPU1, GPU1, GPU0])
    assert schedule.transfer_start_s.tolist() == [1, 1]

  def test_all_links_on_one_bus_wait(self):
    graph = graphs.make_graph([(0, 2, 100), (1, 3, 100)])
    cluster = clusters.make_cluster(channels=lambda a, b: ('bus',))
    schedule = simulations.simulate(graph, [GPU0, GPU1, GPU1, GPU0],
                                    cluster=cluster)
    assert schedule.transfer_start_s.tolist() == [1, 3]

  def test_transfers_run_beside_compute(self):
    graph = graphs.make_graph([(0, 1, 100), (0, 2, 100)])
    schedule = simulations.simulate(graph, [GPU0, GPU0, GPU1], [1.0, 5.0, 1.0])
    assert schedule.start_s.tolist() == [0, 1, 3]

  def test_channel_serves_in_the_order_of_requests(self):
    # The transfer of 1 to the CPU waits for that of 0 to GPU:1, although the
    # CPU's own channel is free.
    graph = graphs.make_graph([(0, 2, 900), (1, 3, 100)])
    schedule = simulations.simulate(graph, [GPU0, GPU0, GPU1, CPU])
    assert schedule.transfer_start_s.tolist() == [1, 11]

  def test_op_with_the_same_tensor_twice(self):
    graph = graphs.make_graph([(0, 1, 100), (0, 1, 100)])
    schedule = simulations.simulate(graph, [GPU0, GPU1])
    assert len(schedule.transfer_tensors) == 1
    assert schedule.start_s[1] == 3


class TestChannels:

  def test_transfer_waits_for_all_of_its_channels(self):
    # Every link has a channel of its own, and those into GPU:1 one switch.
    def channels(a, b):
      return (a, b, a + b, *(['switch'] if b == 'GPU:1' else []))

    graph = graphs.make_graph([(0, 2, 100), (1, 3, 100)])
    cluster = clusters.make_cluster(3, channels=channels)
    schedule = simulations.simulate(graph, [CPU, GPU0, GPU1, GPU1],
                                    cluster=cluster)
    assert schedule.transfer_start_s.tolist() == [1, 3]
    schedule = simulations.simulate(graph, [CPU, GPU0, GPU1, 3],
                                    cluster=cluster)
    assert schedule.transfer_start_s.tolist() == [1, 1]

  def test_eight_channels(self):

    def channels(a, b):
      return tuple(f'{a} {i}' for i in range(7)) + (b,)

    graph = graphs.make_graph([(0, 2, 100), (1, 3, 100), (1, 4, 100)])
    schedule = simulations.simulate(
        graph, [GPU0, CPU, GPU1, GPU1, GPU0],
        cluster=(clusters.make_cluster(channels=channels)))
    assert schedule.transfer_start_s.tolist() == [1, 3, 5]


class TestDevicesWithoutCopyEngines:
  """GPU:0 needs 2 s + bytes / 50 for a transfer: 4 s for 100 bytes."""

  _COPIES = {'copy_s': 2.0, 'copy_bytes_per_s': 50.0}

  def _simulate(self, graph, devices, who=(GPU0,), seconds=1.0, **fields):
    cluster = simulations.cluster_of(changes={d: self._COPIES for d in who})
    return simulations.simulate(graph, devices, seconds, cluster, **fields)

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
    cluster = simulations.cluster_of(changes={GPU0: {'copy_bytes_per_s': 50.0}})
    schedule = simulations.simulate(graphs.make_graph([(0, 1), (0, 2, 100)]),
                                    [GPU0, GPU1, GPU1], cluster=cluster)
    assert schedule.transfer_tensors.tolist() == [0, -1]
    assert schedule.work_transfers.tolist() == [0]

  def test_what_fell_due_first_goes_first(self):
    schedule = self._simulate(graphs.fan_out(2), [GPU0, GPU1, CPU])
    assert schedule.transfer_targets.tolist() == [GPU1, CPU]
    assert schedule.work_start_s.tolist() == [1, 5]

  def test_copies_fill_slots(self):
    cluster = simulations.cluster_of(
        changes={GPU0: {**self._COPIES, 'slots': 2}})
    schedule = simulations.simulate(graphs.fan_out(2), [GPU0, GPU1, CPU],
                                    cluster=cluster)
    assert schedule.work_start_s.tolist() == [1, 1]
    assert schedule.work_slots.tolist() == [0, 1]

  def test_received_copy_lives_while_the_receiver_copies(self):
    schedule = self._simulate(graphs.chain(2), [GPU1, GPU0])
    assert simulations.memory_curve(schedule, GPU1) == [(0, 100), (3, 0)]
    assert simulations.memory_curve(schedule, GPU0) == [(0, 0), (1, 100),
                                                        (8, 0)]


class TestMessages:

  def test_control_edge_orders_on_one_device(self):
    graph = graphs.make_graph([(1, 0)])
    assert simulations.simulate(graph, [GPU0, GPU0]).start_s.tolist() == [1, 0]

  def test_control_edge_across_devices_takes_the_latency(self):
    schedule = simulations.simulate(graphs.make_graph([(0, 1)]), [GPU0, GPU1])
    assert schedule.transfer_tensors.tolist() == [-1]
    assert schedule.start_s.tolist() == [0, 2]

  def test_control_edges_of_one_op_are_one_message_per_device(self):
    graph = graphs.make_graph([(0, 1), (0, 2), (0, 3)])
    schedule = simulations.simulate(graph, [GPU0, GPU1, GPU1, CPU])
    assert schedule.transfer_targets.tolist() == [GPU1, CPU]

  def test_messages_and_empty_tensors_do_not_occupy_channels(self):
    graph = graphs.make_graph([(0, 1, 100, 0), (0, 2, 0, 1), (0, 3)])
    schedule = simulations.simulate(graph, [GPU0, GPU1, GPU1, GPU1])
    assert schedule.transfer_tensors.tolist() == [0, 1, -1]
    assert schedule.transfer_start_s.tolist() == [1, 1, 1]
    assert schedule.transfer_end_s.tolist() == [3, 2, 2]

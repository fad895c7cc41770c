"""Cases that one can simulate in the head.

Links have a latency of 1 s and carry 100 bytes per second unless said
otherwise: a tensor of 100 bytes takes 2 s.
"""

import numpy as np

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import simulator
from tests.helpers import clusters
from tests.helpers import graphs

CPU, GPU0, GPU1 = range(3)


def _simulate(graph, devices, seconds=1.0, cluster=None):
  cluster = cluster or clusters.make_cluster()
  return simulator.Simulator(cluster, clusters.FixedCosts(seconds)).schedule(
      graph, placement_lib.Placement(devices, cluster))


def _curve(schedule, pool):
  mine = schedule.memory_pools == pool
  return list(zip(schedule.memory_s[mine].tolist(),
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
    graph = graphs.make_graph(
        [(0, 1, 100, 0), (0, 2, 0, 1), (0, 3)])
    schedule = _simulate(graph, [GPU0, GPU1, GPU1, GPU1])
    assert schedule.transfer_tensors.tolist() == [0, 1, -1]
    assert schedule.transfer_start_s.tolist() == [1, 1, 1]
    assert schedule.transfer_end_s.tolist() == [3, 2, 2]


class TestMemory:

  def test_tensor_lives_until_its_last_consumer_ends(self):
    graph = graphs.make_graph([(0, 1, 100), (1, 2, 10), (0, 3, 100), (2, 3, 1)])
    schedule = _simulate(graph, [GPU0] * 4)
    assert _curve(schedule, GPU0) == [
        (0, 100), (1, 110), (2, 111), (3, 101), (4, 0)]
    assert schedule.peak_bytes.tolist() == [0, 111, 0]

  def test_tensor_nobody_consumes_lives_while_its_op_runs(self):
    graph = graphs.make_graph(num_ops=1).replace(
        tensor_ops=[0], tensor_bytes=[70])
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
    assert _curve(schedule, GPU1) == [
        (0, 0), (2, 1000), (13, 2000), (14, 1000), (25, 0)]

  def test_alias_keeps_its_inputs_buffer(self):
    graph = graphs.make_graph(
        [(0, 1, 100), (1, 2, 100), (2, 3, 7)],
        op_types=['MatMul', 'Identity', 'Reshape', 'MatMul'])
    schedule = _simulate(graph, [GPU0] * 4)
    assert _curve(schedule, GPU0) == [(0, 100), (4, 0)]

  def test_alias_keeps_a_received_copy(self):
    graph = graphs.make_graph([(0, 1, 100), (1, 2, 100)],
                              op_types=['MatMul', 'Identity', 'MatMul'])
    schedule = _simulate(graph, [GPU0, GPU1, GPU1])
    assert _curve(schedule, GPU0) == [(0, 100), (3, 0)]
    assert _curve(schedule, GPU1) == [(0, 0), (1, 100), (5, 0)]


def _variable_read_twice():
  return graphs.make_graph(
      [(0, 1, 0), (0, 2, 0), (1, 3, 1000), (2, 4, 1000)],
      op_types=['VarHandleOp', 'ReadVariableOp', 'ReadVariableOp', 'MatMul',
                'MatMul'],
      param_bytes=[1000, 0, 0, 0, 0])

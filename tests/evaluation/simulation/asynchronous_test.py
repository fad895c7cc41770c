"""Asynchronous devices, in cases that one can simulate in the head.

GPUs dispatch an op, or issue a copy, in 1/8 s and hear of a copy 1/2 s after
its end. Links have a latency of 1 s and carry 100 bytes per second: a tensor of
100 bytes takes 2 s. Ops take 1 s unless said otherwise.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Sequence

import numpy as np
import pytest

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation.simulation import schedule as schedule_lib
from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.graph import op_graph
from helpers import clusters
from helpers import graphs

CPU, GPU0, GPU1, GPU2 = range(4)

_HOST = dict(dispatch_s=.125, visit_s=.125, copy_dispatch_s=.125, callback_s=.5)


def _cluster(**host: Any) -> cluster_lib.Cluster:
  """Three GPUs; `host` are fields of them."""
  cluster = clusters.make_cluster(3)
  devices = [
      dataclasses.replace(device, launch=cluster_lib.ASYNCHRONOUS,
                          **(_HOST | host)) if
      (device.type == 'GPU') else device for device in cluster.devices
  ]
  return dataclasses.replace(cluster, devices=devices)


def _simulate(graph: op_graph.OpGraph, devices: Sequence[int],
              seconds: Any = 1.0, priorities: Sequence[float] | None = None,
              workspace: Any = 0, **host: Any) -> schedule_lib.Schedule:
  cluster = _cluster(**host)
  costs = clusters.FixedCosts(seconds, workspace)
  return simulator.Simulator(cluster, costs).schedule(
      graph, placement_lib.Placement(devices, cluster, priorities))


def _curve(schedule: schedule_lib.Schedule,
           pool: int) -> list[tuple[float, int]]:
  mine = schedule.memory_pools == pool
  return list(
      zip(schedule.memory_s[mine].tolist(),
          schedule.memory_bytes[mine].tolist()))


class TestDispatch:

  def test_ops_run_one_after_the_other_on_the_stream(self):
    schedule = _simulate(graphs.chain(3), [GPU0] * 3, [1.0, 2.0, 4.0])
    assert schedule.start_s.tolist() == [.125, 1.125, 3.125]
    assert schedule.dispatched_s.tolist() == [.125, .25, .375]
    assert schedule.step_time_s == 7.125

  def test_short_ops_wait_for_their_dispatch(self):
    schedule = _simulate(graphs.chain(3), [GPU0] * 3, 0.0)
    assert schedule.start_s.tolist() == [.125, .25, .375]
    assert schedule.step_time_s == .375

  def test_what_arrives_queues_behind_all_that_was_dispatched(self):
    # Ops 0 to 9 are a chain on GPU:1; 10 sends to 11 there.
    edges = [(i, i + 1, 0) for i in range(9)] + [(10, 11, 100)]
    schedule = _simulate(graphs.make_graph(edges), [GPU1] * 10 + [GPU0, GPU1])
    assert schedule.transfer_start_s.tolist() == [1.125]
    assert schedule.start_s[11] == 10.125

  def test_what_arrives_has_a_thread_of_its_own(self):
    # 0 and 1 go to GPU:1 as one tensor each; both chains there go on at once.
    edges = [(0, 1, 100), (0, 2, 100), (1, 3, 0), (2, 4, 0)]
    schedule = _simulate(graphs.make_graph(edges), [GPU0] + [GPU1] * 4, 0.0)
    assert schedule.start_s.tolist() == [.125, 2.875, 2.875, 3, 3]

  def test_breadth_first(self):
    # What 1 brings about waits behind 2, though 1 was dispatched first.
    edges = [(0, 1, 0), (0, 2, 0), (1, 3, 0), (3, 4, 0), (2, 5, 0)]
    schedule = _simulate(graphs.make_graph(edges), [GPU0] * 6)
    assert np.argsort(schedule.start_s).tolist() == [0, 1, 2, 3, 5, 4]

  def test_priorities_run_op_by_op(self):
    edges = [(0, 1, 0), (2, 3, 0)]
    schedule = _simulate(graphs.make_graph(edges), [GPU0] * 4,
                         priorities=[0, 0, 1, 1])
    assert schedule.start_s.tolist() == [2, 3, 0, 1]

  def test_an_op_that_launches_nothing_takes_a_visit(self):
    schedule = _simulate(graphs.chain(3), [GPU0] * 3, [1., 0., 1.], visit_s=.5)
    # It waits for nothing on the stream, and the next is dispatched behind it.
    assert schedule.start_s.tolist() == [.125, .625, 1.125]
    assert schedule.end_s.tolist() == [1.125, .625, 2.125]

  def test_a_gap_lies_between_two_kernels_but_not_before_the_first(self):
    schedule = _simulate(graphs.chain(3), [GPU0] * 3, gap_s=.25)
    assert schedule.start_s.tolist() == [.125, 1.375, 2.625]

  def test_threads_of_a_context_launch_in_turn(self):
    graph = graphs.make_graph(num_ops=3)
    apart = _simulate(graph, [GPU0, GPU1, GPU2], lock_s=.0625)
    assert apart.start_s.tolist() == [.125] * 3
    together = _simulate(graph, [GPU0, GPU1, GPU2], lock_s=.0625,
                         context='card')
    # Each prepares for 1/16 s; then the lock is theirs for 1/16 s each.
    assert together.start_s.tolist() == [.125, .1875, .25]

  def test_threads_that_feed_one_device_launch_one_after_the_other(self):
    # What arrives for 1 and 2 has threads of its own, at one moment.
    graph = graphs.make_graph([(0, 2, 100), (1, 3, 100)])
    schedule = _simulate(graph, [CPU, CPU, GPU0, GPU0], [1., 1., .01, .01],
                         dispatch_s=2.)
    first, then = sorted(schedule.start_s[2:].tolist())
    assert then - first == 2.

  def test_copies_hold_the_lock_for_the_same_share(self):
    # 0 is sent to GPU:1 while 2 is prepared there; 1/8 of the 2 s is held.
    graph = graphs.make_graph([(0, 1, 100), (2, 3, 0)])
    schedule = _simulate(graph, [GPU0, GPU1, GPU2, GPU2], [0., 1., 1., 1.],
                         dispatch_s=1., lock_s=.125, copy_dispatch_s=2.,
                         context='card')
    assert schedule.transfer_start_s.tolist() == [2.125]
    assert schedule.start_s[2:].tolist() == [1, 2.25]

  def test_other_streams_of_the_card_lengthen_gaps(self):
    graph = graphs.make_graph([(0, 1, 0), (2, 3, 0)])
    devices = [GPU0, GPU0, GPU1, GPU1]
    own = _simulate(graph, devices, gap_s=.25, switch_s=.5)
    assert own.start_s.tolist() == [.125, 1.375] * 2
    shared = _simulate(graph, devices, gap_s=.25, switch_s=.5, context='card')
    assert shared.start_s.tolist() == [.125, 1.875] * 2

  @pytest.mark.parametrize('context, start_s', [('', 1.375), ('card', 1.875)])
  def test_copies_to_other_gpus_are_such_streams(self, context, start_s):
    # The copy of 0 waits on its stream when 1 is taken up.
    graph = graphs.make_graph([(0, 2, 100), (0, 1, 0)])
    schedule = _simulate(graph, [GPU0, GPU0, GPU1], gap_s=.25, switch_s=.5,
                         context=context)
    assert schedule.start_s[1] == start_s

  def test_an_op_of_a_loop_is_dispatched_each_time(self):
    graph = graphs.make_graph([(0, 1, 0)]).replace(executions=[4., 1.])
    schedule = _simulate(graph, [GPU0] * 2, gap_s=.25)
    # 1 s is all that its four kernels take; three gaps lie between them.
    assert schedule.start_s.tolist() == [.5, 2.5]
    assert schedule.end_s[0] == 2.25


class TestCopies:

  def test_sent_when_dispatched_and_heard_of_later(self):
    schedule = _simulate(graphs.chain(2), [GPU0, GPU1])
    assert schedule.transfer_start_s.tolist() == [1.125]
    assert schedule.transfer_end_s.tolist() == [3.125]
    assert schedule.start_s.tolist() == [.125, 3.75]

  def test_what_the_event_manager_misses_at_first_is_heard_of_later(self):
    # Issued at 1/4 s and done at 2.25 s, which is just twice the latency later.
    graph = graphs.chain(2)
    seen = _simulate(graph, [GPU0, GPU1], [0., 1.], poll_s=4)
    assert seen.start_s[1] == 2.875
    # The kernel of 1/8 s holds the copy up.
    missed = _simulate(graph, [GPU0, GPU1], [.25, 1.], poll_s=4)
    assert missed.start_s[1] == 7

  def test_issuing_takes_the_thread_some_time(self):
    # 2 is dispatched once the copy has been issued.
    graph = graphs.make_graph([(0, 1, 100), (0, 2, 0)])
    schedule = _simulate(graph, [GPU0, GPU1, GPU0], copy_dispatch_s=3)
    assert schedule.transfer_start_s.tolist() == [3.125]
    assert schedule.start_s[2] == 3.25

  def test_waits_for_what_the_sender_was_given_before_it(self):
    # 1 stands before the copy of 0 in the queue.
    edges = [(0, 1, 100), (0, 2, 100)]
    schedule = _simulate(graphs.make_graph(edges), [GPU0, GPU0, GPU1],
                         [1.0, 5.0, 1.0])
    assert schedule.transfer_start_s.tolist() == [6.125]

  def test_waits_for_what_the_receiver_was_given_before_it(self):
    edges = [(0, 2, 100)]
    schedule = _simulate(graphs.make_graph(edges), [GPU0, GPU1, GPU1],
                         [1.0, 5.0, 1.0])
    assert schedule.transfer_start_s.tolist() == [5.125]

  def test_a_blocked_copy_holds_up_the_next(self):
    # 0 sends to the busy GPU:1 first and to the idle GPU:2 then.
    edges = [(0, 2, 100), (0, 3, 100)]
    schedule = _simulate(graphs.make_graph(edges), [GPU0, GPU1, GPU1, GPU2],
                         [1.0, 5.0, 1.0, 1.0])
    assert schedule.transfer_start_s.tolist() == [5.125, 7.125]

  def test_a_message_waits_for_the_sender_only(self):
    # Its empty tensor is made before 1 is dispatched, and sent thereafter.
    edges = [(0, 1, 0), (0, 3)]
    schedule = _simulate(graphs.make_graph(edges), [GPU0, GPU0, GPU1, GPU1],
                         [1.0, 2.0, 9.0, 1.0])
    assert schedule.transfer_start_s.tolist() == [3.125]
    assert schedule.transfer_end_s.tolist() == [4.125]
    assert schedule.start_s[3] == 9.125

  def test_to_the_host_waits_for_the_sender_only(self):
    schedule = _simulate(graphs.chain(2), [GPU0, CPU])
    assert schedule.transfer_start_s.tolist() == [1.125]
    assert schedule.start_s[1] == 3.625

  def test_from_the_host_waits_for_the_receiver(self):
    edges = [(0, 2, 100)]
    schedule = _simulate(graphs.make_graph(edges), [CPU, GPU0, GPU0],
                         [1.0, 5.0, 1.0])
    assert schedule.transfer_start_s.tolist() == [5.125]
    assert schedule.start_s[2] == 7.75

  def test_from_the_host_is_issued_by_another_thread(self):
    graph = graphs.make_graph([(0, 1, 100), (0, 2, 0)])
    schedule = _simulate(graph, [CPU, GPU0, CPU], copy_dispatch_s=3)
    assert schedule.transfer_start_s.tolist() == [4]
    assert schedule.start_s[2] == 1

  def test_what_the_host_sends_early_is_issued_by_the_thread_of_the_roots(self):
    graph = graphs.make_graph([(0, 3, 100), (1, 4, 0)])
    schedule = _simulate(graph, [CPU] + [GPU0] * 4, [.0625, 1., 1., 1., 1.],
                         copy_dispatch_s=3)
    assert schedule.transfer_start_s.tolist() == [3.25]
    assert schedule.start_s.tolist() == [0, .125, 1.125, 5.875, 3.375]

  def test_what_it_sends_once_the_roots_are_taken_up_is_not(self):
    graph = graphs.make_graph([(0, 3, 100), (1, 4, 0)])
    schedule = _simulate(graph, [CPU] + [GPU0] * 4, [.25, 1., 1., 1., 1.],
                         copy_dispatch_s=3)
    assert schedule.transfer_start_s.tolist() == [3.25]
    assert schedule.start_s.tolist() == [0, .125, 1.125, 5.875, 2.125]

  def test_messages_that_the_host_sends_early_need_no_other_tensor(self):
    graph = graphs.make_graph([(0, 3), (1, 4, 0)])
    schedule = _simulate(graph, [CPU] + [GPU0] * 4, [.0625, 1., 1., 1., 1.],
                         copy_dispatch_s=3)
    assert schedule.transfer_start_s.tolist() == [3.25]

  def test_host_and_device_copies_have_streams_of_their_own(self):
    edges = [(0, 2, 100), (0, 3, 100)]
    schedule = _simulate(graphs.make_graph(edges), [GPU0, GPU1, GPU1, CPU],
                         [1.0, 5.0, 1.0, 1.0])
    assert schedule.transfer_start_s.tolist() == [5.125, 1.125]


class TestMemory:

  def test_outputs_live_from_dispatch_to_the_last_consumers(self):
    schedule = _simulate(graphs.chain(3), [GPU0] * 3)
    assert _curve(schedule, GPU0) == [(0, 100), (.125, 200), (.25, 100),
                                      (.375, 0)]

  def test_workspace_is_there_during_dispatch(self):
    schedule = _simulate(graphs.make_graph(num_ops=1), [GPU0], 9.0,
                         workspace=70)
    assert _curve(schedule, GPU0) == [(0, 70), (.125, 0)]

  def test_both_sides_keep_a_copy_until_it_is_heard_of(self):
    schedule = _simulate(graphs.chain(2), [GPU0, GPU1])
    assert _curve(schedule, GPU0) == [(0, 100), (3.625, 0)]
    assert _curve(schedule, GPU1) == [(0, 0), (.125, 100), (3.75, 0)]


class TestHostMemory:
  """Tensors that a GPU's op makes or reads in the memory of its host."""

  def test_the_host_waits_for_a_condition_that_a_gpu_computes(self):
    graph = graphs.chain(2).replace(read_on_host=[True])
    schedule = _simulate(graph, [GPU0] * 2)
    assert schedule.transfer_sources.tolist() == [GPU0]
    assert schedule.transfer_targets.tolist() == [CPU]
    assert schedule.transfer_start_s.tolist() == [1.125]
    assert schedule.dispatched_s.tolist() == [.125, 3.75]
    assert schedule.step_time_s == 4.75
    assert _curve(schedule, GPU0) == [(0, 100), (3.625, 0)]
    assert _curve(schedule, CPU) == [(0, 0), (.125, 100), (3.75, 0)]

  def test_other_ops_of_the_gpu_do_not_wait(self):
    graph = graphs.make_graph([(0, 1, 100),
                               (0, 2, 100)]).replace(read_on_host=[True, False])
    schedule = _simulate(graph, [GPU0] * 3)
    assert schedule.start_s.tolist() == [.125, 3.75, 1.125]

  def test_a_gpu_waits_for_a_tensor_of_its_host(self):
    graph = graphs.chain(2).replace(made_on_host=[True])
    schedule = _simulate(graph, [GPU0] * 2)
    assert schedule.transfer_sources.tolist() == [CPU]
    assert schedule.transfer_targets.tolist() == [GPU0]
    assert schedule.transfer_start_s.tolist() == [1.125]
    assert schedule.start_s.tolist() == [.125, 3.75]

  @pytest.mark.parametrize('target, start_s', [(GPU0, 1.125), (GPU1, .25),
                                               (CPU, .125)])
  def test_what_stays_on_the_host_is_not_copied(self, target, start_s):
    graph = graphs.chain(2).replace(made_on_host=[True], read_on_host=[True])
    schedule = _simulate(graph, [GPU0, target])
    assert not len(schedule.transfer_ops)
    assert schedule.start_s[1] == start_s
    assert _curve(schedule, GPU0) == [(0, 0)]
    assert _curve(schedule, CPU)[0] == (0, 100)

  def test_readers_of_one_device_share_a_copy(self):
    edges = [(0, 1, 100), (0, 2, 100), (0, 3, 100)]
    graph = graphs.make_graph(edges).replace(read_on_host=[True] * 3)
    schedule = _simulate(graph, [GPU0, GPU0, GPU0, GPU1])
    assert schedule.transfer_targets.tolist() == [CPU, CPU]
    assert schedule.start_s.tolist() == [.125, 3.75, 4.75, 5.75]

  def test_the_thread_of_a_gpu_issues_copies_of_what_it_makes_on_the_host(self):
    graph = graphs.make_graph([(0, 1, 100, 0), (0, 2, 100, 1)],
                              flops=0).replace(made_on_host=[True, True])
    schedule = _simulate(graph, [GPU0] * 3, [0., 1., 1.], copy_dispatch_s=3)
    assert schedule.transfer_start_s.tolist() == [3.125, 6.125]


def _with_host_op(op: int, num_ops: int = 4) -> op_graph.OpGraph:
  """Op 0 feeds ops 1 and 2, which op 3 joins; one op works on the host."""
  graph = graphs.make_graph([(0, 1, 100), (0, 2, 100), (1, 3, 100),
                             (2, 3, 100)], num_ops)
  return graph.replace(io_bytes=np.full(num_ops, 1e6),
                       host_ops=frozenset([graph.names[op]]))


@pytest.mark.parametrize('op', range(4))
@pytest.mark.parametrize('priorities', [None, [0., 3., 2., 1.]])
def test_an_op_that_works_on_the_host_costs_what_it_costs_there(op, priorities):
  """Int32 comparisons kept the GPU busy."""
  graph = _with_host_op(op)
  on_gpu, on_cpu = [GPU0] * 4, [GPU0] * 4
  on_cpu[op] = CPU
  seconds = np.array([9., 1, 1, 1]) * np.ones((4, 1))
  found = _simulate(graph, on_gpu, seconds, priorities)
  expected = _simulate(graph, on_cpu, seconds, priorities)
  for field in dataclasses.fields(found):
    np.testing.assert_array_equal(getattr(found, field.name),
                                  getattr(expected, field.name))
  assert found.devices.tolist() == on_cpu
  simulated = simulator.Simulator(_cluster(), clusters.FixedCosts(seconds))
  order = None if priorities is None else np.array([priorities] * 2)
  prices = simulated.price(graph, np.array([on_gpu, on_cpu]), order)
  assert prices.seconds.tolist() == [found.step_time_s] * 2
  assert len(set(map(tuple, prices.peak_bytes.tolist()))) == 1


def test_a_gpu_computes_while_its_host_works():
  """Op 0 ends at 1.125 s. The host works from 3.625 s on, for 9 s."""
  graph = _with_host_op(1)
  schedule = _simulate(graph, [GPU0] * 4, [1., 9, 5, 1])
  assert schedule.end_s[2] < schedule.start_s[1] + 9
  assert schedule.start_s[2] < schedule.start_s[1] < schedule.end_s[2]


def test_a_group_stays_whole_though_one_of_its_ops_works_on_the_host():
  graph = _with_host_op(1).replace(groups=np.array([0, 0, 1, 2], np.int32))
  simulated = simulator.Simulator(_cluster(), clusters.FixedCosts(1.0))
  prices = simulated.price(graph, np.array([[GPU0] * 4, [GPU0, CPU, GPU0,
                                                         GPU0]]))
  assert np.isfinite(prices.seconds).tolist() == [True, False]

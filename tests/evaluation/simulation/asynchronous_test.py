"""Asynchronous devices, in cases that one can simulate in the head.

GPUs dispatch an op in 1/8 s and hear of a copy 1/2 s after its end. Links have
a latency of 1 s and carry 100 bytes per second: a tensor of 100 bytes takes
2 s. Ops take 1 s unless said otherwise.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Sequence

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation.simulation import schedule as schedule_lib
from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.graph import op_graph
from helpers import clusters
from helpers import graphs

CPU, GPU0, GPU1, GPU2 = range(4)


def _cluster() -> cluster_lib.Cluster:
  cluster = clusters.make_cluster(3)
  devices = [
      dataclasses.replace(device, launch=cluster_lib.ASYNCHRONOUS,
                          dispatch_s=.125, callback_s=.5) if
      (device.type == 'GPU') else device for device in cluster.devices
  ]
  return dataclasses.replace(cluster, devices=devices)


def _simulate(graph: op_graph.OpGraph, devices: Sequence[int],
              seconds: Any = 1.0, priorities: Sequence[float] | None = None,
              workspace: Any = 0) -> schedule_lib.Schedule:
  cluster = _cluster()
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
    assert schedule.start_s.tolist() == [0, 1, 3]
    assert schedule.step_time_s == 7

  def test_short_ops_wait_for_their_dispatch(self):
    schedule = _simulate(graphs.chain(3), [GPU0] * 3, 0.0)
    assert schedule.start_s.tolist() == [0, .125, .25]
    assert schedule.step_time_s == .375

  def test_what_arrives_queues_behind_all_that_was_dispatched(self):
    # Ops 0 to 9 are a chain on GPU:1; 10 sends to 11 there.
    edges = [(i, i + 1, 0) for i in range(9)] + [(10, 11, 100)]
    schedule = _simulate(graphs.make_graph(edges), [GPU1] * 10 + [GPU0, GPU1])
    assert schedule.transfer_start_s.tolist() == [1]
    assert schedule.start_s[11] == 10

  def test_what_arrives_has_a_thread_of_its_own(self):
    # 0 and 1 go to GPU:1 as one tensor each; both chains there go on at once.
    edges = [(0, 1, 100), (0, 2, 100), (1, 3, 0), (2, 4, 0)]
    schedule = _simulate(graphs.make_graph(edges), [GPU0] + [GPU1] * 4, 0.0)
    assert schedule.start_s.tolist() == [0, 2.625, 2.625, 2.75, 2.75]

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


class TestCopies:

  def test_sent_when_dispatched_and_heard_of_later(self):
    schedule = _simulate(graphs.chain(2), [GPU0, GPU1])
    assert schedule.transfer_start_s.tolist() == [1]
    assert schedule.transfer_end_s.tolist() == [3]
    assert schedule.start_s.tolist() == [0, 3.5]

  def test_waits_for_what_the_sender_was_given_before_it(self):
    # 1 stands before the copy of 0 in the queue.
    edges = [(0, 1, 100), (0, 2, 100)]
    schedule = _simulate(graphs.make_graph(edges), [GPU0, GPU0, GPU1],
                         [1.0, 5.0, 1.0])
    assert schedule.transfer_start_s.tolist() == [6]

  def test_waits_for_what_the_receiver_was_given_before_it(self):
    edges = [(0, 2, 100)]
    schedule = _simulate(graphs.make_graph(edges), [GPU0, GPU1, GPU1],
                         [1.0, 5.0, 1.0])
    assert schedule.transfer_start_s.tolist() == [5]

  def test_a_blocked_copy_holds_up_the_next(self):
    # 0 sends to the busy GPU:1 first and to the idle GPU:2 then.
    edges = [(0, 2, 100), (0, 3, 100)]
    schedule = _simulate(graphs.make_graph(edges), [GPU0, GPU1, GPU1, GPU2],
                         [1.0, 5.0, 1.0, 1.0])
    assert schedule.transfer_start_s.tolist() == [5, 7]

  def test_a_message_waits_for_the_sender_only(self):
    # Its empty tensor is made before 1 is dispatched, and sent thereafter.
    edges = [(0, 1, 0), (0, 3)]
    schedule = _simulate(graphs.make_graph(edges), [GPU0, GPU0, GPU1, GPU1],
                         [1.0, 2.0, 9.0, 1.0])
    assert schedule.transfer_start_s.tolist() == [3]
    assert schedule.transfer_end_s.tolist() == [4]
    assert schedule.start_s[3] == 9

  def test_to_the_host_waits_for_the_sender_only(self):
    schedule = _simulate(graphs.chain(2), [GPU0, CPU])
    assert schedule.transfer_start_s.tolist() == [1]
    assert schedule.start_s[1] == 3.5

  def test_from_the_host_waits_for_the_receiver(self):
    edges = [(0, 2, 100)]
    schedule = _simulate(graphs.make_graph(edges), [CPU, GPU0, GPU0],
                         [1.0, 5.0, 1.0])
    assert schedule.transfer_start_s.tolist() == [5]
    assert schedule.start_s[2] == 7.5

  def test_host_and_device_copies_have_streams_of_their_own(self):
    edges = [(0, 2, 100), (0, 3, 100)]
    schedule = _simulate(graphs.make_graph(edges), [GPU0, GPU1, GPU1, CPU],
                         [1.0, 5.0, 1.0, 1.0])
    assert schedule.transfer_start_s.tolist() == [5, 1]


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
    assert _curve(schedule, GPU0) == [(0, 100), (3.5, 0)]
    assert _curve(schedule, GPU1) == [(0, 0), (.125, 100), (3.625, 0)]

"""Tests of gdp_grappler.evaluation.emulation.emulator.

They look at who waits for whom and at prescribed times: what this machine
takes does not count.
"""

import dataclasses
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation.emulation import emulation_worker
from gdp_grappler.evaluation.emulation import emulator as emulator_lib
from gdp_grappler.processes import worker_process
from helpers import clusters
from helpers import graphs

# Not with Bazel's unit tests.
pytestmark = pytest.mark.e2e

CPU, A, B, C = range(4)  # Devices; the last one's memory is small.
SMALL_BYTES = 8 << 20
MEMORY_BYTES = 1 << 30  # Of A and B.
LATENCY_S, BYTES_PER_S = 1., 100.
EXACT = {'rtol': 0, 'atol': 1e-6}


class FlopsAreSeconds(clusters.FixedCosts):
  """Charges what the graph says."""

  def __init__(self):
    super().__init__(0.)

  def op_seconds(self, graph, cluster):
    return np.tile(graph.flops[:, None], cluster.num_devices)


def make_cluster() -> cluster_lib.Cluster:
  cluster = clusters.make_cluster(3, latency_s=LATENCY_S,
                                  bandwidth_bytes_per_s=BYTES_PER_S,
                                  memory_bytes=MEMORY_BYTES)
  small = dataclasses.replace(cluster.devices[C], memory_bytes=SMALL_BYTES)
  return dataclasses.replace(cluster, devices=(*cluster.devices[:C], small))


CLUSTER = make_cluster()


@pytest.fixture(name='emulator', scope='module')
def _emulator():
  with emulator_lib.Emulator(
      CLUSTER, FlopsAreSeconds(),
      control_edges=lambda graph, placement: np.array([[2, 1]])) as emulator:
    yield emulator


def on(devices, priorities=None):
  return placement_lib.Placement(devices, CLUSTER, priorities)


def test_chain_on_one_device_takes_the_sum(emulator):
  graph = graphs.chain(4, flops=[1, 2, 3, 4])
  line = emulator.timeline(graph, on([A] * 4))
  np.testing.assert_allclose(line.op_end_s - line.op_start_s, [1, 2, 3, 4],
                             **EXACT)
  np.testing.assert_allclose(line.op_start_s[1:], line.op_end_s[:-1], **EXACT)
  assert len(line.copy_ops) == 0
  assert len(set(line.op_streams)) == 1


def test_dispatch_runs_ahead_of_the_device(emulator):
  graph = graphs.chain(20, flops=[10] * 20)
  line = emulator.timeline(graph, on([A] * 20))
  assert line.op_enqueued_s.max() < line.op_end_s[0]


def test_ops_without_inputs_start_in_the_order_of_the_graph(emulator):
  """Without an order, TensorFlow starts 40 of them by their addresses."""
  graph = graphs.make_graph(num_ops=40, flops=1)
  line = emulator.timeline(graph, on([A, B] * 20))
  for starts_s in (line.op_start_s[::2], line.op_start_s[1::2]):
    np.testing.assert_allclose(starts_s, np.arange(20), rtol=0, atol=.01)


def test_copy_takes_latency_and_bytes(emulator):
  graph = graphs.chain(2, 300, flops=[1, 2])
  line = emulator.timeline(graph, on([A, B]))
  assert line.copy_ops.tolist() == [0]
  assert line.copy_sources.tolist() == [A]
  assert line.copy_targets.tolist() == [B]
  assert line.copy_bytes.tolist() == [300]
  np.testing.assert_allclose(line.copy_end_s - line.copy_start_s, 4, **EXACT)
  assert line.copy_start_s[0] >= line.op_end_s[0] - 1e-6
  assert line.op_start_s[1] >= line.copy_end_s[0]


def _timeline(graph, devices, cluster=None, channels=None):
  """The step on a cluster of its own."""
  cluster = cluster or clusters.make_cluster(3, latency_s=LATENCY_S,
                                             bandwidth_bytes_per_s=BYTES_PER_S,
                                             channels=channels)
  with emulator_lib.Emulator(cluster, FlopsAreSeconds()) as emulator:
    return emulator.timeline(graph, placement_lib.Placement(devices, cluster))


@pytest.mark.parametrize(
    'channels, seconds, starts',
    [
        # Over one wire they take turns, over wires of their own they do not.
        (lambda a, b: (f'{a} out', f'{b} in'), [1, 2], {A: 1, B: 5}),
        (lambda a, b: (a + b,), [1, 2], {A: 1, B: 2}),
        # Not whoever asked first: A's copy is enqueued first and ready last.
        (lambda a, b: ('bus',), [9, 1], {A: 9, B: 1}),
    ])
def test_a_wire_serves_whoever_could_start_first(channels, seconds, starts):
  graph = graphs.make_graph([(0, 2, 300), (1, 2, 300)], flops=[*seconds, 1])
  line = _timeline(graph, [A, B, C], channels=channels)
  found = dict(zip(line.copy_sources.tolist(), line.copy_start_s))
  assert found == pytest.approx(starts, abs=.01)
  np.testing.assert_allclose(line.copy_end_s - line.copy_start_s, 4, **EXACT)


def test_a_message_behind_a_copy_waits_for_its_own_op():
  """Op 3 waits for op 2, not only for the copy of op 0 before the message."""
  graph = graphs.make_graph([(0, 1, 300), (0, 2), (2, 3)], flops=[1, 1, 50, 1])
  line = _timeline(graph, [A, B, A, B])
  assert line.op_start_s[3] >= line.op_end_s[2] - 1e-6


def test_host_times_of_the_devices_are_kept():
  devices = tuple(
      dataclasses.replace(d, launch=cluster_lib.ASYNCHRONOUS, dispatch_s=.02,
                          callback_s=.2) if d.type == 'GPU' else d
      for d in CLUSTER.devices)
  line = _timeline(graphs.chain(3, 1, flops=[.01] * 3), [A, A, B],
                   dataclasses.replace(CLUSTER, devices=devices))
  np.testing.assert_allclose(line.op_enqueued_s[:2], [.02, .04], **EXACT)
  np.testing.assert_allclose(line.op_enqueued_s[2] - line.copy_end_s[0], .22,
                             **EXACT)


def test_a_busy_machine_changes_nothing(emulator):
  graph = graphs.chain(6, 100, flops=[1e-6] * 6)
  placement = on([A, B, A, B, A, B])
  alone = emulator.evaluate(graph, placement).step_time_s
  busy = [
      subprocess.Popen([sys.executable, '-c', 'while True: pass'])
      for _ in range(2 * os.cpu_count())
  ]
  try:
    beside = emulator.evaluate(graph, placement).step_time_s
  finally:
    for process in busy:
      process.kill()
      process.wait()
  np.testing.assert_allclose([alone, beside], 6e-6 + 5 * 2, rtol=1e-9)


def test_tensor_is_copied_once_per_device(emulator):
  graph = graphs.fan_out(3, 100, flops=[1] * 4)
  line = emulator.timeline(graph, on([A, B, B, C]))
  assert sorted(line.copy_targets) == [B, C]


def test_copies_of_one_sender_go_one_after_the_other(emulator):
  graph = graphs.make_graph([(0, 1, 500, 0), (0, 2, 500, 1)], flops=1.)
  line = emulator.timeline(graph, on([A, B, C]))
  assert len(set(line.copy_streams)) == 1
  first, second = np.argsort(line.copy_start_s)
  assert line.copy_start_s[second] >= line.copy_end_s[first] - 1e-6


def test_copy_waits_for_the_receivers_compute(emulator):
  # What B has to do is enqueued at once; A's op waits for C's.
  graph = graphs.make_graph([(0, 1, 0), (1, 2, 100)], 4, flops=[5, 1, 1, 60])
  line = emulator.timeline(graph, on([C, A, B, B]))
  copy = line.copy_ops.tolist().index(1)
  assert line.op_end_s[1] < line.op_end_s[3]
  assert line.copy_enqueued_s[copy] < line.op_end_s[3]
  assert line.copy_start_s[copy] >= line.op_end_s[3] - 1e-6


def test_host_and_gpus_exchange_tensors(emulator):
  graph = graphs.chain(3, 100, flops=[2, 3, 4])
  line = emulator.timeline(graph, on([CPU, A, CPU]))
  ways = list(zip(line.copy_sources, line.copy_targets))
  assert ways == [(CPU, A), (A, CPU)]
  assert (line.op_start_s[1:] >= line.copy_end_s).all()
  assert line.op_streams.tolist()[::2] == [-1, -1]


def test_the_host_waits_for_a_condition_that_a_gpu_computes(emulator):
  graph = graphs.chain(2, 100, flops=[20, 1]).replace(read_on_host=[True])
  line = emulator.timeline(graph, on([A, A]))
  assert line.copy_sources.tolist() == [A]
  assert line.copy_targets.tolist() == [CPU]
  assert line.copy_start_s[0] >= line.op_end_s[0] - 1e-6
  assert line.op_enqueued_s[1] >= line.copy_end_s[0]


def test_a_gpu_waits_for_a_tensor_of_its_host(emulator):
  graph = graphs.chain(2, 100, flops=[20, 1]).replace(made_on_host=[True])
  line = emulator.timeline(graph, on([A, A]))
  assert line.copy_sources.tolist() == [CPU]
  assert line.copy_targets.tolist() == [A]
  assert line.op_enqueued_s[1] >= line.copy_end_s[0]


def test_what_stays_on_the_host_is_not_copied(emulator):
  graph = graphs.chain(2, 100, flops=[20, 1]).replace(made_on_host=[True],
                                                      read_on_host=[True])
  line = emulator.timeline(graph, on([A, B]))
  assert not len(line.copy_ops)
  assert line.op_enqueued_s[1] < line.op_end_s[0]


def test_control_edges_bind_the_order(emulator):
  graph = graphs.fan_out(2, 100, flops=[1] * 3)
  line = emulator.timeline(graph, on([A] * 3, [0, 0, 1]))
  assert line.op_start_s[2] < line.op_start_s[1]


def test_many_are_priced_in_their_order(emulator):
  graph = graphs.chain(2, flops=[20, 40])
  prices = emulator.price(graph, np.array([[A, A], [7, 7], [A, B]]))
  assert prices.valid.tolist() == [True, False, True]
  assert 60 <= prices.seconds[0] < prices.seconds[2] < np.inf
  assert not emulator.simulated


def test_memory_is_what_is_alive_at_a_time(emulator):
  # Parameters stay, an alias has no memory of its own.
  graph = graphs.make_graph(
      [(0, 1, 0), (1, 2, 1 << 20), (2, 3, 2 << 20)],
      op_types=['VarHandleOp', 'ReadVariableOp', 'MatMul',
                'MatMul'], param_bytes=[1 << 20, 0, 0, 0], flops=1.)
  found = emulator.evaluate(graph, on([A] * 4))
  assert found.valid
  assert 3 << 20 <= found.peak_bytes[A] < 3.1 * (1 << 20)
  assert found.peak_bytes[CPU] == found.peak_bytes[B] == 0


def test_memory_is_one_piece_as_on_a_card(emulator):
  """A piece of 2 MiB for the first tensor once left too little for the next."""
  graph = graphs.make_graph([(0, 1, 1 << 19), (1, 2, SMALL_BYTES * 7 // 8)],
                            flops=1e-3)
  assert emulator.evaluate(graph, on([C] * 3)).valid


def test_all_memory_can_be_used(emulator):
  """TensorFlow once kept 255 MiB of it for libraries."""
  graph = graphs.chain(2, MEMORY_BYTES * 15 // 16, flops=1e-3)
  assert emulator.evaluate(graph, on([A, A])).valid


def test_too_little_memory_is_a_violation(emulator):
  graph = graphs.chain(3, SMALL_BYTES * 3 // 4, flops=1e-3)
  found = emulator.evaluate(graph, on([C] * 3))
  assert [v.kind for v in found.violations] == ['memory']
  assert 'GPU:2' in found.violations[0].message
  assert np.isinf(found.step_time_s)
  # The next placement once had the peak of this one.
  graph = graphs.chain(3, 100, flops=1e-3)
  found = emulator.evaluate(graph, on([C] * 3))
  assert found.valid and found.peak_bytes[C] < SMALL_BYTES // 4


def test_killed_process_is_replaced(emulator, monkeypatch):
  graph = graphs.chain(2, flops=[1, 1])
  assert emulator.evaluate(graph, on([A, A])).valid
  killed = []

  class Killed(worker_process.WorkerProcess):
    """Is killed as soon as it is asked for a placement, the first time."""

    def send(self, message):
      super().send(message)
      if isinstance(message, emulation_worker.Request) and not killed:
        killed.append(self.pid)
        os.kill(self.pid, signal.SIGKILL)

  emulator.close()
  monkeypatch.setattr(worker_process, 'WorkerProcess', Killed)
  assert emulator.evaluate(graph, on([A, A])).valid
  assert killed

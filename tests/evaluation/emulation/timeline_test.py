"""Tests of gdp_grappler.evaluation.emulation.timeline."""

import numpy as np

from gdp_grappler.evaluation.emulation import timeline

# Kind, device, peer, stream, op, bytes; then ns enqueued, started, ended.
RECORDS = np.array([
    [0, 0, -1, 3, 1, 0, 1000, 1000, 5000],
    [1, 0, 1, 4, 1, 64, 1600, 5000, 9000],
    [0, 1, -1, 5, 0, 0, 9500, 9500, 10000],
])
# The host of the cluster comes first.
MADE = timeline.from_records(RECORDS, 1000, 2, np.array([1, 2, 0]))


def test_ops_are_in_the_order_of_the_graph():
  np.testing.assert_allclose(MADE.op_start_s, [8.5e-6, 0])
  np.testing.assert_allclose(MADE.op_end_s, [9e-6, 4e-6])
  np.testing.assert_array_equal(MADE.op_streams, [5, 3])


def test_copies_name_devices_of_the_cluster():
  assert MADE.copy_sources.tolist() == [1]
  assert MADE.copy_targets.tolist() == [2]
  assert MADE.copy_ops.tolist() == [1]
  assert MADE.copy_bytes.tolist() == [64]
  np.testing.assert_allclose(MADE.copy_end_s, [8e-6])


def test_step_ends_with_the_last_op():
  np.testing.assert_allclose(MADE.step_time_s, 9e-6)


def test_step_of_nothing():
  empty = timeline.from_records(np.zeros((0, 9), int), 0, 0, np.array([1, 0]))
  assert empty.step_time_s == 0

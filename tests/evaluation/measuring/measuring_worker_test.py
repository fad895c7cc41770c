"""What needs no session; `measurer_test` has what does."""

import pytest
from tensorflow.core.protobuf import config_pb2

from gdp_grappler.evaluation.measuring import measuring_worker

_CPU = '/job:localhost/replica:0/task:0/device:CPU:0'
_GPU = '/job:localhost/replica:0/task:0/device:GPU:0'
_OTHER = '/job:localhost/replica:0/task:1/device:CPU:0'


@pytest.mark.parametrize(
    'changes, highest',
    [
        ([], 0),
        ([(1, 5), (2, 7), (3, -5), (4, 3)], 12),
        ([(4, 3), (1, 5), (3, -5), (2, 7)], 12),
        ([(1, -5), (2, 3)], 0),
        # What is freed and allocated at one moment was not there together.
        ([(1, 5), (2, 5), (2, -5)], 5),
    ])
def test_the_highest_sum_on_the_way(changes, highest):
  assert measuring_worker._highest(changes) == highest


class _Session:
  """Fills in a trace by (device, allocator, time, bytes)."""

  def __init__(self, *records):
    self._records = records

  def run(self, targets, options, run_metadata):
    assert options.trace_level == config_pb2.RunOptions.FULL_TRACE
    for device, allocator, micros, size in self._records:
      stats = run_metadata.step_stats.dev_stats.add(device=device)
      used = stats.node_stats.add().memory.add(allocator_name=allocator)
      used.allocation_records.add(alloc_micros=micros, alloc_bytes=size)


def test_memory_is_that_of_the_device_or_of_its_host():
  session = _Session((_CPU, 'cpu', 1, 10), (_GPU, 'GPU_0_bfc', 1, 100),
                     (_GPU, 'gpu_host_bfc', 2, 7), (_OTHER, 'cpu', 1, 1000),
                     ('/job:elsewhere/device:CPU:0', 'cpu', 1, 5000))
  assert measuring_worker._peaks(session, (),
                                 (_CPU, _GPU, _OTHER)) == (17, 100, 1000)

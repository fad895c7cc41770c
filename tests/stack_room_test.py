"""Room on Python's stack."""

from concurrent import futures
import resource

import pytest

from gdp_grappler import stack_room

_CALLS = 500
# Chunks of CPython have 16 KiB; a frame of `_down` has some 100 bytes.
_DEPTHS = 300


def _leaf(number: int) -> int:
  return number + 1


def _down(depth: int) -> int:
  """Page faults of many calls at a depth."""
  if depth:
    return _down(depth - 1)
  before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
  for number in range(_CALLS):
    _leaf(number)
  return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


@pytest.fixture(name='thread')
def _thread():
  """A thread, whose stack begins with a usual chunk."""
  with futures.ThreadPoolExecutor(1) as pool:
    yield pool


def test_no_depth_costs_a_page_fault_per_call(thread):
  # At some depths a chunk of the stack ends.
  assert max(thread.map(_down, range(_DEPTHS))) >= _CALLS
  for depth in range(_DEPTHS):
    assert thread.submit(stack_room.call, _down, depth).result() < _CALLS / 2


def test_arguments_result_and_errors_pass():
  assert stack_room.call(divmod, 7, 2) == (3, 1)
  assert stack_room.call(int, '11', base=2) == 3
  with pytest.raises(ZeroDivisionError):
    stack_room.call(divmod, 1, 0)

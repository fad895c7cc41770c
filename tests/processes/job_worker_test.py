"""How a worker reads; `local_team_test` has real ones."""

import os

import pytest

from gdp_grappler import errors
from gdp_grappler.processes import job_worker


@pytest.fixture(name='pipe')
def _pipe(monkeypatch):
  """What writes to standard input."""
  reads, writes = os.pipe()
  with open(reads, 'rb') as stdin, open(writes, 'wb', 0) as sender:
    monkeypatch.setattr(job_worker.sys, 'stdin', stdin)
    yield sender


def test_messages_come_in_parts(pipe):
  pipe.write(b'ab')
  pipe.write(b'cdef')
  assert job_worker._read(3) == b'abc'
  pipe.close()
  # Fewer at the end, as `messages.receive` expects.
  assert job_worker._read(9) == b'def'


def test_a_long_story_is_cut():

  def fail():
    raise errors.GdpError('word ' * 1000)

  result, why = job_worker._tried(fail)
  assert result is None and why.startswith('word word')
  assert len(why) <= job_worker._LONGEST

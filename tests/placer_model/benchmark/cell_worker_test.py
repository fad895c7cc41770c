"""How the end of a cell is told; `lanes_test` has real ones."""

import os
import pathlib
import signal

import pytest

from placer_model.benchmark import cell_worker


@pytest.mark.parametrize('end, words, said', [
    (None, '', 'no result within 3 s; the cell was ended'),
    (None, 'ignored', 'no result within 3 s; the cell was ended'),
    (-signal.SIGKILL, '', 'the process was killed, by the system'),
    (-signal.SIGSEGV, '', 'crashed with SIGSEGV'),
    (-signal.SIGABRT, 'last words', 'crashed with SIGABRT: last words'),
    (70, 'ValueError: x', 'ValueError: x'),
    (70, '', 'ended with exit code 70'),
    (0, 'chatter', 'ended without a result'),
])
def test_why_there_is_no_result(tmp_path, end, words, said):
  run = cell_worker.Run('p', 'k', tmp_path / 'result', tmp_path / 'plan', 3.)
  found = cell_worker._explain(end, words, run)
  assert found.startswith(said) and '\n' not in found


def test_a_result_needs_no_words(tmp_path: pathlib.Path):
  result = tmp_path / 'result'
  result.write_text('{}')
  run = cell_worker.Run('p', 'k', result, tmp_path / 'plan', 3.)
  assert cell_worker._explain(0, 'chatter', run) == ''


@pytest.fixture
def pipe(monkeypatch):
  """What writes to standard input."""
  reads, writes = os.pipe()
  with open(reads, 'rb') as stdin, open(writes, 'wb', 0) as sender:
    monkeypatch.setattr(cell_worker.sys, 'stdin', stdin)
    yield sender


def test_messages_come_in_parts(pipe):
  pipe.write(b'ab')
  pipe.write(b'cdef')
  assert cell_worker._read(3) == b'abc'
  pipe.close()
  # Fewer at the end, as `messages.receive` expects.
  assert cell_worker._read(9) == b'def'

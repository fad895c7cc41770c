"""Processes that answer messages."""

import contextlib
import sys
import tempfile

import pytest

from gdp_grappler import errors
from gdp_grappler.processes import worker_process


def _worker(name, *arguments):
  return contextlib.closing(
      worker_process.WorkerProcess(f'helpers.child_functions:{name}',
                                   arguments))


def test_answers_one_message_after_the_other():
  with _worker('send_back', '!') as worker:
    for text in ('a', 'b' * 1_000_000):
      worker.send(text)
      assert worker.receive(60.) == text + '!'
    assert worker.alive


def test_how_it_ended_and_what_it_said():
  with _worker('die') as worker:
    with pytest.raises(worker_process.Died, match='exit code 3: last words'):
      worker.receive(60.)
    assert worker.said() == ['last words'] and not worker.alive


def test_somebody_kills_it():
  with _worker('send_back', '') as worker:
    worker.kill()
    with pytest.raises(worker_process.Died, match='killed') as caught:
      worker.receive(60.)
  assert caught.value.killed


@pytest.mark.parametrize('module, name, value, said', [
    (sys, 'executable', '', 'sys.executable is empty'),
    (sys, 'executable', None, 'sys.executable is empty'),
    (sys, 'executable', '/nonexistent/python', 'It needs /nonexistent/python'),
    (tempfile, 'tempdir', '/nonexistent', 'No usable|/nonexistent'),
])
def test_what_cannot_be_started_is_an_error_for_users(module, name, value, said,
                                                      monkeypatch):
  """Once it was said to be a failure to report."""
  monkeypatch.setattr(module, name, value)
  with pytest.raises(errors.GdpError, match=said):
    worker_process.WorkerProcess('os:getpid')

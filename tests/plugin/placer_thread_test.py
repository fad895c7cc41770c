import os
import signal
import threading

import pytest
import tensorflow as tf

from gdp_grappler.placers.policy import eager_thread
from gdp_grappler.plugin import interrupts
from gdp_grappler.plugin import placer_thread
from helpers import processes


@pytest.fixture
def thread():
  return placer_thread.PlacerThread()


def test_runs_on_a_daemon_of_its_own(thread):
  worker = thread.run(threading.current_thread, 10)
  assert worker is not threading.current_thread() and worker.daemon
  assert thread.run(eager_thread.is_current, 10)
  assert thread.run(threading.current_thread, 10) is worker


def test_is_eager_on_the_host_even_inside_a_graph(thread):
  with tf.Graph().as_default(), tf.device('/CPU:7'):
    eager, device = thread.run(
        lambda: (tf.executing_eagerly(), tf.constant(1).device), 30)
  assert eager and device.endswith('CPU:0')


def test_passes_on_what_a_job_raises(thread):

  def fail():
    raise KeyError('x')

  with pytest.raises(KeyError):
    thread.run(fail, 10)
  assert thread.run(lambda: 3, 10) == 3


def test_an_error_of_a_job_may_be_of_any_kind(thread):

  def fail():
    raise TimeoutError('of the job')

  with pytest.raises(TimeoutError, match='of the job'):
    thread.run(fail, 10)


def test_exceptions_of_the_program_end_the_wait(thread):
  """Once a timeout by `signal.alarm` was taken for the time limit."""
  go = threading.Event()

  def handler(number, frame):
    raise TimeoutError('of the program')

  def job():
    os.kill(os.getpid(), signal.SIGUSR1)
    go.wait(20)

  before = signal.signal(signal.SIGUSR1, handler)
  try:
    with pytest.raises(interrupts.Interruption) as caught:
      thread.run(job, 20)
  finally:
    signal.signal(signal.SIGUSR1, before)
    go.set()
  assert str(caught.value.error) == 'of the program'
  assert thread.run(lambda: 3, 20) == 3


def test_an_error_of_the_wait_is_none_of_the_program(thread, monkeypatch):

  def wait(*_):
    raise RecursionError

  monkeypatch.setattr(placer_thread.futures, 'wait', wait)
  with pytest.raises(RecursionError):
    thread.run(lambda: 3, 10)


def test_what_is_excused_does_not_count(thread):
  go, excused = threading.Event(), []

  def job():
    go.wait(20)
    return 'done'

  def excused_s():
    # From the second call on all time is excused, so the budget never ends.
    excused.append(0.)
    if len(excused) > 1:
      go.set()
    return 100. if len(excused) > 1 else 0.

  assert thread.run(job, .05, excused_s) == 'done'
  # Time that was excused before this run does not count.
  go.clear()
  with pytest.raises(TimeoutError):
    thread.run(job, .05, lambda: 7.)
  go.set()


def test_late_job_blocks_others_until_it_ends(thread):
  go = threading.Event()
  done = threading.Event()

  def late():
    go.wait(20)
    done.set()

  thread.run(int, 30)
  with pytest.raises(TimeoutError):
    thread.run(late, 0.05)
  with pytest.raises(placer_thread.StillBusyError):
    thread.run(int, 10)
  go.set()
  assert done.wait(10)
  # The thread is free a moment after the job's last statement.
  processes.wait_until(thread._late.done)
  assert thread.run(int, 10) == 0


def test_job_that_waits_too_long_in_the_queue_never_starts(thread):
  go, started = threading.Event(), threading.Event()
  first = threading.Thread(target=thread.run,
                           args=(lambda: (started.set(), go.wait(20)), 20))
  first.start()
  assert started.wait(20)
  ran = []
  with pytest.raises(TimeoutError):
    thread.run(lambda: ran.append(1), 0.05)
  go.set()
  first.join()
  assert thread.run(lambda: list(ran), 10) == []


def test_child_of_a_fork_starts_its_own(thread):
  thread.run(int, 30)
  assert thread._thread is not None
  child = os.fork()
  if not child:
    # Threads of TensorFlow do not survive a fork. The test is about ours.
    os._exit(7 if thread._thread is None else 1)
  assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7

import functools
import signal
import threading

import pytest

from gdp_grappler.plugin import host
from gdp_grappler.plugin import interrupts
from gdp_grappler.plugin import library
from helpers import alarms


@pytest.fixture(autouse=True)
def before():
  """The handler of SIGINT. Each test has to restore this handler."""
  handler = signal.getsignal(signal.SIGINT)
  yield handler
  left = signal.getsignal(signal.SIGINT)
  signal.signal(signal.SIGINT, handler)
  assert left is handler


@pytest.mark.parametrize('error', [
    KeyboardInterrupt(),
    SystemExit(7),
    TimeoutError('mine'),
])
def test_the_very_exception_is_raised(error):
  assert interrupts.raise_again(error)
  with pytest.raises(type(error)) as caught:
    signal.raise_signal(signal.SIGINT)
  assert caught.value is error


def test_a_handler_that_ignores_the_signal_hides_nothing(before):
  """Programs in the background ignore Ctrl-C, but end on SIGTERM."""
  signal.signal(signal.SIGINT, signal.SIG_IGN)
  try:
    assert interrupts.raise_again(SystemExit(7))
    with pytest.raises(SystemExit):
      signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
  finally:
    signal.signal(signal.SIGINT, before)


def test_another_call_of_the_pass_keeps_it_for_the_program():
  """TensorFlow may call the pass again before the exception is raised."""
  error = TimeoutError('mine')
  assert interrupts.raise_again(error)
  with pytest.raises(interrupts.Interruption) as caught:
    with interrupts.in_pass():
      signal.raise_signal(signal.SIGINT)
  assert caught.value.error is error
  assert interrupts.raise_again(error)
  with pytest.raises(TimeoutError):
    signal.raise_signal(signal.SIGINT)


def test_threads_that_handle_no_signals_are_left_alone():
  results = []

  def run():
    with interrupts.in_pass():
      results.append(
          (interrupts.raise_again(TimeoutError()), interrupts._inside))

  thread = threading.Thread(target=run)
  thread.start()
  thread.join()
  assert results == [(False, False)]


def test_a_handler_that_python_does_not_know_stays(monkeypatch):
  monkeypatch.setattr(signal, 'getsignal', lambda _: None)
  assert not interrupts.raise_again(TimeoutError())
  monkeypatch.undo()


def test_a_thread_that_blocks_the_signal_keeps_its_handler(before):
  signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
  try:
    assert not interrupts.raise_again(TimeoutError())
    assert signal.getsignal(signal.SIGINT) is before
  finally:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])


def test_a_signal_that_never_came_is_forgotten(before):
  assert interrupts.raise_again(TimeoutError('lost'))
  assert interrupts.raise_again(TimeoutError('mine'))
  with pytest.raises(TimeoutError, match='mine'):
    signal.raise_signal(signal.SIGINT)
  assert signal.getsignal(signal.SIGINT) is before


def _raised(function):
  with pytest.raises(Exception) as caught:
    function()
  return caught.value


def test_timeouts_of_the_program_are_told_from_other_errors():

  def wrapped():
    try:
      ring()
    except alarms.TooLongError as error:
      raise ValueError from error

  with alarms.alarm() as ring:
    assert interrupts.is_of_program(_raised(ring))
    assert interrupts.is_of_program(_raised(wrapped))
    assert not interrupts.is_of_program(_raised(lambda: 1 / 0))
    # `Enum` is the class of SIG_DFL and SIG_IGN.
    assert not interrupts.is_of_program(_raised(lambda: signal.Signals(-1)))


def test_a_timeout_that_the_caller_handles_is_over():
  """Once an error of the pass counted as the timeout that was handled."""

  def failing():
    with interrupts.beyond_exceptions():
      raise ValueError from KeyError()

  with alarms.alarm() as ring:
    try:
      ring()
    except alarms.TooLongError:
      assert not interrupts.is_of_program(_raised(failing))
      assert interrupts.is_of_program(_raised(ring))


def test_an_error_with_another_cause_may_hide_a_timeout():
  """Once the stated cause (KeyError) hid the timeout."""

  def failing():
    try:
      ring()
    except alarms.TooLongError:
      raise ValueError from KeyError()

  def user():
    with interrupts.beyond_exceptions():
      failing()

  with alarms.alarm() as ring:
    assert interrupts.is_of_program(_raised(failing))
    with pytest.raises(interrupts.Interruption):
      user()


def test_errors_that_are_causes_of_each_other_are_not_of_the_program():
  first, second = ValueError(), ValueError()
  first.__cause__, second.__cause__ = second, first
  assert not interrupts.is_of_program(first)


class _Handler:

  def __call__(self, *unused_args):
    raise alarms.TooLongError

  def method(self, *unused_args):
    raise alarms.TooLongError


@pytest.mark.parametrize('handler', [
    _Handler(),
    _Handler().method,
    functools.partial(_Handler().method, 1),
], ids=['object', 'method', 'partial'])
def test_handlers_of_all_kinds(handler):
  before = signal.signal(signal.SIGUSR1, handler)
  try:
    error = _raised(lambda: signal.raise_signal(signal.SIGUSR1))
    assert interrupts.is_of_program(error)
  finally:
    signal.signal(signal.SIGUSR1, before)


def test_a_timeout_while_the_host_starts_reaches_the_program(monkeypatch):
  """Once the host only warned that placing had failed, and the step ran."""
  query = library.Query('step', 'ab', '', (), (), (), b'', True)
  with alarms.alarm() as ring:
    monkeypatch.setattr(host.garbage, 'uncollected', ring)
    with pytest.raises(alarms.TooLongError):
      host.Host(lambda *_: None).answer(query)

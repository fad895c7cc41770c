"""What a bench makes of processes that die, without any process."""

import types

import pytest

from gdp_grappler import errors
from gdp_grappler.evaluation.measuring import bench
from gdp_grappler.processes import messages
from gdp_grappler.processes import worker_process

_GOOD = 'a timing'
_KILLED = worker_process.Died('killed', killed=True)
_CRASHED = worker_process.Died('crashed')


class _Process:
  """Answers as it is told: the start with the first word, then the rest."""

  def __init__(self, script):
    self._script, self.alive, self.closed = list(script), True, False
    self.sent = []

  def send(self, message):
    self.sent.append(message)

  def receive(self, timeout_s, others=()):
    answer = self._script.pop(0)
    if isinstance(answer, Exception):
      self.alive = False
      raise answer
    return answer

  def kill(self):
    self.alive = False

  def close(self):
    self.closed = True


@pytest.fixture
def make(monkeypatch):
  """A bench whose processes follow scripts, and these processes."""
  started = []
  monkeypatch.setattr(bench, '_oom_kills', lambda: 0)

  def make_bench(*scripts, target=''):
    waiting = list(scripts)

    def start(*_, keras):
      assert not keras
      started.append(_Process(waiting.pop(0)))
      return started[-1]

    monkeypatch.setattr(bench.worker_process, 'WorkerProcess', start)
    setup = types.SimpleNamespace(target=target, timeout_s=1.)
    return bench.Bench(setup), started

  return make_bench


def test_one_process_answers_all_questions(make):
  measurer, started = make([None, _GOOD, _GOOD])
  assert measurer.measure('a') == measurer.measure('b') == _GOOD
  process, = started
  assert process.sent[1:] == ['a', 'b']
  measurer.close()
  assert process.closed


def test_what_is_killed_runs_again(make):
  measurer, started = make([None, _KILLED], [None, _KILLED], [None, _GOOD])
  assert measurer.measure('a') == _GOOD
  assert [process.closed for process in started] == [True, True, False]


def test_a_process_that_died_between_questions_is_replaced(make):
  measurer, started = make([None, _GOOD], [None, _GOOD])
  measurer.measure('a')
  started[0].kill()
  assert measurer.measure('b') == _GOOD and len(started) == 2


def test_a_crash_is_the_placements(make):
  measurer, _ = make([None, _CRASHED])
  assert measurer.measure('a') == messages.Failure('crashed')


def test_killed_by_somebody_ten_times_is_enough(make):
  measurer, started = make(*[[None, _KILLED]] * 11)
  assert measurer.measure('a') == messages.Failure('killed', lost=True)
  assert len(started) == 10


def test_killed_for_want_of_memory_three_times_is_enough(make, monkeypatch):
  measurer, started = make(*[[None, _KILLED]] * 11)
  counts = iter(range(99))
  monkeypatch.setattr(bench, '_oom_kills', lambda: next(counts))
  assert measurer.measure('a') == messages.Failure('killed', lost=True)
  assert len(started) == 3


def test_a_start_is_tried_again_where_somebody_killed_it(make):
  measurer, started = make([_KILLED], [_KILLED], [None, _GOOD])
  assert measurer.measure('a') == _GOOD and len(started) == 3


@pytest.mark.parametrize('script, tries', [([_CRASHED], 1), ([_KILLED], 10)])
def test_a_start_that_fails(make, script, tries):
  measurer, started = make(*[script] * 11)
  with pytest.raises(errors.MeasurementError, match='could not start'):
    measurer.measure('a')
  assert len(started) == tries


def test_devices_that_are_not_there(make):
  measurer, started = make([messages.Failure('no GPU', fatal=True)])
  with pytest.raises(errors.MeasurementError, match='no GPU'):
    measurer.measure('a')
  assert started[0].closed


def test_a_failure_that_loses_no_process_is_an_answer(make):
  failure = messages.Failure('bad op')
  measurer, started = make([None, failure, _GOOD])
  assert measurer.measure('a') == failure and measurer.measure('b') == _GOOD
  assert len(started) == 1


def test_a_target_that_is_gone(make):
  measurer, _ = make([
      None,
      messages.Failure('gone', lost=True),
      messages.Failure('no such host', fatal=True)
  ], target='grpc://x')
  with pytest.raises(errors.MeasurementError, match='no such host'):
    measurer.measure('a')


def test_a_target_that_came_back_is_asked_again(make):
  lost = messages.Failure('gone', lost=True)
  measurer, started = make([None, lost, None], [None, _GOOD], target='grpc://x')
  assert measurer.measure('a') == _GOOD
  assert started[0].sent[-1] is None


def test_what_hangs_on_a_target_that_answers_is_the_placement(make):
  hung = messages.Failure('no answer', lost=True, hung=True)
  measurer, _ = make([None, hung, None], target='grpc://x')
  assert measurer.measure('a') == messages.Failure('no answer', hung=True)

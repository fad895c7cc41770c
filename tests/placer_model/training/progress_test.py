import io
import math
import types

import pytest
import rich.console

from placer_model.training import progress


@pytest.fixture
def clock(monkeypatch):
  """Seconds that pass only when it is told."""
  now = types.SimpleNamespace(s=100.)
  monkeypatch.setattr(progress.time, 'monotonic', lambda: now.s)
  return now


def _progress(budget_s=None):
  console = rich.console.Console(file=io.StringIO(), width=200)
  return progress.Progress(console, 0, 10, budget_s), console.file


def _report(iteration):
  return types.SimpleNamespace(iteration=iteration, reward=-1.5,
                               best_step_time_s=.0125, evaluations=40)


def test_plain_lines_every_ten_seconds_and_the_last(clock):
  shown, file = _progress()
  for iteration in range(1, 11):
    clock.s += 4
    shown.show(_report(iteration))
  lines = file.getvalue().splitlines()
  assert [line.split()[1] for line in lines
         ] == ['3/10', '6/10', '9/10', '10/10']
  assert lines[0] == ('iteration 3/10  reward -1.5000  best price 12.500 ms  '
                      'evaluations 40  ETA 0:28')


def test_a_plain_line_is_not_wrapped(clock):
  """A line of 82 characters became two lines in a log file."""
  console = rich.console.Console(file=io.StringIO(), width=40)
  shown = progress.Progress(console, 0, 10, None)
  clock.s += 10
  shown.show_warm_up(
      types.SimpleNamespace(best_step_time_s=.0125, total_evaluations=40,
                            warm_steps=120))
  shown.show(_report(10))
  assert len(console.file.getvalue().splitlines()) == 2


def test_the_first_iteration_tells_nothing_of_the_others(clock):
  shown, _ = _progress()
  clock.s += 600
  assert math.isnan(shown._remaining_s(1))
  clock.s += 2
  assert shown._remaining_s(2) == 16.


def test_a_budget_ends_it_earlier(clock):
  shown, _ = _progress(budget_s=50.)
  shown._remaining_s(1)
  clock.s += 40
  assert shown._remaining_s(2) == 10.
  clock.s += 40
  assert shown._remaining_s(3) == 0.


def test_step_times():
  assert progress.format_step_time(.0123456) == '12.346 ms'
  assert progress.format_step_time(float('inf')) == 'none'


def test_on_a_terminal_there_is_a_live_line(clock):
  console = rich.console.Console(file=io.StringIO(), width=100,
                                 force_terminal=True)
  with progress.Progress(console, 0, 10, None) as shown:
    shown.show(_report(3))
  text = console.file.getvalue()
  assert 'reward -1.5000' in text and '3/10' in text and 'iteration' not in text

"""Tests of what is shown of a program's work."""

import io
import os
import re
import sys
import termios

import hypothesis
from hypothesis import strategies as st
import pytest

from gdp_grappler import progress
from gdp_grappler import quiet
from gdp_grappler.reports import progress_line


class _Clock:
  """A clock that is set by hand."""

  s = 0.

  def __call__(self):
    return self.s


class _Terminal(io.StringIO):

  def isatty(self):
    return True

  def screen(self):
    """What the last line shows."""
    return re.split(r'\r\x1b\[K', self.getvalue())[-1]


def _line(stream):
  clock = _Clock()
  return progress_line.ProgressLine('gdp', stream, clock), clock


def test_plain_lines_are_the_first_and_what_takes_long():
  stream = io.StringIO()
  line, clock = _line(stream)
  line.doing('reading')
  for _ in range(3):
    line.doing('quick')
    clock.s += .5
    line.tick()
  line.doing('searching')
  line.reached(.1, '')
  for _ in range(24):
    clock.s += .5
    if clock.s == 2:
      line.reached(.2, 'best 3 ms')
    line.tick()
  line.doing('')
  clock.s += 100
  line.tick()
  assert stream.getvalue().splitlines() == [
      'gdp: reading', 'gdp: searching, 20%, best 3 ms, ETA 0:04',
      'gdp: searching, 20%, best 3 ms, 0:11'
  ]


def test_time_left_never_grows_while_nothing_is_reported():
  """A share of 6 % that was old gave more seconds than the time budget."""
  line, clock = _line(io.StringIO())
  line.doing('searching')
  line.reached(.05, '')
  clock.s += 1
  line.reached(.1, '')
  left_s = [line._left_s()]
  for _ in range(30):
    clock.s += 1
    left_s.append(line._left_s())
  assert left_s[0] == pytest.approx(18)
  assert all(after < before for before, after in zip(left_s, left_s[1:]))


def test_a_terminal_has_one_line_which_ends():
  stream = _Terminal()
  line, clock = _line(stream)
  line.doing('reading')
  assert stream.screen() == 'gdp: reading'
  line.doing('tracing')
  clock.s += 61
  line.tick()
  assert stream.screen() == 'gdp: tracing, 1:01'
  line.make_room()
  assert stream.screen() == ''
  line.tick()
  assert stream.screen() == 'gdp: tracing, 1:01'
  line.doing('')
  line.tick()
  assert stream.screen() == '' and '\n' not in stream.getvalue()


def test_a_line_is_no_longer_than_the_terminal(monkeypatch):
  monkeypatch.setenv('COLUMNS', '40')
  stream = _Terminal()
  line, _ = _line(stream)
  line.doing('x' * 100)
  assert len(stream.screen()) == 39


@hypothesis.given(
    st.lists(st.tuples(st.floats(-1, 2), st.floats(0, 1e6)), max_size=8))
def test_any_share_at_any_time_can_be_shown(events):
  stream = io.StringIO()
  line, clock = _line(stream)
  line.doing('x')
  for share, seconds in events:
    line.reached(share, '')
    clock.s += seconds
    line.tick()
  assert all(
      text.startswith('gdp: x') for text in stream.getvalue().split('\n')
      if text)


def test_it_is_shown_while_standard_error_is_held(monkeypatch, capfd):
  monkeypatch.setattr(sys, '__stderr__', sys.stderr)
  with progress_line.shown('gdp'):
    with quiet.stderr_held():
      progress.doing('loading')
      os.write(2, b'noise\n')
  assert capfd.readouterr().err == 'gdp: loading\n'


def test_quiet_says_nothing_but_what_is_printed(capsys):
  with progress_line.shown('gdp', quiet=True):
    progress.doing('loading')
    print('result')
  assert capsys.readouterr() == ('result\n', '')


@pytest.mark.parametrize('stream', [None, open(os.devnull)])
def test_nobody_fails_because_nobody_looks(monkeypatch, stream):
  if stream is not None:
    stream.close()
  monkeypatch.setattr(sys, 'stderr', stream)
  with progress_line.shown('gdp'):
    progress.doing('x')


def test_whoever_stops_reading_ends_nothing():
  ours, theirs = os.pipe()
  os.close(ours)
  with os.fdopen(theirs, 'w', buffering=1) as stream:
    line = progress_line.ProgressLine('gdp', stream)
    line.doing('x')
    line.doing('')
    with open(os.devnull, 'wb') as null:
      os.dup2(null.fileno(), theirs)


def test_errors_pass_and_the_line_ends(capsys):
  with pytest.raises(KeyError):
    with progress_line.shown('gdp'):
      progress.doing('x')
      raise KeyError
  progress.doing('nobody hears this')
  assert capsys.readouterr().err == 'gdp: x\n'


def test_a_line_has_the_width_of_its_own_terminal(monkeypatch):
  """A terminal beside redirected output had lines of 79 characters."""
  monkeypatch.delenv('COLUMNS', raising=False)
  ours, theirs = os.openpty()
  termios.tcsetwinsize(theirs, (24, 30))
  with os.fdopen(theirs, 'w') as terminal:
    progress_line.ProgressLine('gdp', terminal).doing('x' * 100)
    assert os.read(ours, 1000).decode() == '\r\x1b[Kgdp: ' + 'x' * 24
  os.close(ours)


def test_a_notebook_gets_the_line_itself(monkeypatch, capfd):
  """Progress went to the terminal of the notebook's server."""

  class Cell(io.StringIO):
    """The stream of a notebook, with the descriptor of the server's stream."""

    def fileno(self):
      return 2

  cell = Cell()
  monkeypatch.setattr(sys, 'stderr', cell)
  with progress_line.shown('gdp'):
    progress.doing('reading')
  assert cell.getvalue() == 'gdp: reading\n'
  assert not capfd.readouterr().err

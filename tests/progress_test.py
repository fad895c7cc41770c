"""Tests of what programs say of their work."""

import io
import os
import sys

import pytest

from gdp_grappler import progress


class _Listener:
  """Writes down what it hears."""

  def __init__(self):
    self.heard = []

  def doing(self, what):
    self.heard.append(what)

  def reached(self, share, detail):
    self.heard.append((share, detail))

  def make_room(self):
    self.heard.append('room')


def _all(what):
  progress.doing(what)
  progress.reached(.5, what)
  progress.make_room()
  progress.idle()


def test_without_a_listener_nothing_happens():
  _all('x')


def test_the_innermost_listener_hears():
  outer, inner = _Listener(), _Listener()
  with progress.heard_by(outer):
    with progress.heard_by(inner):
      _all('a')
    with progress.heard_by(None):
      _all('b')
    progress.doing('c')
  _all('d')
  assert inner.heard == ['a', (.5, 'a'), 'room', '']
  assert outer.heard == ['c']


def test_what_is_done_with_each_is_counted_and_nothing_else_heard():
  listener = _Listener()

  def work(item):
    progress.doing('something of its own')
    return item * 2

  with progress.heard_by(listener):
    assert progress.of_each('working', iter([3, 4]), work,
                            'number {}'.format) == [6, 8]
  assert listener.heard == [
      'working', (0., '1 of 2: number 3'), (.5, '2 of 2: number 4')
  ]


def _unread():
  """Returns a pipe that nobody reads."""
  reader, writer = os.pipe()
  os.close(reader)
  return open(writer, 'w', buffering=1)


@pytest.mark.parametrize('opened', [
    lambda: None,
    lambda: open('/dev/full', 'w', buffering=1),
    _unread,
])
def test_lines_that_nobody_can_read_do_not_end_the_program(opened, monkeypatch):
  """Once `gdp place` wrote no plan, and its exit code was 0."""
  listener, stream = _Listener(), opened()
  monkeypatch.setattr(sys, 'stderr', stream)
  with progress.heard_by(listener):
    progress.say('x')
  assert listener.heard == ['room'] * (stream is not None)
  if stream is not None:
    with pytest.raises(OSError):
      stream.close()
    progress.say('y')


def test_characters_that_the_stream_lacks_are_escaped(monkeypatch):
  written = io.BytesIO()
  stream = io.TextIOWrapper(written, encoding='ascii')
  monkeypatch.setattr(sys, 'stderr', stream)
  progress.say('plan für 模型')
  assert written.getvalue() == b'plan f\\xfcr \\u6a21\\u578b\n'


def test_a_stream_of_the_program_that_fails_does_not_end_it(monkeypatch):

  class Tee(io.StringIO):

    def write(self, text):
      raise ValueError(f'{text} comes too late.')

  monkeypatch.setattr(sys, 'stderr', Tee())
  progress.say('x')


def test_a_line_is_safe_to_print(monkeypatch):
  stream = io.StringIO()
  monkeypatch.setattr(sys, 'stderr', stream)
  progress.say('a\n\x1b[31mb')
  assert stream.getvalue() == 'a ?[31mb\n'

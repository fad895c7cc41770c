"""Progress and assumptions that calls from Python print."""

import io
import pathlib
import re
import sys

import pytest

import gdp_grappler
from gdp_grappler import errors
from gdp_grappler import progress
from gdp_grappler.api import placing
from gdp_grappler.api import telling
from helpers import graph_defs

_GRAPH = pathlib.Path(__file__).parents[1] / 'testdata/dense_train_step.pb'


class _Terminal(io.StringIO):

  def isatty(self):
    return True


def _terminal(monkeypatch):
  """Replaces standard error. Before a test begins, pytest has its own."""
  stream = _Terminal()
  monkeypatch.setattr(sys, 'stderr', stream)
  return stream


def _place(**options):
  return gdp_grappler.place(_GRAPH, '2xP100', placer='metis', **options)


def test_a_call_on_a_terminal_says_what_it_does(monkeypatch):
  # Once such a call was silent.
  terminal = _terminal(monkeypatch)
  _place()
  said = terminal.getvalue()
  assert 'gdp: placing 192 ops by metis' in said
  # The line is rewritten, and erased at the end.
  assert said.endswith('\r\x1b[K') and '\n' not in said


class _Tee:
  """Copies standard error to a file, as many programs do."""

  def __init__(self):
    self.text = ''

  def write(self, text):
    self.text += text

  def flush(self):
    pass


@pytest.mark.parametrize('verbose', ['auto', True])
def test_standard_error_may_be_an_object_of_the_program(verbose, monkeypatch):
  """Once a call ended with an error, because the object lacked `closed`."""
  tee = _Tee()
  monkeypatch.setattr(sys, 'stderr', tee)
  _place(verbose=verbose)
  telling.say('assumed')
  assert tee.text.endswith('gdp: assumed\n')
  assert ('gdp: reading' in tee.text) == (verbose is True)


@pytest.mark.parametrize('verbose, is_said', [('auto', False), (True, True),
                                              (1, True), (False, False),
                                              (0, False)])
def test_elsewhere_progress_is_said_if_asked_for(verbose, is_said, capfd):
  _place(verbose=verbose)
  assert ('gdp: ' in capfd.readouterr().err) == is_said


def test_what_was_assumed_is_said_everywhere_but_where_nobody_wants_it(
    tmp_path, capsys):

  def make():
    import tensorflow as tf
    limit = tf.compat.v1.placeholder(tf.int32, [])
    tf.compat.v1.while_loop(lambda i, _: i < limit, lambda i, x:
                            (i + 1, tf.sin(x)), [0, tf.ones([2])])

  path = tmp_path / 'loop.pb'
  path.write_bytes(graph_defs.built(make).SerializeToString())
  options = dict(placer='single_device')
  plan = gdp_grappler.place(path, '2xP100', **options)
  line = capsys.readouterr().err
  assert line.startswith('gdp: 1 while loop of unknown length')
  gdp_grappler.place(path, '2xP100', verbose=False, **options)
  gdp_grappler.compare(path, '2xP100', ['single_device'], verbose=False)
  assert not capsys.readouterr().err
  heard = []
  gdp_grappler.place(path, '2xP100', tell=heard.append, **options)
  assert line == f'gdp: {heard[0]}\n' and not capsys.readouterr().err
  plan.save(tmp_path / 'plan.json')
  gdp_grappler.load_plan(tmp_path / 'plan.json', path)
  assert capsys.readouterr().err == line
  gdp_grappler.simulate(path, tmp_path / 'plan.json', verbose=False)
  assert not capsys.readouterr().err


def test_who_gave_a_budget_is_told_what_reading_took(monkeypatch):
  heard = []
  _place(time_budget_s=5., tell=heard.append)
  assert not heard
  monkeypatch.setattr(placing, '_QUICK_S', -1.)
  _place(tell=heard.append)
  assert not heard
  _place(time_budget_s=5., tell=heard.append)
  [line] = heard
  assert re.fullmatch(
      r'Reading took \d+ s. The time budget is for the search alone.', line)


def test_who_listens_already_is_not_disturbed(monkeypatch):
  terminal, said = _terminal(monkeypatch), []

  class Listener:
    doing = said.append

    def reached(self, share, detail):
      pass

    def make_room(self):
      pass

  with progress.heard_by(Listener()):
    _place()
  assert 'placing 192 ops by metis' in said and not terminal.getvalue()
  with progress.heard_by(None):
    _place(verbose=True)
  assert not terminal.getvalue()


def test_a_program_without_standard_error_goes_on(monkeypatch):
  monkeypatch.setattr(sys, 'stderr', None)
  telling.say('a line')
  _place(verbose=True)


@pytest.mark.parametrize('verbose', ['loud', 2, None])
def test_other_values_are_refused(verbose):
  with pytest.raises(errors.GdpError, match="'auto', True or False"):
    _place(verbose=verbose)

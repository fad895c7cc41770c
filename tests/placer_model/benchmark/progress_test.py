"""How long it still takes, and what is said meanwhile."""

import io
import math

import rich.console

from helpers import bench_results
from placer_model.benchmark import progress as progress_lib


def test_eta_goes_by_placer():
  eta = progress_lib.Eta(['fast', 'slow', 'fast', 'slow', 'new'])
  assert math.isnan(eta.seconds())
  eta.ended('fast', 1.)
  assert eta.seconds() == 4.
  eta.ended('slow', 9.)
  # One fast, one slow, and a new one of unknown length.
  assert eta.seconds() == 1. + 9. + 5.


def test_eta_with_cells_side_by_side():
  eta = progress_lib.Eta(['a'] * 5, jobs=2)
  eta.ended('a', 3.)
  assert eta.seconds() == 6.


def test_kept_cells_tell_nothing_about_time():
  eta = progress_lib.Eta(['a', 'a', 'a'])
  eta.ended('a', None)
  assert math.isnan(eta.seconds())
  eta.ended('a', 2.)
  assert eta.seconds() == 2.


def _lines(terminal, act):
  stream = io.StringIO()
  console = rich.console.Console(file=stream, force_terminal=terminal, width=60)
  with progress_lib.Progress(console, ['metis', 'random', 'hdp', 'gdp'],
                             1) as progress:
    act(progress)
  return stream.getvalue()


def _record(**changes):
  return bench_results.cell(.25, placer='metis', **changes)


def test_plain_lines():

  def act(progress):
    progress.skip_finished(['random'])
    progress.ended(_record(), 4.)
    progress.not_loaded('lost@cpu', ['hdp'], 'no [file]')
    progress.ended(
        bench_results.failure() | {'task': 'net@2xP100', 'placer': 'gdp'}, 1.)

  assert _lines(False, act).splitlines() == [
      '[1/4] kept: random',
      '[2/4] net@2xP100 metis: 0.25 s, placed in 2.00 s  ETA 0:08',
      '[3/4] lost@cpu: FAILED: no [file]',
      '[4/4] net@2xP100 gdp: FAILED: crashed with SIGSEGV  ETA 0:00'
  ]


def test_a_terminal_keeps_only_failures():
  text = _lines(True, lambda progress: progress.ended(_record(), 4.))
  assert '[1/4]' not in text
  text = _lines(
      True, lambda progress: progress.ended(
          bench_results.failure('broke') | {'task': 't', 'placer': 'gdp'}, 1.))
  assert '[1/4] t gdp: FAILED: broke' in text

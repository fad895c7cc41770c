"""Tests of `verify` and of `gdp verify`."""

import pytest

import gdp_grappler
from gdp_grappler.api import verifying
from gdp_grappler.bin import gdp
from gdp_grappler.processes import calls


@pytest.mark.e2e
def test_three_programs_are_really_placed():
  verification = gdp_grappler.verify()
  assert verification.works, str(verification)
  assert [p.program for p in verification.programs
         ] == ['keras_fit', 'training_loop', 'session']
  assert all('CPU:0 and CPU:1' in p.detail for p in verification.programs)


def _answers(monkeypatch, answer):

  def call(function, **options):
    del options
    if isinstance(answer, Exception):
      raise answer
    return answer(function)

  monkeypatch.setattr(calls, 'call', call)


_GOOD = ([1., .5], ['CPU:0']), ([1., .5], ['CPU:0', 'CPU:1'])


def test_all_is_well(monkeypatch, capsys):
  _answers(monkeypatch, lambda function: _GOOD)
  assert gdp.run(['verify']) == 0
  out = capsys.readouterr().out
  assert out.count('its 2 losses are the same') == 3
  assert out.endswith('Placement works here.\n')


@pytest.mark.parametrize('placed, said', [
    (([1., .6], ['CPU:0', 'CPU:1']), 'its losses became 1, 0.6'),
    (([1.], ['CPU:0', 'CPU:1']), 'its losses became 1 where'),
    (([1., float('nan')], ['CPU:0', 'CPU:1']), 'became 1, nan'),
    (([1., .5], ['CPU:0']), 'its ops stayed on CPU:0'),
    (([1., .5], []), 'its ops stayed on no device'),
])
def test_what_is_wrong_is_said(monkeypatch, capsys, placed, said):
  _answers(
      monkeypatch, lambda function: (_GOOD[0], placed)
      if 'session' in function else _GOOD)
  assert gdp.run(['verify']) == 1
  out = capsys.readouterr().out
  assert said in out and '1 of 3 programs failed' in out


def test_a_program_that_dies_is_told(monkeypatch):
  _answers(monkeypatch, calls.CallError('killed by signal 9'))
  verification = verifying.verify()
  assert not verification.works
  assert 'it failed: killed by signal 9' in str(verification)
  assert '<p>' in verification._repr_html_()
  assert repr(verification).startswith('<Verification ')

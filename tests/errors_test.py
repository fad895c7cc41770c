"""Tests of gdp_grappler.errors."""

from __future__ import annotations

import pytest

from gdp_grappler import errors


def test_a_line_stays_as_it_is():
  assert errors.one_line(
      errors.GdpError('Op "ü" is gone.')) == ('Op "ü" is gone.')


@pytest.mark.parametrize('said, printed', [
    ('two\nlines\r\n', 'two lines'),
    ('node "\x1b[2J\x1b]0;owned\a"', 'node "?[2J?]0;owned?"'),
    ('\0\u202e', '??'),
])
def test_a_terminal_is_not_told_what_to_do(said, printed):
  assert errors.one_line(said) == printed


@pytest.mark.parametrize('error, line', [
    (ValueError('one.\ntwo'), 'one'),
    (ValueError('\n '), 'ValueError'),
    (OSError(2, 'gone'), '[Errno 2] gone'),
])
def test_first_lines(error, line):
  assert errors.first_line(error) == line


def test_errors_of_others_are_described_with_their_type():
  assert errors.described(errors.PlanError('is\nwrong')) == 'is wrong'
  assert errors.described(KeyError('a')) == "KeyError: 'a'"
  described = errors.described(ValueError('a' * 99), 40)
  assert described.startswith('ValueError: aaa') and len(described) <= 40


def _nested(depth):
  return [] if not depth else [_nested(depth - 1)]


class _Mute:

  def __repr__(self):
    raise RuntimeError


@pytest.mark.parametrize('value, shown', [
    ('a', "'a'"),
    (1.5, '1.5'),
    (True, 'True'),
    ({'a': [1, 2]}, "{'a': [1, 2]}"),
    (10**400, f'1{"0" * 47}...{"0" * 49}'),
    (10**5000, '<value of type int>'),
    (_nested(500), '[[[[[[[...]]]]]]]'),
    ('\x1b[2J', "'\\x1b[2J'"),
], ids=lambda value: type(value).__name__)
def test_values(value, shown):
  assert errors.shown(value) == shown


@pytest.mark.parametrize(
    'value',
    ['a' * 10**6, [10**400] * 99,
     dict.fromkeys(range(999), 'a' * 99),
     _Mute()], ids=lambda value: type(value).__name__)
def test_any_value_is_short(value):
  assert len(errors.shown(value)) <= 100


def test_a_value_without_a_text_is_told_by_its_type():
  assert '_Mute' in errors.shown(_Mute())


def test_megabytes_are_cut():
  printed = errors.one_line('begin ' + 'x' * (8 << 20) + ' end')
  assert len(printed) < 2010
  assert printed.startswith('begin') and printed.endswith('end')

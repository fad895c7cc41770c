"""Words and what they mean."""

import pytest

from gdp_grappler import errors
from gdp_grappler.bin import gdp
from gdp_grappler.reports import glossary


def test_one_word_in_any_case(capsys):
  assert gdp.run(['glossary', 'fifo']) == 0
  assert capsys.readouterr().out.startswith('FIFO: First in, first out')


def test_all_words_in_80_columns():
  lines = glossary.text().splitlines()
  assert max(map(len, lines)) < 80
  assert sum(not line.startswith(' ') for line in lines) == len(glossary.TERMS)


def test_words_are_in_order():
  assert list(glossary.TERMS) == sorted(glossary.TERMS, key=str.lower)


def test_a_word_there_is_not():
  with pytest.raises(errors.GdpError, match='Did you mean "roofline"'):
    glossary.text('rooflin')


def test_an_unknown_word_is_an_error_of_the_program(capsys):
  assert gdp.run(['glossary', 'xyzzy']) == 2
  assert 'prints all words' in capsys.readouterr().err

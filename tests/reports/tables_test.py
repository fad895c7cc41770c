"""Tests of tables for terminals and notebooks."""

import re

import hypothesis
from hypothesis import strategies as st
import pytest

from gdp_grappler.reports import tables

_ROWS = [('op', 'bytes'), ('a', '12'), ('<b>&', '')]


def test_columns_stand_side_by_side():
  assert tables.text(_ROWS) == 'op    bytes\na     12\n<b>&'


def test_cells_are_text():
  page = tables.as_html(_ROWS)
  assert page.startswith('<table><thead><tr><th>op</th>')
  assert '&lt;b&gt;&amp;' in page and '<b>' not in page


def test_numbers_stand_to_the_right_on_pages():
  page = tables.as_html(_ROWS, right=(1,))
  assert '<th style="text-align: left">op</th>' in page
  assert '<td style="text-align: right">12</td>' in page


def test_a_bar_is_not_the_end_of_a_cell():
  assert tables.as_markdown([
      ('a', 'b'), ('1|2', '')
  ]).splitlines() == ['| a | b |', '| --- | --- |', r'| 1\|2 |  |']


def test_paragraphs():
  assert tables.paragraph([]) == ''
  assert tables.paragraph(['a', '<']) == '<p>a<br>&lt;</p>'


_WORD = st.text('abcXYZ0123456789/_.@:%-<é', min_size=1, max_size=18)
_CELL = st.lists(_WORD, max_size=6).map(' '.join)


@st.composite
def _tables(draw):
  columns = draw(st.integers(1, 14))
  row = st.lists(_CELL, min_size=columns, max_size=columns)
  return draw(st.lists(row, min_size=1, max_size=5))


@hypothesis.given(_tables(), st.sampled_from([60, 80, 200]), st.booleans())
def test_no_line_is_too_long_and_no_word_is_cut(rows, width, right):
  text = tables.text(rows, width, range(1, 20) if right else ())
  assert all(len(line) <= width for line in text.splitlines())
  assert all(line == line.rstrip() for line in text.splitlines())
  words = {word for row in rows for cell in row for word in cell.split()}
  # Whatever is left after the breaks that are allowed is there as a whole.
  for word in words:
    assert all(part in text for part in re.split('(?<=[/@_:.-])', word))


@hypothesis.given(_tables())
def test_what_fits_is_as_it_was(rows):
  wide = tables.text(rows, 10_000)
  widths = [max(map(len, column)) for column in zip(*rows)]
  assert wide.splitlines() == '\n'.join('  '.join(
      cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
                                        for row in rows).splitlines()


def test_names_end_lines_at_their_parts():
  name = 'StatefulPartitionedCall/gradient_tape/model/dense_12/MatMul'
  rows = [('from', 'takes', 'op'), ('GPU:0', '12.25 ms', name)]
  assert tables.text(rows,
                     50) == ('from   takes     op\n'
                             'GPU:0  12.25 ms  StatefulPartitionedCall/\n'
                             '                 gradient_tape/model/dense_12/\n'
                             '                 MatMul')


def test_numbers_keep_their_units_and_words_stay_whole():
  rows = [('device', 'launch', 'what is sent'),
          ('task 0 CPU:0', 'ahead: 1.5 us per op, 100 us', '12 tensors, 96 B')]
  for width in range(44, 70):
    text = tables.text(rows, width)
    for whole in ('1.5 us', '100 us', '96 B', '12 tensors'):
      assert whole in text


def test_many_columns_stand_in_blocks():
  head = ['graph', *(f'measured figure {i}' for i in range(12))]
  rows = [head, ['benchmarks.keras_models:cnn', *['123.4 ms'] * 12]]
  blocks = tables.text(rows, 80, range(1, 13)).split('\n\n')
  assert len(blocks) > 1
  assert all('benchmarks.keras_models:cnn' in block for block in blocks)
  assert sum(block.count('123.4 ms') for block in blocks) == 12


def test_a_terminal_that_is_wide_is_used(monkeypatch):
  rows = [['a', 'b'], ['x ' * 60, 'y']]
  monkeypatch.setenv('COLUMNS', '200')
  assert len(tables.text(rows).splitlines()) == 2
  monkeypatch.setenv('COLUMNS', '80')
  assert len(tables.text(rows).splitlines()) > 2


def test_titles_and_captions_are_wrapped():
  text = tables.titled('t ' * 60, [['a', 'b'], ['1', '2']], 'c ' * 60, 80)
  assert all(len(line) <= 80 for line in text.splitlines())


def test_scopes_that_all_names_have():
  assert tables.common_scope(['a/b/c', 'a/b/cd', 'a/b/cd']) == 'a/b/'
  assert tables.common_scope(['a/b', 'a/b/c']) == 'a/'
  assert tables.common_scope(['ab', 'abc']) == ''
  assert tables.common_scope(['a/b', 'a/b']) == ''
  assert tables.common_scope([]) == ''


@hypothesis.given(_CELL)
def test_paragraphs_are_as_narrow_as_tables(words):
  text = tables.wrapped(words, 40)
  assert all(len(line) <= 40 for line in text.splitlines())
  assert ''.join(text.split()) == ''.join(words.split())


@pytest.mark.parametrize(
    'words', ['0000000000000 %000000000000 %000000000000', '9' * 39 + ' %'])
def test_what_looks_like_a_unit_ends_lines(words):
  """Once a line began no new one before '%' in any word."""
  assert all(len(line) <= 40 for line in tables.wrapped(words, 40).splitlines())


def test_names_in_paragraphs_end_lines():
  name = 'StatefulPartitionedCall/gradient_tape/model/dense_12/MatMul'
  assert tables.wrapped(f'{name} is there', 40) == (
      'StatefulPartitionedCall/gradient_tape/\nmodel/dense_12/MatMul is there')

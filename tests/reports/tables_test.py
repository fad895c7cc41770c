"""Tests of tables for terminals and notebooks."""

from gdp_grappler.reports import tables

_ROWS = [('op', 'bytes'), ('a', '12'), ('<b>&', '')]


def test_columns_stand_side_by_side():
  assert tables.text(_ROWS) == 'op    bytes\na     12\n<b>&'


def test_cells_are_text():
  page = tables.as_html(_ROWS)
  assert page.startswith('<table><thead><tr><th>op</th>')
  assert '&lt;b&gt;&amp;' in page and '<b>' not in page


def test_a_bar_is_not_the_end_of_a_cell():
  assert tables.as_markdown([
      ('a', 'b'), ('1|2', '')
  ]).splitlines() == ['| a | b |', '| --- | --- |', r'| 1\|2 |  |']


def test_paragraphs():
  assert tables.paragraph([]) == ''
  assert tables.paragraph(['a', '<']) == '<p>a<br>&lt;</p>'

"""Tables for terminals and for notebooks."""

from __future__ import annotations

import html
from typing import Sequence


def text(rows: Sequence[Sequence[str]]) -> str:
  """Columns side by side, without an end of line.

  Args:
    rows: [R] of [C] cells, the head first.
  """
  widths = [max(map(len, column)) for column in zip(*rows)]
  return '\n'.join('  '.join(
      cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
                   for row in rows)


def as_markdown(rows: Sequence[Sequence[str]]) -> str:
  """The same for a page of Markdown; a bar in a cell stays a character.

  Args:
    rows: [R] of [C] cells, the head first.
  """
  head, *body = rows
  cells = [head, ['---'] * len(head), *body]
  return '\n'.join('| ' + ' | '.join(cell.replace('|', r'\|')
                                     for cell in row) + ' |' for row in cells)


def as_html(rows: Sequence[Sequence[str]]) -> str:
  """The same as an element of a page; what is in the cells is text.

  Args:
    rows: [R] of [C] cells, the head first.
  """
  head, *body = rows
  return ('<table><thead>' + _html_row(head, 'th') + '</thead><tbody>'
          + ''.join(_html_row(row, 'td') for row in body) + '</tbody></table>')


def _html_row(row: Sequence[str], tag: str) -> str:
  cells = ''.join(f'<{tag}>{html.escape(cell)}</{tag}>' for cell in row)
  return f'<tr>{cells}</tr>'


def paragraph(lines: Sequence[str]) -> str:
  """Lines of text as an element of a page; '' for none."""
  if not lines:
    return ''
  return f'<p>{"<br>".join(map(html.escape, lines))}</p>'

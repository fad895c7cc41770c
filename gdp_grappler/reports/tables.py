"""Formats tables for terminals, for notebooks and for Markdown."""

from __future__ import annotations

import html
import os
import re
import shutil
from typing import Container, Iterable, Sequence

from gdp_grappler.reports import units

# Least width of a table, in characters.
_LEAST_WIDTH = 40
# Characters between two columns.
_GAP = 2
# Where a line of a cell may end, from the best place to the worst. After a
# space, but not between a number and its unit:
_WORDS = re.compile(r'(?<=[^\d\s]\s)|(?<=\d\s)'
                    r'(?!(?:[kMGTP]?i?(?:B|FLOP)(?:/s)?|[mun]?s|%)(?!\w))')
# After any space, if a number with its unit is longer than a line:
_SPACES = re.compile(r'(?<=\s)')
# Between the scopes of a name, and between the words of a scope:
_NAMES = re.compile(r'(?<=[/@])|(?<=[:.])(?=[A-Za-z])')
_PARTS = re.compile(r'(?<=[_-])(?=[A-Za-z])')
# A column is made narrower than its longest word only down to this width.
_NAME_WIDTH = 24
# A column that has a cell of this width is not made narrower than this.
_CELL_WIDTH = 16
_Rows = Sequence[Sequence[str]]


def text(rows: _Rows, width: int | None = None,
         right: Container[int] = ()) -> str:
  """Returns columns side by side, without an end of line.

  No line is longer than the width, and no word is cut. A cell may take several
  lines, which end between words or between parts of a name. If that is not
  enough, the table is divided into blocks, one below the other. Each block
  begins with the first column. A part of a name that is longer than a line
  stays whole.

  Args:
    rows: [R] of [C] cells, the head first.
    width: Characters of a line. None means those of the terminal, or 80.
    right: Columns that are aligned to the right, such as numbers.
  """
  if width is None:
    width = terminal_width()
  blocks: list[str] = []
  left = list(range(1, len(rows[0])))
  while left or not blocks:
    count = _fitting(rows, left, width)
    shown = [0, *left[:count]]
    blocks.append(
        _block([[row[column] for column in shown] for row in rows], width,
               [column in right for column in shown]))
    left = left[count:]
  return '\n\n'.join(blocks)


def titled(title: str, rows: _Rows, caption: str = '',
           width: int | None = None) -> str:
  """Returns a table of names and numbers, with a title and a caption.

  Args:
    title: Line above the table.
    rows: [R] of [C] cells, the head first. All columns but the first are
      aligned to the right.
    caption: Lines below the table.
    width: See `text`.
  """
  table = text(rows, width, range(1, len(rows[0])))
  below = [wrapped(caption, width)] if caption else []
  return '\n\n'.join([wrapped(title, width), table, *below])


def wrapped(words: str, width: int | None = None) -> str:
  """Returns a paragraph in lines. Long names are divided at their parts."""
  return '\n'.join(
      _lines(' '.join(words.split()),
             terminal_width() if width is None else width))


def common_scope(names: Iterable[str]) -> str:
  """Returns the scopes that all names begin with, with the last '/'.

  Args:
    names: Names of ops.

  Returns:
    '' if there are no such scopes, or fewer than two names.
  """
  distinct = set(names)
  if len(distinct) < 2:
    return ''
  return ''.join(os.path.commonprefix(list(distinct)).rpartition('/')[:2])


def left_out(scope: str) -> str:
  """Returns a line that names the scope that is left out of names."""
  return f'Left out below, at the beginning of names: {scope}'


def more(rows: Sequence[object], shown: int, what: str) -> list[str]:
  """Returns a line about rows that a table leaves out; none without such rows.

  Args:
    rows: All rows.
    shown: Number of rows in the table.
    what: What a row is, such as 'op'.
  """
  left = len(rows) - shown
  return [f'... and {units.count(left, f"more {what}")}'] if left > 0 else []


def terminal_width() -> int:
  """Returns the characters of a line; 80 without a terminal."""
  return max(shutil.get_terminal_size().columns, _LEAST_WIDTH)


def _fitting(rows: _Rows, left: Sequence[int], width: int) -> int:
  """Returns the number of remaining columns that fit beside the first."""
  columns = list(zip(*rows))
  needed = _least(columns[0])[1]
  for count, column in enumerate(left):
    needed += _GAP + _least(columns[column])[1]
    if needed > width:
      return max(count, 1)
  return len(left)


def _least(column: Sequence[str]) -> tuple[int, int]:
  """Returns the least width of a column by words, and by parts of names."""
  words = [word for cell in column for word in _WORDS.split(cell)]
  names = [name for word in words for name in _NAMES.split(word)]
  parts = [part for name in names for part in _PARTS.split(name)]
  readable = min(_longest(column[1:]), _CELL_WIDTH)
  return (max(_longest(words), readable),
          max(_longest(parts), min(_longest(words), _NAME_WIDTH), readable))


def _longest(pieces: Sequence[str]) -> int:
  return max((len(piece.rstrip()) for piece in pieces), default=0)


def _block(rows: _Rows, width: int, right: Sequence[bool]) -> str:
  """Returns rows with all columns side by side."""
  widths = [max(map(len, column)) for column in zip(*rows)]
  room = width - _GAP * (len(widths) - 1)
  # Lines end between words if that is enough.
  for least in zip(*map(_least, zip(*rows))):
    _narrow(widths, least, room)
  lines = []
  for row in rows:
    cells = [_lines(cell, width) for cell, width in zip(row, widths)]
    for number in range(max(map(len, cells))):
      pieces = [(cell[number] if number < len(cell) else '') for cell in cells]
      lines.append((' ' * _GAP).join(
          piece.rjust(own) if is_right else piece.ljust(own)
          for piece, own, is_right in zip(pieces, widths, right)).rstrip())
  return '\n'.join(lines)


def _narrow(widths: list[int], least: Sequence[int], room: int) -> None:
  """Narrows the widest columns until all fit, or have their least width."""
  while sum(widths) > room:
    wide = [c for c, width in enumerate(widths) if width > least[c]]
    if not wide:
      return
    widths[max(wide, key=widths.__getitem__)] -= 1


def _lines(cell: str, width: int) -> list[str]:
  """Returns the lines of a cell. Only words that are too long are divided."""
  pieces = [cell]
  for ends in (_WORDS, _SPACES, _NAMES, _PARTS):
    pieces = [
        part for piece in pieces for part in (
            [piece] if len(piece.rstrip()) <= width else ends.split(piece))
    ]
  lines = ['']
  for piece in pieces:
    if lines[-1] and len((lines[-1] + piece).rstrip()) > width:
      lines.append('')
    lines[-1] += piece
  return [line.rstrip() for line in lines]


def as_markdown(rows: Sequence[Sequence[str]]) -> str:
  """Returns a table in Markdown. A bar in a cell is escaped.

  Args:
    rows: [R] of [C] cells, the head first.
  """
  head, *body = rows
  cells = [head, ['---'] * len(head), *body]
  return '\n'.join('| ' + ' | '.join(cell.replace('|', r'\|')
                                     for cell in row) + ' |' for row in cells)


def as_html(rows: Sequence[Sequence[str]], right: Container[int] = ()) -> str:
  """Returns a table in HTML. Markup in cells is escaped.

  Args:
    rows: [R] of [C] cells, the head first.
    right: Columns that are aligned to the right, such as numbers. All others
      are then aligned to the left. Without such columns the page decides.
  """
  sides = [''] * len(rows[0])
  if right:
    sides = [
        f' style="text-align: {"right" if column in right else "left"}"'
        for column in range(len(rows[0]))
    ]
  head, *body = rows
  return ('<table><thead>' + _html_row(head, 'th', sides) + '</thead><tbody>'
          + ''.join(_html_row(row, 'td', sides) for row in body)
          + '</tbody></table>')


def _html_row(row: Sequence[str], tag: str, sides: Sequence[str]) -> str:
  cells = ''.join(f'<{tag}{side}>{html.escape(cell)}</{tag}>'
                  for cell, side in zip(row, sides))
  return f'<tr>{cells}</tr>'


def paragraph(lines: Sequence[str]) -> str:
  """Returns lines of text as a paragraph in HTML; '' for no lines."""
  if not lines:
    return ''
  return f'<p>{"<br>".join(map(html.escape, lines))}</p>'

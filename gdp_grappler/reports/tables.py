"""Formats tables for terminals, for notebooks and for Markdown."""

from __future__ import annotations

import html
import os
import re
import shutil
from typing import Container, Iterable, Sequence

_LEAST_WIDTH, _GAP = 40, 2
# Where a cell may be broken into lines. First choice: after a space, except
# between a number and its unit. Second: between the parts of a long name.
# Third: within such a part.
_WORDS = re.compile(r'(?<=[^\d\s]\s)|(?<=\d\s)'
                    r'(?![kMGTP]?i?(?:B|FLOP)(?:/s)?(?!\w)|[mun]?s(?!\w)|%)')
_NAMES = re.compile(r'(?<=[/@])|(?<=[:.])(?=[A-Za-z])')
_PARTS = re.compile(r'(?<=[_-])(?=[A-Za-z])')
_NAME_WIDTH, _CELL_WIDTH = 24, 16
_Rows = Sequence[Sequence[str]]


def text(rows: _Rows, width: int | None = None,
         right: Container[int] = ()) -> str:
  """Returns a table as text, without a newline at the end.

  A table that is wider than the width gets cells of several lines, broken at
  spaces and between the parts of names. If the table is still too wide, the
  columns are distributed over several blocks, which all begin with the first
  column. A part of a name that is longer than a line stays whole.

  Args:
    rows: [R] of [C] cells, the head first.
    width: Characters of a line; None for the width of the terminal.
    right: Indices of right-aligned columns, such as numbers.
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
  """Returns a table of names and numbers between a title and a caption.

  Args:
    title: Text above the table.
    rows: See `text`. All columns except the first are right-aligned.
    caption: Text below the table; '' for none.
    width: See `text`.
  """
  table = text(rows, width, range(1, len(rows[0])))
  below = [wrapped(caption, width)] if caption else []
  return '\n\n'.join([wrapped(title, width), table, *below])


def wrapped(words: str, width: int | None = None) -> str:
  """Returns a paragraph in lines; the rules of `text` for cells apply."""
  return '\n'.join(
      _lines(' '.join(words.split()),
             terminal_width() if width is None else width))


def common_scope(names: Iterable[str]) -> str:
  """Returns the scopes, with a '/' at the end, that all names begin with.

  Args:
    names: Names of ops.

  Returns:
    The scopes; '' if the names share none, or if fewer than two names differ.
  """
  distinct = set(names)
  if len(distinct) < 2:
    return ''
  return ''.join(os.path.commonprefix(list(distinct)).rpartition('/')[:2])


def left_out(scope: str) -> str:
  """Returns a note about the scope that a table leaves out of names."""
  return f'Left out below, at the beginning of names: {scope}'


def terminal_width() -> int:
  """Returns the characters of a line; without a terminal, the usual 80."""
  return max(shutil.get_terminal_size().columns, _LEAST_WIDTH)


def _fitting(rows: _Rows, left: Sequence[int], width: int) -> int:
  """Returns how many of the remaining columns fit beside the first column."""
  columns = list(zip(*rows))
  needed = _least(columns[0])[1]
  for count, column in enumerate(left):
    needed += _GAP + _least(columns[column])[1]
    if needed > width:
      return max(count, 1)
  return len(left)


def _least(column: Sequence[str]) -> tuple[int, int]:
  """Returns the least widths of a column: with whole words, and with parts."""
  words = [word for cell in column for word in _WORDS.split(cell)]
  names = [name for word in words for name in _NAMES.split(word)]
  parts = [part for name in names for part in _PARTS.split(name)]
  readable = min(_longest(column[1:]), _CELL_WIDTH)
  return (max(_longest(words), readable),
          max(_longest(parts), min(_longest(words), _NAME_WIDTH), readable))


def _longest(pieces: Sequence[str]) -> int:
  return max((len(piece.rstrip()) for piece in pieces), default=0)


def _block(rows: _Rows, width: int, right: Sequence[bool]) -> str:
  """Returns rows as text, with all their columns side by side."""
  widths = [max(map(len, column)) for column in zip(*rows)]
  room = width - _GAP * (len(widths) - 1)
  # Names are broken only if breaks at spaces do not save enough.
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
  """Narrows the widest columns, not below `least`, until they fit a room."""
  while sum(widths) > room:
    wide = [c for c, width in enumerate(widths) if width > least[c]]
    if not wide:
      return
    widths[max(wide, key=widths.__getitem__)] -= 1


def _lines(cell: str, width: int) -> list[str]:
  """Returns a cell in lines; a word that fits a line is not broken."""
  pieces = [cell]
  for ends in (_WORDS, _NAMES, _PARTS):
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
  """Returns a table in Markdown; bars within cells are escaped.

  Args:
    rows: [R] of [C] cells, the head first.
  """
  head, *body = rows
  cells = [head, ['---'] * len(head), *body]
  return '\n'.join('| ' + ' | '.join(cell.replace('|', r'\|')
                                     for cell in row) + ' |' for row in cells)


def as_html(rows: Sequence[Sequence[str]], right: Container[int] = ()) -> str:
  """Returns a table in HTML; the cells are escaped.

  Args:
    rows: [R] of [C] cells, the head first.
    right: Indices of right-aligned columns, such as numbers. All others are
      left-aligned. If there are none, the page aligns all columns.
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
  """Returns lines of text as an HTML paragraph; '' for no lines."""
  if not lines:
    return ''
  return f'<p>{"<br>".join(map(html.escape, lines))}</p>'

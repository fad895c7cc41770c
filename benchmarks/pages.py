"""Tables and texts in pages of Markdown that programs replace."""

from __future__ import annotations

import pathlib
from typing import Iterable, Sequence

from gdp_grappler import errors
from gdp_grappler import files
from gdp_grappler.reports import tables


class Page:
  """A page with places for tables or texts, each between two comments.

  The first is '<!-- TITLE; made by `COMMAND`. -->', the second
  '<!-- End of TITLE. -->'.
  """

  def __init__(self, path: pathlib.Path, title: str) -> None:
    """Reads the page.

    Args:
      path: The page.
      title: Title of a table in the page.

    Raises:
      GdpError: the page cannot be read, or has no place for the table.
    """
    self._path = path
    self._begin = f'<!-- {title}; made by'
    self._end = f'<!-- End of {title}. -->'
    try:
      text = path.read_text(encoding='utf-8')
    except (OSError, ValueError) as error:
      raise errors.GdpError(f'{path} cannot be read: {error}.') from error
    self._before, begin, rest = text.partition(self._begin)
    _, end, self._after = rest.partition(self._end)
    if not (begin and end):
      raise errors.GdpError(
          f'{path} has no place for the table: it needs the lines '
          f'"{self._begin} ... -->" and "{self._end}".')

  def replace(self, command: str, head: Sequence[str],
              rows: Iterable[Sequence[str]]) -> None:
    """Writes the page with another table.

    Args:
      command: The command that made the table.
      head: Titles of the columns.
      rows: Cells, row by row; as many in each row as in `head`.

    Raises:
      GdpError: the page cannot be written. The file is as it was before.
    """
    self.put(command, tables.as_markdown([head, *rows]))

  def put(self, command: str, text: str) -> None:
    """Writes the page with another text in place of the table.

    Args:
      command: The command that made the text.
      text: Markdown.

    Raises:
      GdpError: the page cannot be written. The file is as it was before.
    """
    files.write_atomically(
        self._path,
        f'{self._before}{self._begin} `{command}`. -->\n\n{text}\n\n'
        f'{self._end}{self._after}')

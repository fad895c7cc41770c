"""Pictures of the recorded sessions, as a terminal shows them."""

from __future__ import annotations

import io
import pathlib
import re
from typing import Mapping

import rich.console
import rich.text

from benchmarks.showing import sessions
from gdp_grappler import errors
from gdp_grappler import files

# Session -> name of its picture.
PICTURES: Mapping[str, str] = {
    'Session 6': 'by_layer', 'Session 7': 'layer_map',
    'Session 8': 'nothing_fits', 'Session 9': 'asked_device',
    'Session 10': 'split_table'
}
_RECORDED = re.compile(
    r'<!-- (Session \d+); made by .*?-->\n\n```text\n(.*?)\n```\n\n'
    r'<!-- End of \1. -->', re.DOTALL)
# On a terminal, the next line overwrites such a line (`progress_line`).
_PROGRESS = re.compile(r'^gdp: (?!warning)\w+ing\b.*\n', re.MULTILINE)
# rich names a font of a web site. A picture must load nothing.
_WEB_FONT = re.compile(r'@font-face \{.*?\}\s*', re.DOTALL)
# Styles of commands and of lines that the program writes.
_STYLES = {
    r'(?m)^\$ (.*\\\n)*.*$': 'bold',
    r'(?m)^gdp:(?! error| warning)': 'cyan',
    r'(?m)^gdp: warning:': 'bold yellow',
    r'(?m)^gdp: error:': 'bold red',
}
# After Paul Tol's "light" scheme, which is legible on a dark ground.
_DEVICES = {'CPU:0': '#77aadd', 'GPU:0': '#ee8866', 'GPU:1': '#bbcc33'}


def draw(page: pathlib.Path, target: pathlib.Path) -> None:
  """Writes an SVG for each session of `PICTURES`.

  Args:
    page: Page with the recorded sessions.
    target: Folder of the pictures.

  Raises:
    GdpError: the page lacks a session, or a picture cannot be written.
  """
  recorded = shown(page.read_text(encoding='utf-8'))
  for session, name in PICTURES.items():
    if session not in recorded:
      raise errors.GdpError(f'{page} has no {session}. Record the sessions '
                            'first.')
    files.write_atomically(target / f'{name}.svg',
                           as_svg(recorded[session], name))


def shown(page: str) -> dict[str, str]:
  """Returns the final text of the terminal by session.

  Args:
    page: Markdown.
  """
  return {
      title: _PROGRESS.sub('', text) for title, text in _RECORDED.findall(page)
  }


def as_svg(text: str, name: str) -> str:
  """Returns a picture of a terminal as SVG, with selectable text.

  Args:
    text: Lines no wider than `sessions.WIDTH`.
    name: Name of the picture, unique in a page.
  """
  console = rich.console.Console(record=True, width=sessions.WIDTH,
                                 file=io.StringIO(), force_terminal=True,
                                 color_system='truecolor')
  console.print(_colored(text))
  svg = console.export_svg(title='gdp', unique_id=name)
  return _WEB_FONT.sub('', svg)


def _colored(text: str) -> rich.text.Text:
  result = rich.text.Text(text, no_wrap=True)
  for pattern, style in _STYLES.items():
    result.highlight_regex(pattern, style)
  for device, color in _DEVICES.items():
    result.highlight_regex(rf'\b{device}\b', color)
  return result

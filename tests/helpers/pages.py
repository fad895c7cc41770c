"""The code in README and in the pages of docs/."""

from __future__ import annotations

import dataclasses
import pathlib
import re
import shlex

TOP = pathlib.Path(__file__).parents[2]
_BLOCK = re.compile(r'^```(\w*)\n(.*?)^```$', re.MULTILINE | re.DOTALL)


@dataclasses.dataclass(frozen=True)
class Block:
  """Fenced lines.

  Attributes:
    page: Name of the file, from the top.
    language: 'python' and 'sh' are run; '' is read.
    text: The lines.
  """

  page: str
  language: str
  text: str

  def commands(self) -> list[list[str]]:
    """What is typed, word by word, up to a redirection."""
    lines = self.text.replace('\\\n', ' ').splitlines()
    return [
        words for line in lines if (words := shlex.split(
            line.removeprefix('$ ').partition(' > ')[0], comments=True))
    ]


def blocks() -> list[Block]:
  """Of all pages that people write; results are written by programs."""
  docs = TOP / 'docs'
  pages = [
      TOP / 'README.md', *sorted(docs.glob('*.md')),
      *sorted(docs.glob('how_to/*.md'))
  ]
  return [
      Block(str(page.relative_to(TOP)), *found) for page in pages
      for found in _BLOCK.findall(page.read_text(encoding='utf-8'))
  ]

"""Reads the blocks of code in README and in the pages of docs/."""

from __future__ import annotations

import dataclasses
import pathlib
import re
import shlex

TOP = pathlib.Path(__file__).parents[2]
_BLOCK = re.compile(r'^```(\w*)\n(.*?)^```$', re.MULTILINE | re.DOTALL)


@dataclasses.dataclass(frozen=True)
class Block:
  """A fenced block of a page.

  Attributes:
    page: Path of the file in the repository.
    language: Language of the block. Tests run 'python' and 'sh'.
    text: Text of the block.
  """

  page: str
  language: str
  text: str

  def commands(self) -> list[list[str]]:
    """Returns the words of each command, up to a redirection."""
    lines = self.text.replace('\\\n', ' ').splitlines()
    return [
        words for line in lines if (words := shlex.split(
            line.removeprefix('$ ').partition(' > ')[0], comments=True))
    ]


def blocks() -> list[Block]:
  """Returns the blocks of all pages, except results, which programs write."""
  docs = TOP / 'docs'
  pages = [
      TOP / 'README.md', *sorted(docs.glob('*.md')),
      *sorted(docs.glob('how_to/*.md'))
  ]
  return [
      Block(str(page.relative_to(TOP)), *found) for page in pages
      for found in _BLOCK.findall(page.read_text(encoding='utf-8'))
  ]

"""Changes to pages in `make docs`, and checks of the finished site."""

from __future__ import annotations

import pathlib
import re
from typing import Any

from mkdocs import exceptions

# HTML that makes a browser load something from a network. Links that a reader
# clicks are allowed.
_FETCHED = re.compile(
    r'<(?:script|img|iframe|source)\b[^>]*\bsrc="?(?:https?:)?//'
    r'|<link\b(?=[^>]*\brel="?(?:stylesheet|preconnect|icon))'
    r'[^>]*\bhref="?(?:https?:)?//', re.IGNORECASE)

# Folders of pages without a list of headings, because tables need its room.
_WIDE = ('results/', 'notebooks/')


def on_page_content(html: str, page: Any, **_: Any) -> str:
  """Hides the list of headings of pages with wide tables or one heading.

  Args:
    html: HTML of the page; returned unchanged.
    page: The page, an object of mkdocs.
  """
  headings = sum(1 + len(top.children) for top in page.toc)
  if headings < 2 or page.file.src_uri.startswith(_WIDE):
    page.meta.setdefault('hide', []).append('toc')
  return html


def on_post_build(config: Any) -> None:
  """Checks that no page loads something from a network.

  Raises:
    PluginError: some pages do.
  """
  folder = pathlib.Path(config['site_dir'])
  online = [
      str(page.relative_to(folder)) for page in sorted(folder.rglob('*.html'))
      if _FETCHED.search(page.read_text(encoding='utf-8'))
  ]
  if online:
    raise exceptions.PluginError(f'These pages need a network: {online}')

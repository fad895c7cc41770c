"""What `make docs` checks of the finished site."""

from __future__ import annotations

import pathlib
import re
from typing import Any

from mkdocs import exceptions

# What a browser fetches by itself; links that a reader clicks may lead away.
_FETCHED = re.compile(
    r'<(?:script|img|iframe|source)\b[^>]*\bsrc="?(?:https?:)?//'
    r'|<link\b(?=[^>]*\brel="?(?:stylesheet|preconnect|icon))'
    r'[^>]*\bhref="?(?:https?:)?//', re.IGNORECASE)


def on_post_build(config: Any) -> None:
  """Raises an error where a page would load something from a network."""
  folder = pathlib.Path(config['site_dir'])
  online = [
      str(page.relative_to(folder)) for page in sorted(folder.rglob('*.html'))
      if _FETCHED.search(page.read_text(encoding='utf-8'))
  ]
  if online:
    raise exceptions.PluginError(f'These pages are not offline: {online}')

"""Links of the pages at the top, which are no part of the built docs."""

import functools
import pathlib
import re

import pytest

from helpers import pages

_LINK = re.compile(r'\]\((?!\w+:)([^)#\s]*)#?([^)\s]*)\)')
_HEADING = re.compile(r'^#+ +(.+?) *$', re.MULTILINE)
_FENCED = re.compile(r'^```.*?^```', re.MULTILINE | re.DOTALL)
_PAGES = ('README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'SECURITY.md')
_LINKS = [(page, *found) for page in _PAGES
          for found in _LINK.findall((pages.TOP / page).read_text('utf-8'))]


@functools.cache
def _anchors(page: pathlib.Path) -> set[str]:
  """The names of the headings of a page, as links have them."""
  text = _FENCED.sub('', page.read_text(encoding='utf-8'))
  return {
      re.sub(r'[^\w\- ]', '', heading).lower().replace(' ', '-')
      for heading in _HEADING.findall(text)
  }


@pytest.mark.parametrize('page, target, anchor', _LINKS)
def test_a_link_leads_to_a_page_and_a_heading(page, target, anchor):
  path = pages.TOP / (target or page)
  assert path.exists()
  assert not anchor or anchor in _anchors(path)


def test_links_to_headings_are_found():
  assert sum(bool(anchor) for *_, anchor in _LINKS) >= 3

"""Pictures of terminals show what was recorded."""

import collections
import re
from xml.etree import ElementTree

import pytest

from gdp_grappler import errors
from helpers import benchmarks

terminals = benchmarks.module('showing.terminals')
_DOCS = benchmarks.TOP / 'docs'
_SVG = '{http://www.w3.org/2000/svg}'
_SESSION = '''<!-- Session 6; made by `make pictures`. -->

```text
$ gdp place a --cluster=b \\
    --output=c
gdp: reading a
gdp: warning: it is so
gdp: error: "a" < 2 & b
layer  device
...
```

<!-- End of Session 6. -->
'''
_LEFT = '''$ gdp place a --cluster=b \\
    --output=c
gdp: warning: it is so
gdp: error: "a" < 2 & b
layer  device
...'''


def _words(svg):
  """The lines of a picture, without spaces."""
  lines = collections.defaultdict(str)
  for text in ElementTree.fromstring(svg).iter(f'{_SVG}text'):
    if 'clip-path' in text.attrib:
      lines[float(text.attrib['y'])] += ''.join(text.itertext())
  return [
      words for y in sorted(lines) if (words := re.sub(r'\s', '', lines[y]))
  ]


def _without_spaces(text):
  return [re.sub(r'\s', '', line) for line in text.splitlines() if line]


def test_progress_makes_room_for_results():
  assert terminals.shown(_SESSION) == {'Session 6': _LEFT}


def test_a_picture_has_the_text_as_text_and_loads_nothing():
  svg = terminals.as_svg(_LEFT, 'made')
  assert _words(svg) == _without_spaces(_LEFT)
  assert not re.search(r'url\((?!#)|@import|@font-face|href', svg)


def test_errors_do_not_look_like_plain_lines():

  def fills(text):
    svg = terminals.as_svg(text, 'made')
    return set(re.findall(r'fill: (#\w+)', svg))

  assert fills('gdp: error: no') > fills('no')
  assert fills('on GPU:1') > fills('on one')


def test_a_session_that_is_missing_is_an_error(tmp_path):
  page = tmp_path / 'page.md'
  page.write_text(_SESSION)
  with pytest.raises(errors.GdpError, match='has no Session 7'):
    terminals.draw(page, tmp_path)


def test_make_pictures_draws_them(tmp_path, monkeypatch):
  program = benchmarks.module('showing.__main__')
  monkeypatch.setattr(program, '_PICTURES', tmp_path)
  assert program.main(['terminals']) == 0
  assert {path.stem for path in tmp_path.iterdir()
         } == set(terminals.PICTURES.values())
  order = list(program._SHOWN)  # Without arguments all are made, in this order.
  assert order.index('sessions') < order.index('terminals')


def test_pictures_of_the_docs_are_of_the_recorded_sessions():
  recorded = terminals.shown((_DOCS / 'sessions.md').read_text())
  pages = [page.read_text() for page in _DOCS.glob('*.md')]
  for session, name in terminals.PICTURES.items():
    svg = (_DOCS / f'pictures/{name}.svg').read_text()
    assert _words(svg) == _without_spaces(recorded[session]), name
    assert any(f'](pictures/{name}.svg)' in page for page in pages), name

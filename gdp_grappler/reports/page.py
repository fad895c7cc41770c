"""Writes a report as one HTML file that loads no other file.

The data are compressed JSON. The page shows names of ops only as text, so that
a name is never markup. A policy in the page's head forbids the page to load
anything.
"""

from __future__ import annotations

import base64
import gzip
import html
import json
import pathlib
from typing import Any, Mapping

from gdp_grappler import extras

_ASSETS = pathlib.Path(__file__).parent / 'assets'
_PLOTLY = pathlib.Path('package_data') / 'plotly.min.js'


def html_page(title: str, data: Mapping[str, Any]) -> str:
  """Returns the text of the file.

  Args:
    title: Title of the page.
    data: Result of `page_data.page_data`.

  Raises:
    GdpError: plotly is not installed.
  """
  extras.require('A report', 'plotly')
  import plotly
  script = (pathlib.Path(plotly.__file__).parent
            / _PLOTLY).read_text(encoding='utf-8')
  packed = gzip.compress(
      json.dumps(data, allow_nan=False, separators=(',', ':')).encode(),
      mtime=0)
  parts = {
      'TITLE': html.escape(title), 'VERDICT': html.escape(data['verdict']),
      'STYLE': _asset('page.css'), 'PLOTLY': script,
      'DATA': base64.b64encode(packed).decode(), 'SCRIPT': _asset('page.js')
  }
  # An inserted text may contain a marker. So the template is split first.
  pieces = _asset('page.html').split('@@')
  return ''.join(parts[piece] if index % 2 else piece
                 for index, piece in enumerate(pieces))


def _asset(name: str) -> str:
  return (_ASSETS / name).read_text(encoding='utf-8')

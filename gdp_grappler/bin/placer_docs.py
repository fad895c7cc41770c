"""Makes the table of placers in the docs, and the list in `gdp place --help`.

`python -m gdp_grappler.bin.placer_docs docs/placers.md` updates the table of
that file, which stands between two comments.
"""

from __future__ import annotations

import pathlib
import sys

from gdp_grappler.placers import placer_table

_BEGIN = ('<!-- Placers; made by `python -m gdp_grappler.bin.placer_docs '
          'docs/placers.md`. -->')
_END = '<!-- End of placers. -->'


def markdown() -> str:
  """Returns a table with one row per placer."""
  rows = [('placer', 'kind', 'how', 'paper', 'needs'), ('---',) * 5]
  rows += [(f'`{entry.name}`', entry.kind, entry.how, entry.paper,
            _needs(entry)) for entry in placer_table.table().values()]
  return ''.join(f'| {" | ".join(row)} |\n' for row in rows)


def text() -> str:
  """Returns one line per placer, for a terminal."""
  table = placer_table.table()
  width = max(map(len, table))
  return 'placers:\n' + '\n'.join(
      f'  {entry.name:{width}}  {entry.kind}: {entry.how}'
      for entry in table.values())


def updated(page: str) -> str:
  """Returns the text of a page with the current table."""
  before, _, rest = page.partition(_BEGIN)
  _, _, after = rest.partition(_END)
  return f'{before}{_BEGIN}\n\n{markdown()}\n{_END}{after}'


def _needs(entry: placer_table.Entry) -> str:
  extra = [f'`[{entry.extra}]`'] if entry.extra else []
  return ', '.join([*extra, *sorted(entry.needs)])


if __name__ == '__main__':
  path = pathlib.Path(sys.argv[1])
  path.write_text(updated(path.read_text(encoding='utf-8')), encoding='utf-8')

"""Records the notebooks, sessions and pictures of docs/ again.

  make pictures                       # all of it
  make PICTURES='sessions report' pictures

The parts are: `notebooks`, `sessions`, pictures of the sessions' terminals, and
the pictures `report` and `tensorboard` of their results in build/shown.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
from typing import Callable, Sequence

from benchmarks.showing import notebooks
from benchmarks.showing import sessions
from benchmarks.showing import terminals
from gdp_grappler import errors

_TOP = pathlib.Path(__file__).resolve().parents[2]
_FOLDER, _PICTURES = _TOP / 'build/shown', _TOP / 'docs/pictures'
_SESSIONS = _TOP / 'docs/sessions.md'


def _notebooks() -> None:
  if notebooks.main([]):
    raise errors.GdpError('A notebook failed; see above.')


def _pictures(name: str) -> None:
  from benchmarks.showing import pictures  # It needs a browser.
  getattr(pictures, name)(_FOLDER, _PICTURES)


_SHOWN: dict[str, Callable[[], None]] = {
    'notebooks': _notebooks,
    'sessions': lambda: sessions.record(_FOLDER, _SESSIONS, 'make pictures'),
    'terminals': lambda: terminals.draw(_SESSIONS, _PICTURES),
    'report': lambda: _pictures('report'),
    'tensorboard': lambda: _pictures('tensorboard')
}


def main(argv: Sequence[str] | None = None) -> int:
  """Runs the program. The exit code is 2 after a GdpError."""
  parser = argparse.ArgumentParser(
      prog='showing', description=__doc__,
      formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument('what', nargs='*', metavar='WHAT', help=', '.join(_SHOWN))
  asked = parser.parse_args(argv).what
  if unknown := set(asked) - set(_SHOWN):
    parser.error(f'there is no {", ".join(sorted(unknown))}')
  _PICTURES.mkdir(exist_ok=True)
  try:
    for name in asked or _SHOWN:
      print(f'{name} ...', flush=True)
      _SHOWN[name]()
  except errors.GdpError as error:
    print(f'showing: error: {error}', file=sys.stderr)
    return 2
  return 0


if __name__ == '__main__':
  sys.exit(main())

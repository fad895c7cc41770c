"""What somebody who misspelt a name may have meant."""

from __future__ import annotations

import difflib
from typing import Collection, Iterable

# Names that a message lists one by one.
_FEW = 8


def nearest(name: str, known: Iterable[str], most: int = 1,
            similarity: float = .6) -> list[str]:
  """Known names like the given one, the nearest first; case does not count.

  Args:
    name: What was given.
    known: What there is.
    most: So many names at most.
    similarity: Of those given back at least, from 0 to 1 for the same letters;
      see `difflib.SequenceMatcher.ratio`.
  """
  by_lower = {k.lower(): k for k in known}
  return [
      by_lower[near] for near in difflib.get_close_matches(
          name.lower(), by_lower, most, similarity)
  ]


def did_you_mean(name: str, known: Iterable[str], similarity: float = .6,
                 most: int = 1) -> str:
  """' Did you mean "2xP100"?', or '' if nothing is near.

  Args:
    name: What was given.
    known: What there is.
    similarity: See `nearest`.
    most: Likewise.
  """
  near = [f'"{n}"' for n in nearest(name, known, most, similarity)]
  return f' Did you mean {" or ".join(near)}?' if near else ''


def unknown(kind: str, name: str, known: Collection[str], listed: str = '',
            meant: str = '', most: int = 1) -> str:
  """What to say of a name that there is not: what was meant comes first.

  Args:
    kind: What it should have been the name of, such as 'placer'.
    name: What was given.
    known: What there is.
    listed: Where many are listed, such as 'gdp place --help'.
    meant: What to look for among them; by default the name.
    most: So many likely names at most.

  Returns:
    'Unknown placer "metus". Did you mean "metis"? All 37: gdp place --help.';
    a few names are all in it, of many without a likely one the first three.
  """
  near = did_you_mean(meant or name, known, most=most)
  if len(known) <= _FEW or not listed:
    rest = f'There are {", ".join(known)}.'
  elif near:
    rest = f'All {len(known)}: {listed}.'
  else:
    some = ', '.join(list(known)[:3])
    rest = f'There are {some}, ...; all {len(known)}: {listed}.'
  return f'Unknown {kind} "{name}".{near} {rest}'

"""Finds the names that a user may have meant by a misspelt name."""

from __future__ import annotations

import difflib
from typing import Collection, Iterable

# Largest number of known names that a message lists.
_FEW = 8


def nearest(name: str, known: Iterable[str], most: int = 1,
            similarity: float = .6) -> list[str]:
  """Returns known names that are similar to a name, the most similar first.

  The case of letters does not matter.

  Args:
    name: The user's name.
    known: The known names.
    most: Largest number of returned names.
    similarity: Least similarity of a returned name, from 0 to 1 (equal); see
      `difflib.SequenceMatcher.ratio`.
  """
  by_lower = {k.lower(): k for k in known}
  return [
      by_lower[near] for near in difflib.get_close_matches(
          name.lower(), by_lower, most, similarity)
  ]


def did_you_mean(name: str, known: Iterable[str], similarity: float = .6,
                 most: int = 1) -> str:
  """Returns ' Did you mean "2xP100"?', or '' if no known name is similar.

  Args:
    name: The user's name.
    known: The known names.
    similarity: Least similarity; see `nearest`.
    most: Largest number of suggested names.
  """
  near = [f'"{n}"' for n in nearest(name, known, most, similarity)]
  return f' Did you mean {" or ".join(near)}?' if near else ''


def unknown(kind: str, name: str, known: Collection[str], listed: str = '',
            meant: str = '', most: int = 1) -> str:
  """Returns the message for an unknown name, with suggestions.

  Args:
    kind: Kind of the named thing, such as 'placer'.
    name: The user's name.
    known: The known names.
    listed: Command that lists the known names, such as 'gdp place --help'. If
      it is '', the message lists all names.
    meant: Name to compare with the known names; by default `name`.
    most: Largest number of suggested names.

  Returns:
    'Unknown placer "metus". Did you mean "metis"? All 37: gdp place --help.'
    If there are few known names, the message lists all of them. If there are
    many and none is similar, it lists the first ones.
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

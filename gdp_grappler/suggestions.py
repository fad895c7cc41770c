"""What somebody who misspelt a name may have meant."""

from __future__ import annotations

import difflib
from typing import Iterable


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

"""Measures the processor seconds of the parts of a program."""

from __future__ import annotations

import contextlib
import functools
import time
from typing import Any, Iterator, Mapping, Sequence

# A class or module, and the name of one of its functions.
Function = tuple[Any, str]


@contextlib.contextmanager
def clocked(
    parts: Mapping[str, Sequence[Function]]) -> Iterator[dict[str, float]]:
  """Adds up processor seconds of each part while the context is open.

  The seconds of an inner function count only for the part of this function.

  Args:
    parts: The functions of each part.

  Yields:
    Seconds of each part so far.
  """
  seconds = dict.fromkeys(parts, 0.)
  within = [0.]  # For each running function, the seconds of inner functions.
  with contextlib.ExitStack() as stack:
    for part, functions in parts.items():
      for owner, name in functions:
        function = getattr(owner, name)
        setattr(owner, name, _timed(function, part, seconds, within))
        stack.callback(setattr, owner, name, function)
    yield seconds


def _timed(function: Any, part: str, seconds: dict[str, float],
           within: list[float]) -> Any:

  @functools.wraps(function)
  def timed(*args: Any, **kwargs: Any) -> Any:
    begin = time.process_time()
    within.append(0.)
    try:
      return function(*args, **kwargs)
    finally:
      all_s = time.process_time() - begin
      seconds[part] += all_s - within.pop()
      within[-1] += all_s

  return timed

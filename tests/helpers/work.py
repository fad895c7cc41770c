"""Counts work, because seconds would depend on the machine."""

from __future__ import annotations

import sys
from typing import Callable


def calls(function: Callable[[], object]) -> int:
  """Returns how many calls of functions a function causes, native included."""
  count = 0

  def profile(frame: object, event: str, argument: object) -> None:
    nonlocal count
    count += event in ('call', 'c_call')

  before = sys.getprofile()
  sys.setprofile(profile)
  try:
    function()
  finally:
    sys.setprofile(before)
  return count

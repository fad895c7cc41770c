"""Into how many logical GPUs a card may be cut, as users write it."""

from __future__ import annotations

from typing import Any

AUTO = 'auto'
MOST_PARTS = 4


def checked(value: Any) -> int | str | None:
  """What `split` may be.

  Args:
    value: Of a user: a number of parts, 'auto', or None or 1 for whole cards.

  Raises:
    ValueError: something else.
  """
  if value is None or value == AUTO:
    return value
  if (isinstance(value, bool) or not isinstance(value, int) or
      not 1 <= value <= MOST_PARTS):
    raise ValueError(
        f'split = {value!r}; valid are 1 (whole cards), 2 to {MOST_PARTS} '
        f"(logical GPUs of each card), '{AUTO}' and None.")
  return value

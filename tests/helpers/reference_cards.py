"""Cards that are cut into several devices, slow and written for the reader.

A part of `reference_simulator`.
"""

from __future__ import annotations


class Cards:
  """What kernels have taken of each card."""

  def __init__(self) -> None:
    # By card: from when until when, and how much, in the order of kernels.
    self._taken: dict[int, list[tuple[float, float, float]]] = {}

  def run(self, card: int, share: float, start: float,
          seconds: float) -> tuple[float, float]:
    """Gives a kernel what others have left of its card.

    Args:
      card: Its number, negative if it is not cut.
      share: That the kernel can use.
      start: Of its stream.
      seconds: If it gets its share.

    Returns:
      When it first gets something, and its end.
    """
    if card < 0 or not seconds:
      return start, start + seconds
    taken = self._taken.setdefault(card, [])
    begin, left, time = None, seconds, start
    while True:
      used = 0.0
      for since, until, part in taken:
        used += part if since <= time < until else 0
      rate = 0 if 1 - used < 1e-9 else min(1.0, (1 - used) / share)
      if rate and begin is None:
        begin = time
      changes = [t for piece in taken for t in piece[:2] if t > time]
      if rate and (not changes or time + left / rate <= min(changes)):
        taken.append((time, time + left / rate, share * rate))
        return begin, time + left / rate
      then = min(changes)
      if rate:
        taken.append((time, then, share * rate))
        left = max(0.0, left - (then - time) * rate)
      time = then


def either(values, default):
  """The values, or what stands for them."""
  return default if values is None else values

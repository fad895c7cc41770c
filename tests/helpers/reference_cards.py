"""Kernels of several streams on one card, written for the reader.

A part of `reference_simulator`.
"""

from __future__ import annotations


class Cards:
  """What is taken of cards that are cut, over time."""

  def __init__(self) -> None:
    """Nothing is taken."""
    # By card: since when, until when, and how much of it.
    self._taken: dict[int, list[tuple[float, float, float]]] = {}

  def run(self, card: int, share: float, start: float,
          seconds: float) -> tuple[float, float]:
    """Gives a kernel what others leave; when it starts and ends.

    Args:
      card: Its number; -1 of a device that is no part of a card.
      share: Of the card, which the kernel can use.
      start: When it may start.
      seconds: What it takes with its share.
    """
    if card < 0 or not seconds:
      return start, start + seconds
    taken = self._taken.setdefault(card, [])
    began, left, time = None, seconds, start
    while True:
      used = 0.0
      for since, until, part in taken:
        used += part if since <= time < until else 0
      rate = 0 if 1 - used < 1e-9 else min(1.0, (1 - used) / share)
      if rate and began is None:
        began = time
      changes = [t for piece in taken for t in piece[:2] if t > time]
      if rate and (not changes or time + left / rate <= min(changes)):
        taken.append((time, time + left / rate, share * rate))
        return began, time + left / rate
      then = min(changes)
      if rate:
        taken.append((time, then, share * rate))
        left = max(0.0, left - (then - time) * rate)
      time = then

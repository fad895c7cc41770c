"""A slow, simple version of cards that are cut into several devices.

A part of `reference_simulator`.
"""

from __future__ import annotations


class Cards:
  """The shares of each card that kernels have taken."""

  def __init__(self) -> None:
    # By card: start, end and share of each part of a kernel.
    self._taken: dict[int, list[tuple[float, float, float]]] = {}

  def run(self, card: int, share: float, start: float,
          seconds: float) -> tuple[float, float]:
    """Runs a kernel on the share of a card that earlier kernels leave free.

    Args:
      card: Number of the card, negative if the card is not cut.
      share: Share of the card that the kernel can use.
      start: Earliest start of the kernel.
      seconds: Seconds of the kernel if it gets this share.

    Returns:
      Start and end of the kernel.
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
  """Returns the values, or a default for None."""
  return default if values is None else values

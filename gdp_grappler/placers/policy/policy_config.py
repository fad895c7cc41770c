"""Settings of the policy of moves."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class PolicyConfig:
  """Numbers of drafts, moves and prices of the policy of moves.

  Attributes:
    prices: Largest number of placements to price, including drafts.
    maps: Number of drafts by coordinates of repeated structure (`structured`).
    schedules: Number of drafts by list schedulers.
    cuts: Number of drafts by METIS, if it is installed.
    spread: Size of the random factors of seconds in repeated schedules. It is
      the standard deviation of the logarithm of a bundle's factor.
    at_once: Number of moves that are priced in one round.
    draws: Number of moves that are drawn in one round.
    gain_weight: Weight of the gain, see `move_filter.FilterConfig`.
  """

  prices: int = 64
  maps: int = 7
  schedules: int = 8
  cuts: int = 4
  spread: float = .1
  at_once: int = 3
  draws: int = 384
  gain_weight: float = 1.

  def __post_init__(self) -> None:
    for name in ('prices', 'at_once', 'draws'):
      if getattr(self, name) < 1:
        raise ValueError(f'{name} is {getattr(self, name)}; give 1 or more.')
    for name in ('maps', 'schedules', 'cuts', 'spread', 'gain_weight'):
      if not 0 <= getattr(self, name) < float('inf'):
        raise ValueError(f'{name} is {getattr(self, name)}; give 0 or more.')

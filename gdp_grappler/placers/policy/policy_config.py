"""How much the policy of moves drafts, draws and prices."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class PolicyConfig:
  """Sizes of one answer.

  Attributes:
    prices: Placements that are priced at most, drafts among them.
    maps: Drafts by coordinates of repeated structure (`structured`).
    schedules: Drafts of list schedulers.
    cuts: Drafts by METIS, if it is installed.
    spread: Standard deviation of the logarithm of the factor that a schedule
      beyond the usual ones multiplies each bundle's seconds by.
    at_once: Moves that are priced before the policy looks at a placement anew.
    draws: Moves that the policy looks at each time.
    gain_weight: As of `move_filter.FilterConfig`.
  """

  prices: int = 64
  maps: int = 7
  schedules: int = 8
  cuts: int = 4
  spread: float = .1
  at_once: int = 4
  draws: int = 192
  gain_weight: float = .5

  def __post_init__(self) -> None:
    for name in ('prices', 'at_once', 'draws'):
      if getattr(self, name) < 1:
        raise ValueError(f'{name} is {getattr(self, name)}; give 1 or more.')
    for name in ('maps', 'schedules', 'cuts', 'spread', 'gain_weight'):
      if not 0 <= getattr(self, name) < float('inf'):
        raise ValueError(f'{name} is {getattr(self, name)}; give 0 or more.')

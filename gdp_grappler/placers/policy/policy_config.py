"""Settings of the placer `gdp_policy`."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class PolicyConfig:
  """Numbers of drafts, moves and prices of the placer `gdp_policy`.

  Attributes:
    prices: Largest number of placements to price, including drafts.
    maps: Number of candidates by coordinates of repeated structure
      (`structured`).
    cuts: Number of candidates by METIS, if it is installed.
    schedules: Largest number of candidates by list schedulers.
    drafts: Largest number of candidates that become drafts, unless
      `drafts_of_each` makes more of them drafts.
    drafts_of_each: Least number of drafts of each source (maps, cuts and
      schedules), or all candidates of a source that has fewer.
    at_once: Number of moves that are priced in one round.
    draws: Largest number of moves that are drawn in one round.
    rounds: Number of rounds for which the remaining time should be enough. If
      it is not, the next round draws fewer moves.
    gain_weight: Weight of the gain, see `move_scoring.GAIN_WEIGHT`.
  """

  prices: int = 64
  maps: int = 24
  cuts: int = 8
  schedules: int = 24
  drafts: int = 12
  drafts_of_each: int = 2
  at_once: int = 3
  draws: int = 384
  rounds: int = 4
  gain_weight: float = 1.

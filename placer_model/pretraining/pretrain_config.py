"""How much is drawn, searched and learned."""

from __future__ import annotations

import dataclasses
from typing import Mapping, TypeVar

from gdp_grappler import errors
from gdp_grappler import suggestions
from gdp_grappler.workloads.synthetic import synthetic

_Config = TypeVar('_Config')


@dataclasses.dataclass(frozen=True)
class PretrainConfig:
  """Sizes of a run.

  Attributes:
    rounds: How often problems are drawn and learned from.
    problems: Drawn in each round.
    priced_ops: What each search prices, in ops: placements times the graph's.
    fewest: Placements that it prices at least.
    most: Placements that it prices at most.
    drawn: What may be drawn.
    ordered: Share of the searches on several GPUs that price under priorities.
    hasty: Share of the problems whose kernels are so short that what the host
      does for them bounds the step, as it does on cards of today.
    kept_losses: Share of the moves without gain that a log keeps; each of them
      then counts for as many as were left out.
    memory: Rounds whose logs are learned from.
    hidden: Units of the network.
    passes: Over the logs, after each round.
    batch: Moves per update.
    learning_rate: Of Adam.
    gain_share: What the error of the expected gain counts.
    held_out: Placements that are priced for each problem held out.
  """

  rounds: int
  problems: int
  priced_ops: int
  fewest: int
  most: int
  drawn: synthetic.Config
  ordered: float = .4
  hasty: float = .5
  kept_losses: float = .25
  memory: int = 40
  hidden: int = 32
  passes: int = 6
  batch: int = 512
  learning_rate: float = 3e-3
  gain_share: float = .1
  held_out: int = 1500

  def evaluations(self, num_ops: int) -> int:
    """Placements that a search on a graph of so many ops prices."""
    return min(max(self.priced_ops // max(num_ops, 1), self.fewest), self.most)


CONFIGS = {
    # Minutes on one core.
    'small':
        PretrainConfig(
            rounds=12, problems=8, priced_ops=1_000_000, fewest=200, most=2000,
            drawn=synthetic.Config(ops=(100, 3000), accelerators=(2, 8))),
    # Hours.
    'full':
        PretrainConfig(rounds=400, problems=16, priced_ops=4_000_000,
                       fewest=200, most=4000, drawn=synthetic.Config(),
                       memory=120, hidden=64, passes=2, learning_rate=1e-3),
}


def named(name: str) -> PretrainConfig:
  """One of `CONFIGS`.

  Raises:
    GdpError: there is none of that name.
  """
  return one_of(CONFIGS, name)


def one_of(configs: Mapping[str, _Config], name: str) -> _Config:
  """That of a name.

  Raises:
    GdpError: there is none.
  """
  if name not in configs:
    raise errors.GdpError(suggestions.unknown('config', name, configs))
  return configs[name]

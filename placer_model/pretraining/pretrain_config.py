"""Settings of pretraining, and their presets."""

from __future__ import annotations

import dataclasses
from typing import Mapping, TypeVar

from gdp_grappler import errors
from gdp_grappler import suggestions
from gdp_grappler.workloads.synthetic import synthetic

_Config = TypeVar('_Config')


@dataclasses.dataclass(frozen=True)
class PretrainConfig:
  """Settings of a run.

  Attributes:
    rounds: Number of rounds; each draws problems, searches, and trains.
    problems: Problems drawn per round.
    priced_ops: Work of each search: number of priced placements times the
      number of ops of the graph.
    fewest: Least number of placements that a search prices.
    most: Largest number of placements that a search prices.
    drawn: Distribution of the drawn problems.
    hasty: Share of the problems with shortened kernels, so that the host's work
      bounds more of the step, as on current cards.
    memory: Number of latest rounds whose logs are used.
    networks: Number of networks that are trained. The result is their mean.
    hidden: Number of hidden units of each network.
    passes: Passes of the training over the logs in `memory`. With many passes a
      network overfits the random graphs.
    batch: Moves per update.
    learning_rate: Learning rate of Adam.
    gain_share: Weight of the loss of a gain's size.
    rank_share: Weight of the loss of the order that the scores give to the
      moves of a round.
    held_out: Placements that are priced for each held-out problem.
  """

  rounds: int
  problems: int
  priced_ops: int
  fewest: int
  most: int
  drawn: synthetic.Config
  hasty: float = .5
  memory: int = 40
  networks: int = 4
  hidden: int = 32
  passes: int = 2
  batch: int = 2048
  learning_rate: float = 3e-3
  gain_share: float = .1
  rank_share: float = 5.
  held_out: int = 1500

  def evaluations(self, num_ops: int) -> int:
    """Returns the number of placements that a search prices.

    Args:
      num_ops: Number of ops of the graph.
    """
    return min(max(self.priced_ops // max(num_ops, 1), self.fewest), self.most)


CONFIGS = {
    # Minutes on one core.
    'small':
        PretrainConfig(
            rounds=12, problems=8, priced_ops=2_000_000, fewest=400, most=2000,
            drawn=synthetic.Config(ops=(100, 3000), accelerators=(2, 8))),
    # A quarter of an hour on two cores.
    'full':
        PretrainConfig(rounds=60, problems=16, priced_ops=8_000_000, fewest=400,
                       most=2400, drawn=synthetic.Config(ops=(100, 10_000)),
                       memory=100, hidden=64, batch=4096, learning_rate=1e-3),
}


def named(name: str) -> PretrainConfig:
  """Returns one of `CONFIGS`.

  Raises:
    GdpError: there is no config of this name.
  """
  return one_of(CONFIGS, name)


def one_of(configs: Mapping[str, _Config], name: str) -> _Config:
  """Returns the config of a name.

  Raises:
    GdpError: there is no config of this name.
  """
  if name not in configs:
    raise errors.GdpError(suggestions.unknown('config', name, configs))
  return configs[name]

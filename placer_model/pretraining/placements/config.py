"""How much is drawn, answered and learned."""

from __future__ import annotations

import dataclasses
import math

from gdp_grappler.workloads.synthetic import synthetic
from placer_model import config as config_lib
from placer_model.pretraining import pretrain_config
from placer_model.pretraining.placements import teacher


@dataclasses.dataclass(frozen=True)
class PlacementConfig:
  """Sizes of a run.

  Attributes:
    rounds: How often problems are drawn and learned from.
    problems: Drawn in each round.
    steps: Of the optimizer, in each round.
    batch: Lessons per step.
    learning_rate: Of Adam; it falls as half a cosine over all rounds.
    last_rate: Share of it that is left at the end.
    warm: Steps in which it rises at first.
    patience: See `example.Example.target`.
    network: Sizes of the network.
    teacher: What is drawn, and how it is answered.
  """

  rounds: int
  problems: int
  steps: int
  batch: int = 4
  learning_rate: float = 2e-3
  last_rate: float = .03
  warm: int = 50
  patience: float = 20.
  network: config_lib.PlacerConfig = config_lib.TRANSFER
  teacher: teacher.TeacherConfig = teacher.TeacherConfig()

  def rate(self, step: int) -> float:
    """Share of the learning rate at a step from 0 on."""
    done = step / max(self.rounds * self.steps, 1)
    wave = (1 + math.cos(math.pi * min(done, 1.))) / 2
    rising = min((step + 1) / max(self.warm, 1), 1.)
    return rising * (self.last_rate + (1 - self.last_rate) * wave)


CONFIGS = {
    # Minutes on one core.
    'small':
        PlacementConfig(
            rounds=8, problems=8, steps=30, teacher=teacher.TeacherConfig(
                drawn=synthetic.Config(ops=(100, 1000), accelerators=(2, 4)))),
    # Half an hour on one core.
    'full':
        PlacementConfig(rounds=40, problems=32, steps=48),
}


def named(name: str) -> PlacementConfig:
  """One of `CONFIGS`.

  Raises:
    GdpError: there is none of that name.
  """
  return pretrain_config.one_of(CONFIGS, name)

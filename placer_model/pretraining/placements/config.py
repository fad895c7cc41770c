"""Settings of supervised pretraining, and their presets."""

from __future__ import annotations

import dataclasses
import math

from gdp_grappler.workloads.synthetic import synthetic
from placer_model import config as config_lib
from placer_model.pretraining import pretrain_config
from placer_model.pretraining.placements import teacher


@dataclasses.dataclass(frozen=True)
class PlacementConfig:
  """Settings of a run.

  Attributes:
    rounds: Number of rounds; each draws problems and trains.
    problems: Problems drawn per round.
    steps: Steps of the optimizer per round.
    batch: Examples per step.
    learning_rate: Peak learning rate of Adam. It falls as half a cosine over
      all rounds.
    last_rate: Share of the learning rate that is left at the end.
    warm: Number of initial steps in which the learning rate rises.
    patience: Weight of a slower answer, see `example.Example.target`.
    network: Sizes of the network.
    teacher: Distribution of problems, and selection of answers.
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
    """Returns the share of the learning rate at a step, counted from 0."""
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
  """Returns one of `CONFIGS`.

  Raises:
    GdpError: there is no config of this name.
  """
  return pretrain_config.one_of(CONFIGS, name)

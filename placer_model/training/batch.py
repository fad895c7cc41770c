"""GDP-batch: one policy on several graphs and clusters, which take turns.

Each graph has a trainer with trials, levels and a best placement of its own;
weights and optimizers are shared. The curriculum is by size: small graphs take
their turns from the beginning, larger ones join later, and in the end all are
through with as many iterations. One graph alone is GDP-one.
"""

from __future__ import annotations

from typing import Callable, Iterator, Sequence

import numpy as np
import tensorflow as tf

from placer_model.training import environment as environment_lib
from placer_model.training import trainer as trainer_lib

# The largest graph joins after this share of its iterations, all told.
_LEAD = 0.25
_OVER = object()


class Batch:
  """Trainers that share a placer.

  Attributes:
    trainers: One per graph.
    placer: What learns.
  """

  def __init__(self, trainers: Sequence[trainer_lib.Trainer],
               iterations: int | Sequence[int]) -> None:
    """From at least one trainer; all have the same placer and optimizers.

    Args:
      trainers: Of the graphs.
      iterations: Of each of them, or one number for all.
    """
    self.trainers = tuple(trainers)
    self.placer = trainers[0].placer
    self._iterations = np.broadcast_to(iterations, len(trainers)).tolist()
    by_size = np.argsort([t.num_units for t in trainers], kind='stable')
    self._joins = np.empty(len(trainers))
    self._joins[by_size] = np.linspace(
        0, _LEAD, len(trainers)) if len(trainers) > 1 else 0.

  @property
  def iteration(self) -> int:
    """Iterations made so far, of all graphs together."""
    return sum(trainer.state.iteration for trainer in self.trainers)

  @property
  def iterations(self) -> int:
    """Iterations at the end of the run, of all graphs together."""
    return sum(self._iterations)

  def checkpoint(self) -> tf.train.Checkpoint:
    """All that the run has to remember in order to go on exactly."""
    return tf.train.Checkpoint(
        placer=self.placer,
        trainers=[trainer.checkpoint() for trainer in self.trainers])

  def share(self, index: int) -> float:
    """From 0 to 1, how many of a graph's iterations are over."""
    return self.trainers[index].state.iteration / self._iterations[index]

  def warm_up(self) -> Iterator[trainer_lib.Trainer]:
    """What comes before the first rollout, part by part, by turns.

    Gives the trainer whose part is over.
    """
    left = [(trainer, trainer.warm_up()) for trainer in self.trainers]
    while left:
      for turn in tuple(left):
        trainer, parts = turn
        if next(parts, _OVER) is _OVER:
          left.remove(turn)
        else:
          yield trainer

  def next(self) -> int | None:
    """Index of the trainer whose turn it is; None if all are through.

    It follows from how far each one is, so that a resumed run goes on as an
    uninterrupted one does.
    """
    waiting = [
        index for index, trainer in enumerate(self.trainers)
        if trainer.state.iteration < self._iterations[index]
    ]
    return min(waiting, key=self._due, default=None)

  @property
  def is_priced(self) -> bool:
    """Whether every graph has its baselines priced."""
    return all(t.state.evaluations['baseline'] for t in self.trainers)

  def finish(self, stopped: Callable[[], bool]) -> list[environment_lib.Trials]:
    """What the policy says at last of each graph, priced.

    A policy of one graph is made to say the best placement; to imitate one of
    several would make it forget the others.

    Args:
      stopped: Whether there is no time left for that.
    """
    if len(self.trainers) == 1:
      return [self.trainers[0].distill(stopped)]
    return [trainer.say() for trainer in self.trainers]

  def _due(self, index: int) -> float:
    """When a trainer's next iteration is due; the run lasts from 0 to 1."""
    done = self.share(index)
    return float(self._joins[index] + (1 - self._joins[index]) * done)

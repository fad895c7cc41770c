"""GDP-batch: trains one policy on several graphs and clusters in turns.

Each graph has a trainer with its own trials, levels and best placement. The
trainers share weights and optimizers. The curriculum is by size: iterations on
small graphs begin at once, those on larger graphs begin later, and all graphs
complete their iterations at the same time. A batch of one graph is GDP-one.
"""

from __future__ import annotations

from typing import Callable, Iterator, Sequence

import numpy as np
import tensorflow as tf

from placer_model.training import environment as environment_lib
from placer_model.training import trainer as trainer_lib

# The largest graph joins after this share of the run.
_LEAD = 0.25
_OVER = object()


class Batch:
  """Trainers that share a policy network.

  Attributes:
    trainers: One trainer per graph.
    placer: The network.
  """

  def __init__(self, trainers: Sequence[trainer_lib.Trainer],
               iterations: int | Sequence[int]) -> None:
    """Takes at least one trainer; all share one network and its optimizers.

    Args:
      trainers: Trainers of the graphs.
      iterations: Number of iterations of each trainer, or one number for all.
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
    """Number of iterations done, of all graphs together."""
    return sum(trainer.state.iteration for trainer in self.trainers)

  @property
  def iterations(self) -> int:
    """Number of iterations at the end of the run, of all graphs together."""
    return sum(self._iterations)

  def checkpoint(self) -> tf.train.Checkpoint:
    """Returns all state that a resumed run needs in order to go on exactly."""
    return tf.train.Checkpoint(
        placer=self.placer,
        trainers=[trainer.checkpoint() for trainer in self.trainers])

  def share(self, index: int) -> float:
    """Returns the share of a graph's iterations that are done, from 0 to 1."""
    return self.trainers[index].state.iteration / self._iterations[index]

  def warm_up(self) -> Iterator[trainer_lib.Trainer]:
    """Does the work before the first rollout, in parts, by turns.

    Yields:
      The trainer that has completed a part.
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
    """Returns the index of the next trainer; None if all are done.

    The choice depends only on the trainers' progress, so that a resumed run
    takes the same turns as an uninterrupted one.
    """
    waiting = [
        index for index, trainer in enumerate(self.trainers)
        if trainer.state.iteration < self._iterations[index]
    ]
    return min(waiting, key=self._due, default=None)

  @property
  def is_priced(self) -> bool:
    """Whether the baselines of every graph are priced."""
    return all(t.state.evaluations['baseline'] for t in self.trainers)

  def finish(self, stopped: Callable[[], bool]) -> list[environment_lib.Trials]:
    """Returns the policy's final placement of each graph, priced.

    With one graph, the policy first learns the best placement by imitation.
    With several graphs it does not: imitating one would make the policy forget
    the others.

    Args:
      stopped: Returns whether no time is left for imitation.
    """
    if len(self.trainers) == 1:
      return [self.trainers[0].distill(stopped)]
    return [trainer.say() for trainer in self.trainers]

  def _due(self, index: int) -> float:
    """Returns when a trainer's next iteration is due.

    Time goes from 0 at the start of the run to 1 at its end.
    """
    done = self.share(index)
    return float(self._joins[index] + (1 - self._joins[index]) * done)

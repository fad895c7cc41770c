"""What a run remembers besides weights; part of its checkpoints."""

from __future__ import annotations

import json

import numpy as np
import tensorflow as tf

from placer_model.training import environment as environment_lib

# Where priced placements come from.
ORIGINS = ('baseline', 'policy', 'search', 'greedy')


class RunState(tf.train.experimental.PythonState):
  """Counters and the best placement.

  No random state: every iteration seeds its own generator from the run's seed
  and its number, so that a resumed run draws what an uninterrupted one draws.

  Attributes:
    iteration: Rounds done.
    warm_trials: Trials of local search done before the first round.
    warm_steps: Gradient steps of imitation done before the first round.
    reward_count: Trials in the paper's running mean.
    reward_total: Their sum.
    best_decisions: int32 [M]; None before the first valid trial.
    best_step_time_s: Its price; infinite before.
    best_origin: One of `ORIGINS`; '' before.
    evaluations: Placements priced, by origin.
    seconds: Time spent so far, over all sessions.
    curve: Pairs (evaluations so far, best step time), one per improvement.
    most_nats: How much chance there may be in a rollout where levels follow
      from it; set by the first iteration.
    recent: Pairs (int32 [K, M] decisions, float64 [K] rewards) of the latest
      iterations, as many as the next update looks back.
  """

  def __init__(self) -> None:
    self.iteration = self.warm_trials = self.warm_steps = 0
    self.reward_count, self.reward_total = 0, 0.0
    self.best_decisions: np.ndarray | None = None
    self.best_step_time_s, self.best_origin = np.inf, ''
    self.evaluations = dict.fromkeys(ORIGINS, 0)
    self.seconds = 0.0
    self.curve: list[tuple[int, float]] = []
    self.most_nats = 0.0
    self.recent: list[tuple[np.ndarray, np.ndarray]] = []

  @property
  def total_evaluations(self) -> int:
    return sum(self.evaluations.values())

  def record(self, trials: environment_lib.Trials, origin: str,
             evaluations: int) -> bool:
    """Counts trials and keeps the best; returns whether one is better.

    Args:
      trials: What was priced.
      origin: One of `ORIGINS`.
      evaluations: How many of them were really run.
    """
    self.evaluations[origin] += evaluations
    best = trials.best()
    if best is None or trials.step_time_s[best] >= self.best_step_time_s:
      return False
    self.best_decisions = trials.decisions[best].copy()
    self.best_step_time_s = float(trials.step_time_s[best])
    self.best_origin = origin
    self.curve.append((self.total_evaluations, self.best_step_time_s))
    return True

  def serialize(self) -> str:
    fields = dict(vars(self))
    fields = {
        key: value for key, value in fields.items() if not key.startswith('_')
    }
    if self.best_decisions is not None:
      fields['best_decisions'] = self.best_decisions.tolist()
    fields['recent'] = [[part.tolist() for part in pair] for pair in self.recent
                       ]
    return json.dumps(fields)

  def deserialize(self, string_value: str) -> None:
    fields = json.loads(string_value)
    if fields['best_decisions'] is not None:
      fields['best_decisions'] = np.array(fields['best_decisions'], np.int32)
    fields['recent'] = [(np.array(decisions, np.int32), np.array(rewards))
                        for decisions, rewards in fields['recent']]
    fields['curve'] = [tuple(pair) for pair in fields['curve']]
    self.__dict__.update(fields)

"""Counters, best placement and curve of a run, saved in its checkpoints."""

from __future__ import annotations

import json
from typing import Any, Callable

import numpy as np
import tensorflow as tf

from gdp_grappler import files
from placer_model.training import environment as environment_lib

# Origins of priced placements.
ORIGINS = ('baseline', 'policy', 'search', 'greedy')
# Those of them that are placements of the policy: rollouts and the likeliest.
_OWN = 'policy', 'greedy'
_PLACEMENTS = 'best_decisions', 'own_decisions'
_MOST = 1 << 53  # Upper bound of all counters.


def is_count(value: Any) -> bool:
  """Whether a value of a checkpoint is a counter."""
  return type(value) is int and 0 <= value < _MOST


def is_number(value: Any) -> bool:
  """Whether a value of a checkpoint is a number, possibly infinite."""
  return type(value) in (int, float) and value == value


def _are_counts(value: Any) -> bool:
  return isinstance(value, list) and all(map(is_count, value))


def is_curve(value: Any) -> bool:
  """Whether a value of a checkpoint is a list of pairs of numbers."""
  return isinstance(value, list) and all(
      isinstance(pair, list) and len(pair) == 2 and all(map(is_number, pair))
      for pair in value)


def _are_decisions(value: Any) -> bool:
  return value is None or _are_counts(value)


def _are_rollouts(value: Any) -> bool:
  return isinstance(value, list) and all(map(_is_rollout, value))


def _is_rollout(value: Any) -> bool:
  if not isinstance(value, list) or len(value) != 2:
    return False
  decisions, rewards = value
  return (isinstance(decisions, list) and isinstance(rewards, list) and
          0 < len(decisions) == len(rewards) and
          all(map(_are_counts, decisions)) and all(map(is_number, rewards)))


def _is_origin(value: Any) -> bool:
  return value in ('', *ORIGINS)


def _are_of_origins(value: Any) -> bool:
  return isinstance(value, dict) and {*value} == {*ORIGINS} and _are_counts(
      [*value.values()])


# For each attribute, whether a value from a checkpoint is acceptable.
_KINDS: dict[str, Callable[[Any], bool]] = {
    'iteration': is_count, 'warm_trials': is_count, 'warm_steps': is_count,
    'reward_count': is_count, 'reward_total': is_number,
    'best_decisions': _are_decisions, 'best_step_time_s': is_number,
    'own_decisions': _are_decisions, 'own_step_time_s': is_number,
    'best_origin': _is_origin, 'evaluations': _are_of_origins,
    'seconds': is_number, 'curve': is_curve, 'most_nats': is_number,
    'recent': _are_rollouts
}


def _own(fields: dict[str, Any]) -> dict[str, Any]:
  """Returns the policy's best, which the state of an older run lacks."""
  if fields.get('best_origin') not in _OWN:
    return {'own_decisions': None, 'own_step_time_s': np.inf}
  return {
      'own_decisions': fields.get('best_decisions'),
      'own_step_time_s': fields.get('best_step_time_s')
  }


def _is_state(fields: Any) -> bool:
  return (isinstance(fields, dict) and fields.keys() == _KINDS.keys() and
          all(fits(fields[name]) for name, fits in _KINDS.items()))


class RunState(tf.train.experimental.PythonState):
  """Counters and the best placement of a run.

  There is no random state. Each iteration seeds its own generator from the
  run's seed and its number, so a resumed run draws the same numbers as an
  uninterrupted one.

  Attributes:
    iteration: Number of iterations done.
    warm_trials: Trials of local search done before the first iteration.
    warm_steps: Gradient steps of imitation done before the first iteration.
    reward_count: Number of trials in the paper's running mean of rewards.
    reward_total: Sum of the rewards of these trials.
    best_decisions: int32 [M], the best placement; None before the first valid
      trial.
    best_step_time_s: Step time of the best placement; infinite before the first
      valid trial.
    best_origin: Origin of the best placement, one of `ORIGINS`; '' before the
      first valid trial.
    own_decisions: int32 [M], the best placement of the policy itself; None
      before its first valid one.
    own_step_time_s: Step time of `own_decisions`; infinite without them.
    evaluations: Number of placements priced, by origin.
    seconds: Time spent so far, in all processes of the run.
    curve: Pairs (evaluations so far, best step time), one per improvement.
    most_nats: Limit on the entropy of a rollout if levels are used, in nats;
      set by the first iteration.
    recent: Pairs (int32 [K, M] decisions, float64 [K] rewards) of the latest
      iterations that the next update uses.
  """

  def __init__(self, allowed: np.ndarray | None = None) -> None:
    """Makes the state of a run that has not begun.

    Args:
      allowed: bool [M, D], allowed devices of each unit. Placements in a
        checkpoint are checked against it. None allows all devices.
    """
    self._allowed = allowed
    self.iteration = self.warm_trials = self.warm_steps = 0
    self.reward_count, self.reward_total = 0, 0.0
    self.best_decisions: np.ndarray | None = None
    self.best_step_time_s, self.best_origin = np.inf, ''
    self.own_decisions: np.ndarray | None = None
    self.own_step_time_s = np.inf
    self.evaluations = dict.fromkeys(ORIGINS, 0)
    self.seconds = 0.0
    self.curve: list[tuple[int, float]] = []
    self.most_nats = 0.0
    self.recent: list[tuple[np.ndarray, np.ndarray]] = []

  @property
  def total_evaluations(self) -> int:
    """Number of placements priced so far, of all origins."""
    return sum(self.evaluations.values())

  def record(self, trials: environment_lib.Trials, origin: str,
             evaluations: int) -> bool:
    """Counts trials and keeps the best; returns whether the best is new.

    Args:
      trials: The priced placements.
      origin: Origin of the placements, one of `ORIGINS`.
      evaluations: Number of trials that were really priced. Others were known.
    """
    self.evaluations[origin] += evaluations
    best = trials.best()
    if best is None:
      return False
    step_s = float(trials.step_time_s[best])
    if origin in _OWN and step_s < self.own_step_time_s:
      self.own_decisions = trials.decisions[best].copy()
      self.own_step_time_s = step_s
    if step_s >= self.best_step_time_s:
      return False
    self.best_decisions = trials.decisions[best].copy()
    self.best_step_time_s = step_s
    self.best_origin = origin
    self.curve.append((self.total_evaluations, self.best_step_time_s))
    return True

  def serialize(self) -> str:
    """Returns the state as JSON, for a checkpoint."""
    fields = dict(vars(self))
    fields = {
        key: value for key, value in fields.items() if not key.startswith('_')
    }
    for name in _PLACEMENTS:
      if fields[name] is not None:
        fields[name] = fields[name].tolist()
    fields['recent'] = [[part.tolist() for part in pair] for pair in self.recent
                       ]
    return json.dumps(fields)

  def deserialize(self, string_value: str) -> None:
    """Restores the result of `serialize`.

    Raises:
      ValueError: the text is not a valid state. A checkpoint may be from an
        untrusted source.
    """
    fields = files.parse_json(string_value)
    if isinstance(fields, dict):
      fields = {**_own(fields), **fields}
    if not _is_state(fields):
      raise ValueError('it holds no state of a run')
    for name in _PLACEMENTS:
      if fields[name] is not None:
        fields[name] = self._checked([fields[name]])[0]
    fields['recent'] = [(self._checked(decisions), np.array(rewards))
                        for decisions, rewards in fields['recent']]
    fields['curve'] = [tuple(pair) for pair in fields['curve']]
    self.__dict__.update(fields)

  def _checked(self, decisions: list[list[int]]) -> np.ndarray:
    """Returns checked decisions, int32 [K, M]."""
    if len({*map(len, decisions)}) != 1:
      raise ValueError('its placements are not of one graph')
    result = np.array(decisions, np.int64)
    if self._allowed is not None:
      units, devices = self._allowed.shape
      if (result.shape[1] != units or
          not ((result >= 0) & (result < devices)).all() or
          not self._allowed[np.arange(units), result].all()):
        raise ValueError('its placements are none of this graph')
    return result.astype(np.int32)

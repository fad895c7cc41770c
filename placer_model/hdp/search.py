"""The search: sample, price, learn, and keep the best (HDP, section 2.2)."""

from __future__ import annotations

import dataclasses
import time
from typing import Callable

import numpy as np

from gdp_grappler import errors
from gdp_grappler import progress
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.placers import placer as placer_lib
from placer_model.hdp import config as config_lib
from placer_model.hdp import decisions
from placer_model.hdp import policy as policy_lib
from placer_model.hdp import reward

_SEED_RANGE = 1 << 31


@dataclasses.dataclass(frozen=True)
class Step:
  """What one step of a search was like.

  Attributes:
    evaluations: Placements priced so far.
    seconds: Since the search began.
    best_step_time_s: Of the best valid placement so far; infinite if none.
    reward: Mean of the step.
    valid_share: Of the step's placements.
    entropy: Nats per decision of the Placer.
  """

  evaluations: int
  seconds: float
  best_step_time_s: float
  reward: float
  valid_share: float
  entropy: float


class Search:
  """One graph, one cluster, one policy.

  Attributes:
    history: One `Step` after another.
    best_step_time_s: Infinite until a valid placement is found.
    best_devices: int [G] of units; None until then.
  """

  def __init__(self, problem: placer_lib.Problem, policy: policy_lib.Policy,
               embed: Callable[[np.ndarray], np.ndarray], num_groups: int,
               config: config_lib.HdpConfig,
               grouping: np.ndarray | None = None) -> None:
    """Initializes a Search.

    Args:
      problem: What to place where; G units.
      policy: Learns.
      embed: From int [G] to what the Placer sees, float32 [K, W].
      num_groups: K.
      config: Of the search.
      grouping: int [G], where it is fixed; None to ask the Grouper.
    """
    self.history: list[Step] = []
    self.best_step_time_s = float('inf')
    self.best_devices: np.ndarray | None = None
    self._problem, self._policy, self._embed = problem, policy, embed
    self._num_groups, self._config = num_groups, config
    self._seed = problem.seed % _SEED_RANGE
    self._fixed = None if grouping is None else self._described(grouping)
    self._unit_s = 1.
    if config.relative_reward:
      self._unit_s = max(float(problem.op_seconds.min(axis=1).sum()), 1e-12)
    self._baseline = reward.MovingBaseline(
        config.baseline_decay,
        -config.failing_signal**0.5 if config.baseline_from_failing else None,
        config.normalize_advantage)
    self._evaluations = 0
    self._clock: Callable[[], float] = time.monotonic
    self._start = time.monotonic()

  def run(
      self, start: float,
      clock: Callable[[], float] = time.monotonic) -> placement_lib.Placement:
    """Steps until the budget is spent, at least one; the best placement.

    Args:
      start: What the clock said when the budget began to run.
      clock: By which the budget is kept.

    Raises:
      InfeasiblePlacementError: no placement seen was valid.
    """
    self._start, self._clock = start, clock
    budget = self._problem.time_budget_s
    while not self.history or (len(self.history) < self._config.steps
                               if budget is None else clock() - start < budget):
      self.step()
      progress.reached(
          len(self.history) / self._config.steps if not budget else
          (clock() - start) / budget,
          f'best {self.best_step_time_s * 1e3:.4g} ms')
    if self.best_devices is None:
      raise errors.InfeasiblePlacementError(
          f'None of {self._evaluations} sampled placements of '
          f'"{self._problem.graph.name}" runs on '
          f'"{self._problem.cluster.name}": all exceed a memory. Give more '
          'time, more devices or a smaller model.')
    return placement_lib.from_groups(self._problem.graph, self.best_devices,
                                     self._problem.cluster)

  def step(self) -> Step:
    """One grouping, several placements of it, one update."""
    count, config = len(self.history), self._config
    noise = config.noise_at(count)
    grouping, rows, allowed = self._fixed or self._described(
        self._policy.sample_grouping((self._seed, 2 * count), noise))
    devices = self._policy.sample_devices(rows, allowed,
                                          (self._seed, 2 * count + 1), noise)
    seconds = self._price(
        decisions.devices_of_units(grouping, devices, self._problem.allowed,
                                   self._problem.cluster.host))
    values = reward.rewards(seconds, self._unit_s, config.failing_signal)
    entropy = self._policy.update(grouping, rows, allowed, devices,
                                  self._baseline.advantages(values),
                                  config.learning_rate_at(count))
    self.history.append(
        Step(self._evaluations,
             self._clock() - self._start, self.best_step_time_s,
             float(values.mean()), float(np.isfinite(seconds).mean()), entropy))
    return self.history[-1]

  def _described(
      self, grouping: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return grouping, self._embed(grouping), decisions.allowed_devices(
        grouping, self._num_groups, self._problem.allowed)

  def _price(self, units: np.ndarray) -> np.ndarray:
    """float64 [S] seconds, infinite if invalid; remembers the best."""
    prices = self._problem.evaluator.price_groups(self._problem.graph, units)
    self._evaluations += len(prices)
    seconds, best = prices.valid_seconds, prices.best()
    if seconds[best] < self.best_step_time_s:
      self.best_step_time_s = float(seconds[best])
      self.best_devices = units[best]
    return seconds

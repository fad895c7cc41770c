"""The search: sample, price, update, and keep the best (HDP, section 2.2)."""

from __future__ import annotations

import dataclasses
from typing import Callable

import numpy as np

from gdp_grappler import progress
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.placers import placer as placer_lib
from placer_model import infeasible
from placer_model.hdp import config as config_lib
from placer_model.hdp import decisions
from placer_model.hdp import policy as policy_lib
from placer_model.hdp import reward

SEED_RANGE = 1 << 31  # Seeds of TensorFlow are int32.


@dataclasses.dataclass(frozen=True)
class Step:
  """Statistics of one step of a search.

  Attributes:
    evaluations: Placements priced so far.
    seconds: Seconds since the search began.
    best_step_time_s: Step time of the best valid placement so far; infinite if
      there is none.
    reward: Mean reward of the step's placements.
    valid_share: Share of the step's placements that are valid.
  """

  evaluations: int
  seconds: float
  best_step_time_s: float
  reward: float
  valid_share: float


class Search:
  """The search for a placement of one graph on one cluster.

  Attributes:
    history: `Step` of each step so far.
    best_step_time_s: Step time of the best placement so far; infinite until a
      valid one is found.
    best_devices: int [G], devices of the units in this placement; None until a
      valid one is found.
  """

  def __init__(self, problem: placer_lib.Problem, policy: policy_lib.Policy,
               embed: Callable[[np.ndarray], np.ndarray], num_groups: int,
               config: config_lib.HdpConfig,
               grouping: np.ndarray | None = None) -> None:
    """Initializes a Search.

    Args:
      problem: Problem with G units.
      policy: Policy to train.
      embed: Maps a grouping int [G] to the Placer's input, float32 [K, W].
      num_groups: Number K of groups.
      config: Settings of the search.
      grouping: int [G], fixed grouping; None to sample it from the Grouper.
    """
    self.history: list[Step] = []
    self.best_step_time_s = float('inf')
    self.best_devices: np.ndarray | None = None
    self._last_devices = np.empty(0, np.int32)
    self._problem, self._policy, self._embed = problem, policy, embed
    self._num_groups, self._config = num_groups, config
    self._seed = problem.seed % SEED_RANGE
    self._fixed = None if grouping is None else self._described(grouping)
    self._unit_s = max(float(problem.op_seconds.min(axis=1).sum()), 1e-12)
    self._baseline = reward.MovingBaseline(config.baseline_decay)
    self._evaluations = 0
    self._start = problem.clock()

  def run(self, start: float) -> placement_lib.Placement:
    """Runs steps until the budget is spent, at least one.

    Args:
      start: Time by the problem's clock at which the budget began.

    Returns:
      The best placement.

    Raises:
      InfeasiblePlacementError: no sampled placement is valid.
    """
    self._start, clock = start, self._problem.clock
    budget = self._problem.time_budget_s
    while not self.history or (len(self.history) < self._config.steps
                               if budget is None else clock() - start < budget):
      self.step()
      progress.reached(
          len(self.history) / self._config.steps if not budget else
          (clock() - start) / budget,
          f'best price {self.best_step_time_s * 1e3:.4g} ms')
    if self.best_devices is None:
      raise infeasible.none_valid(self._problem, self._evaluations,
                                  self._placement(self._last_devices))
    return self._placement(self.best_devices)

  def step(self) -> Step:
    """Samples one grouping and several placements of it, and updates once."""
    count, config = len(self.history), self._config
    grouping, rows, allowed = self._fixed or self._described(
        self._policy.sample_grouping((self._seed, 2 * count)))
    devices = self._policy.sample_devices(rows, allowed,
                                          (self._seed, 2 * count + 1))
    seconds = self._price(
        decisions.devices_of_units(grouping, devices, self._problem.allowed,
                                   self._problem.cluster.host))
    values = reward.rewards(seconds, self._unit_s, config.failing_signal)
    self._policy.update(grouping, rows, allowed, devices,
                        self._baseline.advantages(values),
                        config.learning_rate_at(count))
    self.history.append(
        Step(self._evaluations,
             self._problem.clock() - self._start, self.best_step_time_s,
             float(values.mean()), float(np.isfinite(seconds).mean())))
    return self.history[-1]

  def _placement(self, devices: np.ndarray) -> placement_lib.Placement:
    return placement_lib.from_groups(self._problem.graph, devices,
                                     self._problem.cluster)

  def _described(
      self, grouping: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return grouping, self._embed(grouping), decisions.allowed_devices(
        grouping, self._num_groups, self._problem.allowed)

  def _price(self, units: np.ndarray) -> np.ndarray:
    """Returns seconds, float64 [S], infinite if invalid; keeps the best."""
    prices = self._problem.evaluator.price_groups(self._problem.graph, units)
    self._evaluations += len(prices)
    seconds, best = prices.valid_seconds, prices.best()
    self._last_devices = units[best]
    if seconds[best] < self.best_step_time_s:
      self.best_step_time_s = float(seconds[best])
      self.best_devices = units[best]
    return seconds

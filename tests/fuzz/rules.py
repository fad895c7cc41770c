"""The rules that every placement of every placer has to keep."""

from __future__ import annotations

import dataclasses
import functools
from typing import Callable, Iterator

import numpy as np

from fuzz import cases
from gdp_grappler import deadlines
from gdp_grappler.cluster import one_device
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import bounds
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.graph import op_kinds
from gdp_grappler.placers import annealing_placer
from gdp_grappler.placers import best_of
from gdp_grappler.placers import default_placer
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers import placer_table
from gdp_grappler.placers import registry
from gdp_grappler.placers.simple import single_device
from helpers import clusters
from helpers import reference_simulator

# Placers that follow a prescribed rule. Their steps may be slow or not fit.
TOLD = frozenset(
    {'cpu_only', 'gpu_only', 'human_expert', 'random', 'round_robin'})
# Placements that a search prices, and placers that a placer of placers runs.
_EVALUATIONS, _OTHERS = 200, ('single_device', 'heft')
# Variants of the default placer, with the arguments of their parts.
_DEFAULT_PLACERS = {
    'gdp_no_network': dict(asks_moves=False, asks_network=False),
    'gdp_held_out': dict(asks_moves=True),
    'gdp_no_policy': dict(asks_moves=False),
}
# Seconds of each search of these, which stand for a number of placements.
_SEARCH_S = .5
# Ops up to which the reference simulator runs a step as well.
_PLAYED = 25
# Rounding error of bounds, whose sums have another order.
_ROUNDING = 1e-9
# Needs of placers that are left out.
_NOT_HERE = {placer_table.Need.POLICY, placer_table.Need.KERAS_2}
# Placers that raise an error if no op may be on such a device.
_ONE_KIND = {'cpu_only': 'CPU', 'gpu_only': 'GPU'}


@dataclasses.dataclass(frozen=True)
class Breach:
  """A rule that was broken.

  Attributes:
    rule: Name of the rule.
    message: Description of the breach.
  """

  rule: str
  message: str


def names() -> tuple[str, ...]:
  """Returns the placers that need neither a policy nor Keras 2."""
  return tuple(
      e.name for e in placer_table.table().values() if not e.needs & _NOT_HERE)


def create(name: str) -> placer_lib.Placer:
  """Returns a placer of the registry, with limits if it searches for long."""
  if name == 'local_search':
    return annealing_placer.AnnealingPlacer(_EVALUATIONS, _OTHERS)
  if name == 'best_of':
    return best_of.BestOfPlacer(_OTHERS)
  if name in _DEFAULT_PLACERS:
    return default_placer.DefaultPlacer(asks_policy=False,
                                        **_DEFAULT_PLACERS[name])
  return registry.create(name)


def _given(name: str, problem: placer_lib.Problem) -> placer_lib.Problem:
  """Returns the problem for a placer, with a small budget for a long search.

  The problem's clock stands still. Otherwise the number of priced placements
  would depend on the load of the machine.
  """
  if name not in _DEFAULT_PLACERS:
    return problem
  return dataclasses.replace(problem, time_budget_s=_SEARCH_S,
                             clock=deadlines.still)


class Examiner:
  """Checks the placements of one case against the rules.

  Attributes:
    case: The case.
    problem: The problem of the case, for placers.
    checks: Number of checks of rules so far.
  """

  def __init__(self, case: cases.Case, seed: int) -> None:
    self.case, self.checks = case, 0
    costs = clusters.FixedCosts(case.seconds)
    expert = np.random.default_rng(seed).integers(0, case.cluster.num_devices,
                                                  case.graph.num_ops)
    self._make = functools.partial(
        placer_lib.Problem, case.graph, case.cluster,
        simulator.Simulator(case.cluster, costs, threads=1), seed, expert)
    self.problem = self._make()

  def suits(self, name: str) -> bool:
    """Whether a placer can place this case."""
    kind = _ONE_KIND.get(name)
    if kind is None:
      return True
    device = single_device.first_device(self.case.cluster, kind)
    return device is not None and bool(self.problem.allowed[:, device].any())

  def breaches(self, name: str, twice: bool) -> Iterator[Breach]:
    """Returns all rules that a placer breaks.

    Args:
      name: Name of the placer.
      twice: Whether to check that a second call gives the same placement.
    """
    placement = create(name).place(_given(name, self.problem))
    for rule in self._rules(name):
      self.checks += 1
      message = rule(placement)
      if message:
        yield Breach(rule.__name__.strip('_'), message)
    if twice:
      self.checks += 1
      again = create(name).place(_given(name, self._make()))
      if again.devices.tolist() != placement.devices.tolist():
        yield Breach('deterministic', 'the second placement is another one')

  def _rules(
      self,
      name: str) -> Iterator[Callable[[placement_lib.Placement], str | None]]:
    yield self._legal
    yield self._not_below_the_bound
    if self.case.graph.num_ops <= _PLAYED:
      yield self._exact
    if name in TOLD or name.endswith('_published'):
      return
    yield self._no_worse_than_one_device
    if self.case.planted is not None and name != 'single_device':
      yield self._fits_as_the_planted_one_does

  def _legal(self, placement: placement_lib.Placement) -> str | None:
    found = placement.violations(self.case.graph)
    return f'{found[0].kind}: {found[0].message}' if found else None

  def _not_below_the_bound(self,
                           placement: placement_lib.Placement) -> str | None:
    found_s = self._price(placement).step_time_s
    if found_s < self._bound_s * (1 - _ROUNDING):
      return f'{found_s!r} s, bound {self._bound_s!r} s'
    return None

  def _exact(self, placement: placement_lib.Placement) -> str | None:
    played = reference_simulator.ReferenceSimulator(
        self.case.graph, self.case.cluster, self.case.seconds,
        placement.devices, op_kinds.ALIASES, placement.priorities)
    price = self._price(placement)
    if price.step_time_s != played.step_time:
      return f'{price.step_time_s!r} s, the reference {played.step_time!r} s'
    if list(price.peak_bytes) != played.memory.peak():
      return f'{price.peak_bytes} bytes, reference {played.memory.peak()}'
    return None

  def _no_worse_than_one_device(
      self, placement: placement_lib.Placement) -> str | None:
    """Checks a placement against all ops on each single device.

    Ops that may not be on the device are on the best other device.
    """
    rows = [*self._alone, placement.devices]
    *alone, own = self.problem.evaluator.price(self.case.graph,
                                               np.stack(rows)).keys()
    return None if own <= min(alone) else f'{own}, one device {min(alone)}'

  def _fits_as_the_planted_one_does(
      self, placement: placement_lib.Placement) -> str | None:
    price = self._price(placement)
    return None if price.valid else price.violations[0].message

  def _price(self,
             placement: placement_lib.Placement) -> evaluator_lib.Evaluation:
    return self.problem.evaluator.evaluate(self.case.graph, placement)

  @functools.cached_property
  def _bound_s(self) -> float:
    return bounds.lower_bound(self.case.graph, self.case.cluster,
                              self.case.seconds).seconds

  @functools.cached_property
  def _alone(self) -> np.ndarray:
    """int [D, N], the placements with all ops on each single device."""
    return one_device.on_each(self.problem.cluster,
                              self.problem.allowed)[:, self.case.graph.groups]

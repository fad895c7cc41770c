"""Drafts: placements with which a policy begins.

The drafts are placements on one device, maps of coordinates, cuts by METIS, and
schedules of list schedulers.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from gdp_grappler import deadlines
from gdp_grappler import extras
from gdp_grappler.cluster import one_device
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.coordinates import structured
from gdp_grappler.placers.list_scheduling import bundling
from gdp_grappler.placers.list_scheduling import favourite_children
from gdp_grappler.placers.list_scheduling import native_scheduler
from gdp_grappler.placers.list_scheduling import proposals
from gdp_grappler.placers.partitioning import metis
from gdp_grappler.placers.policy import policy_config

_METIS = 'pymetis'

_Bundles, _Rules = proposals.Bundles, native_scheduler.Rules
_LOCAL = _Rules(local_first=True)
_PORTS_LOCAL = _Rules(ports=True, local_first=True)
_CHILDREN = _Rules(favourites=True, local_first=True)
_CHILDREN_PORTS = _Rules(favourites=True, ports=True, in_order=True)
_HEFT = _Rules(insert=True, earliest_finish=True)
# Ways of list schedulers, in greedy order: each one adds the most to the maps,
# the cuts and the ways before it (docs/results/experiments.md).
_WAYS = (
    proposals.Way(_Bundles(), _LOCAL),
    proposals.Way(_Bundles(grain=1., dear=10.), _PORTS_LOCAL),
    proposals.Way(_Bundles(), _CHILDREN),
    proposals.Way(_Bundles(grain=1.), _PORTS_LOCAL),
    proposals.Way(_Bundles(grain=16., parts=1), _HEFT),
    proposals.Way(_Bundles(grain=1.), _CHILDREN_PORTS),
    proposals.Way(_Bundles(parts=2), _Rules(in_order=True)),
    proposals.Way(_Bundles(grain=16., parts=1), _CHILDREN_PORTS),
    proposals.Way(_Bundles(grain=1., dear=1.), _CHILDREN),
    proposals.Way(_Bundles(grain=1.), _Rules(in_order=True)),
)


def draw(problem: placer_lib.Problem, config: policy_config.PolicyConfig,
         rng: np.random.Generator,
         deadline: deadlines.Deadline = deadlines.NEVER) -> np.ndarray:
  """int32 [S, G], different legal placements of the groups.

  All groups on one device of each kind come first, then maps of coordinates,
  cuts, and list schedules.

  Args:
    problem: G groups.
    config: Numbers of maps, cuts and schedules.
    rng: Random numbers of the schedules.
    deadline: Moment after which no further cuts or schedules are made.

  Raises:
    InfeasiblePlacementError: the graph cannot be placed on the cluster.
  """
  found = [
      one_device.of_each_kind(problem.cluster, problem.allowed,
                              problem.op_seconds),
      structured.candidates(problem)[:config.maps]
  ]
  if len(problem.cluster.accelerators) > 1:
    if config.cuts and not deadline.passed and _METIS in extras.of_placers():
      found.append(metis.few(problem, config.cuts))
    found.append(_schedules(problem, config, rng, deadline))
  rows = np.concatenate(found).astype(np.int32)
  return np.stack(list({row.tobytes(): row for row in rows}.values()))


def _schedules(problem: placer_lib.Problem, config: policy_config.PolicyConfig,
               rng: np.random.Generator,
               deadline: deadlines.Deadline) -> np.ndarray:
  """int [K, G], schedules of all ways, then the same with random seconds."""
  scheduler = _Scheduler(problem)
  rows = []
  for number in range(config.schedules):
    if number and deadline.passed:
      break
    spread = config.spread if number >= len(_WAYS) else 0.
    rows.append(scheduler.row(_WAYS[number % len(_WAYS)], spread, rng))
  return np.array(rows, np.int32).reshape(-1, problem.graph.num_groups)


class _Scheduler:
  """Schedules one problem in many ways."""

  def __init__(self, problem: placer_lib.Problem) -> None:
    self._shared = proposals.Proposals(problem.graph, problem.cluster,
                                       problem.busy_seconds, problem.allowed)
    self._pools = problem.cluster.pool_bytes.astype(float)
    # Favourite children by bundles; `_favourites` explains the key.
    self._children: dict[proposals.Bundles, np.ndarray] = {}

  def row(self, way: proposals.Way, spread: float,
          rng: np.random.Generator) -> np.ndarray:
    """int32 [G], a schedule of one way.

    Args:
      way: Tasks and rules.
      spread: Size of random changes of the seconds, see `PolicyConfig`.
      rng: Random numbers of these changes.
    """
    tasks, rules = self._shared.tasks(way.bundles), way.rules
    if not self._shared.equal_devices:
      rules = dataclasses.replace(rules, earliest_finish=True)
    if spread:
      factors = np.exp(
          spread * rng.normal(size=(tasks.num_bundles, tasks.seconds.shape[1])))
      tasks = dataclasses.replace(
          tasks, seconds=tasks.seconds * factors[tasks.bundles])
    children = self._favourites(way.bundles) if rules.favourites else None
    return self._shared.schedule(tasks, rules, self._pools, children)

  def _favourites(self, bundles: proposals.Bundles) -> np.ndarray:
    """int32 [M], the favourite child of each task, or -1."""
    key = dataclasses.replace(bundles, parts=None, dear=None)
    if key not in self._children:
      tasks = self._shared.tasks(key)
      self._children[key] = favourite_children.matched(tasks,
                                                       bundling.work_s(tasks),
                                                       self._shared.link)[0]
    return self._children[key]

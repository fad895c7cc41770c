"""Drafts: placements with which `gdp_policy` begins.

Cheap placers propose many candidates: maps of coordinates, cuts by METIS, and
schedules of list schedulers. A price is a whole simulation, so a sweep over the
ops first estimates the step of each candidate (`MoveDescriber.estimates`). The
candidates with the shortest estimates become drafts, beside placements on one
device.
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
from gdp_grappler.placers.search.moves import move_filter

_METIS = 'pymetis'

_Bundles, _Rules = proposals.Bundles, native_scheduler.Rules
# Ways of list schedulers in greedy order: each one adds the most to the maps,
# the cuts and the ways before it (docs/results/experiments.md).
_WAYS = (
    proposals.Way(_Bundles(grain=1., every_device=True), _Rules(insert=True)),
    proposals.Way(_Bundles(grain=16.), _Rules()),
    proposals.Way(_Bundles(grain=1., dear=1.),
                  _Rules(ports=True, local_first=True)),
    proposals.Way(_Bundles(grain=1., every_device=True),
                  _Rules(earliest_finish=True, local_first=True)),
    proposals.Way(_Bundles(), _Rules(local_first=True, favourites=True)),
    proposals.Way(_Bundles(every_device=True), _Rules(queues=False,
                                                      insert=True)),
    proposals.Way(_Bundles(grain=1., halvings=1),
                  _Rules(ports=True, local_first=True)),
    proposals.Way(_Bundles(grain=16., parts=1),
                  _Rules(ports=True, in_order=True, favourites=True)),
    proposals.Way(_Bundles(grain=1., dear=10.),
                  _Rules(ports=True, local_first=True)),
    proposals.Way(_Bundles(grain=1.),
                  _Rules(ports=True, in_order=True, favourites=True)),
    proposals.Way(_Bundles(parts=1), _Rules(queues=False, insert=True)),
    proposals.Way(_Bundles(), _Rules(in_order=True, favourites=True)),
    proposals.Way(
        _Bundles(grain=1., every_device=True),
        _Rules(earliest_finish=True, local_first=True, favourites=True)),
    proposals.Way(_Bundles(grain=1., parts=4), _Rules(insert=True)),
    proposals.Way(_Bundles(grain=1.), _Rules(queues=False, favourites=True)),
    proposals.Way(_Bundles(), _Rules(ports=True, in_order=True,
                                     local_first=True)),
    proposals.Way(_Bundles(),
                  _Rules(ports=True, local_first=True, favourites=True)),
    proposals.Way(_Bundles(), _Rules(queues=False, favourites=True)),
    proposals.Way(_Bundles(parts=4), _Rules(ports=True, local_first=True)),
    proposals.Way(_Bundles(grain=16., parts=4), _Rules()),
    proposals.Way(_Bundles(grain=4.), _Rules(local_first=True,
                                             favourites=True)),
    proposals.Way(_Bundles(grain=1.),
                  _Rules(ports=True, local_first=True, favourites=True)),
    proposals.Way(_Bundles(grain=1.), _Rules(local_first=True,
                                             favourites=True)),
    proposals.Way(_Bundles(grain=1., halvings=1), _Rules(insert=True)),
)
# Ways that a large graph tries (`Proposals.large`).
_FEW = 8


def draw(problem: placer_lib.Problem, config: policy_config.PolicyConfig,
         describer: move_filter.MoveDescriber,
         deadline: deadlines.Deadline = deadlines.NEVER) -> np.ndarray:
  """int32 [S, G], different legal placements of the groups.

  All groups on one device of each kind come first, then the candidates with the
  shortest estimated steps.

  Args:
    problem: G groups.
    config: Numbers of candidates and of drafts.
    describer: Describer of moves of the problem.
    deadline: Moment after which no further cuts or schedules are made.

  Raises:
    InfeasiblePlacementError: the graph cannot be placed on the cluster.
  """
  alone = one_device.of_each_kind(problem.cluster, problem.allowed,
                                  problem.op_seconds)
  found = [structured.candidates(problem)[:config.maps]]
  if len(problem.cluster.accelerators) > 1:
    if config.cuts and not deadline.passed and _METIS in extras.of_placers():
      found.append(metis.few(problem, config.cuts))
    found.append(_schedules(problem, config.schedules, deadline))
  rows = _different(np.concatenate([alone, *found]))[len(alone):]
  if len(rows) > config.drafts:
    estimates = describer.estimates(alone[0], rows)
    rows = rows[np.argsort(estimates, kind='stable')[:config.drafts]]
  return np.concatenate([alone, rows])


def _different(rows: np.ndarray) -> np.ndarray:
  """int32 [K, G], the different ones of some placements, in their order."""
  rows = rows.astype(np.int32)
  return np.stack(list({row.tobytes(): row for row in rows}.values()))


def _schedules(problem: placer_lib.Problem, most: int,
               deadline: deadlines.Deadline) -> np.ndarray:
  """int32 [at most `most`, G], schedules; one in any case if `most` allows."""
  scheduler = _Scheduler(problem)
  rows: list[np.ndarray] = []
  for way in scheduler.ways[:most]:
    if rows and deadline.passed:
      break
    rows.append(scheduler.row(way))
  return np.array(rows, np.int32).reshape(-1, problem.graph.num_groups)


class _Scheduler:
  """Schedules one problem in many ways."""

  def __init__(self, problem: placer_lib.Problem) -> None:
    self._shared = proposals.Proposals(problem.graph, problem.cluster,
                                       problem.busy_seconds, problem.allowed)
    self._pools = problem.cluster.pool_bytes.astype(float)
    # Favourite children by bundles; `_favourites` explains the key.
    self._children: dict[proposals.Bundles, np.ndarray] = {}

  @property
  def ways(self) -> tuple[proposals.Way, ...]:
    """The ways to schedule the problem."""
    return _WAYS[:_FEW] if self._shared.large else _WAYS

  def row(self, way: proposals.Way) -> np.ndarray:
    """int32 [G], a schedule of one way."""
    tasks, rules = self._shared.tasks(way.bundles), way.rules
    if not self._shared.equal_devices:
      rules = dataclasses.replace(rules, earliest_finish=True)
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

"""Placements that a policy begins with: one device, maps, cuts, schedules."""

from __future__ import annotations

import dataclasses

import numpy as np

from gdp_grappler import deadlines
from gdp_grappler import extras
from gdp_grappler.placers import group_graph
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.coordinates import structured
from gdp_grappler.placers.list_scheduling import native_scheduler
from gdp_grappler.placers.list_scheduling import proposals
from gdp_grappler.placers.partitioning import metis
from gdp_grappler.placers.policy import policy_config
from gdp_grappler.placers.simple import single_device

_METIS = 'pymetis'

# Ways of list schedulers, in turns: how ops are bundled, and the rules. Of 384
# random ways these are the ones that are most often among the best twentieth.
_BUNDLES = (proposals.Bundles(grain=1.,
                              dear=1.), proposals.Bundles(grain=1., dear=10.),
            proposals.Bundles(parts=2), proposals.Bundles(grain=1.),
            proposals.Bundles(grain=1., dear=.1), proposals.Bundles())
_RULES = (native_scheduler.Rules(in_order=True),
          native_scheduler.Rules(ports=True, local_first=True),
          native_scheduler.Rules(local_first=True))


def draw(problem: placer_lib.Problem, config: policy_config.PolicyConfig,
         rng: np.random.Generator,
         deadline: deadlines.Deadline = deadlines.NEVER) -> np.ndarray:
  """int32 [S, G], legal placements of the groups, no two alike.

  Everything on one device of each kind comes first, then maps by coordinates,
  cuts, and list schedules.

  Args:
    problem: G groups.
    config: How many of each.
    rng: Of the schedules.
    deadline: No further schedule is begun afterwards.

  Raises:
    InfeasiblePlacementError: the graph cannot be placed on the cluster.
  """
  found = [single_device.of_each_kind(problem), _maps(problem, config.maps)]
  if len(problem.cluster.accelerators) > 1:
    if config.cuts and not deadline.passed and _METIS in extras.of_placers():
      found.append(metis.few(problem, config.cuts))
    found.append(_schedules(problem, config, rng, deadline))
  rows = np.concatenate(found).astype(np.int32)
  return np.stack(list({row.tobytes(): row for row in rows}.values()))


def _maps(problem: placer_lib.Problem, most: int) -> np.ndarray:
  """int [at most `most`, G], the most promising ones by coordinates."""
  accelerators = np.array(problem.cluster.accelerators)
  work = group_graph.work(problem, accelerators)
  return structured.candidates(problem, work)[:most]


def _schedules(problem: placer_lib.Problem, config: policy_config.PolicyConfig,
               rng: np.random.Generator,
               deadline: deadlines.Deadline) -> np.ndarray:
  """int [K, G], the usual ways, then the same with seconds that are drawn."""
  shared = proposals.Proposals(problem)
  pools = problem.cluster.pool_bytes.astype(float)
  rows = []
  for way in range(config.schedules):
    if way and deadline.passed:
      break
    tasks = shared.tasks(_BUNDLES[way % len(_BUNDLES)])
    if way >= len(_BUNDLES):
      factors = np.exp(
          config.spread
          * rng.normal(size=(tasks.num_bundles, problem.cluster.num_devices)))
      tasks = dataclasses.replace(
          tasks, seconds=tasks.seconds * factors[tasks.bundles])
    rows.append(shared.schedule(tasks, _RULES[way % len(_RULES)], pools))
  return np.array(rows, np.int32).reshape(-1, problem.graph.num_groups)

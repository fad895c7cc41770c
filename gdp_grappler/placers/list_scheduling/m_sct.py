"""Small communication times within memory limits (m-SCT)."""

from __future__ import annotations

import dataclasses

import numpy as np

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.list_scheduling import bundling
from gdp_grappler.placers.list_scheduling import candidates
from gdp_grappler.placers.list_scheduling import favourite_children
from gdp_grappler.placers.list_scheduling import native_scheduler
from gdp_grappler.placers.list_scheduling import proposals
from gdp_grappler.placers.list_scheduling import task_graph

_Bundles, _Rules = proposals.Bundles, native_scheduler.Rules
_QUEUES = _Rules(favourites=True)
_LOCAL = _Rules(favourites=True, local_first=True)
_FINISH = dataclasses.replace(_LOCAL, earliest_finish=True)
_FUSED = _Bundles(grain=1.)
_PORTS = _Rules(favourites=True, ports=True)
_PORTS_LOCAL = dataclasses.replace(_PORTS, local_first=True)
_PORTS_ORDER = dataclasses.replace(_PORTS, in_order=True)
_PORTS_LOCAL_ORDER = dataclasses.replace(_PORTS_LOCAL, in_order=True)
_DEAR, _DEAREST = _Bundles(grain=1., dear=.1), _Bundles(grain=1., dear=1.)
# As Baechi has it, and as Hanen and Munier.
_PUBLISHED = proposals.Way(_Bundles(), _PORTS_ORDER)
_NO_CONTENTION = proposals.Way(_Bundles(), _Rules(favourites=True,
                                                  queues=False))
# With the parts of `bundling.co_place_pairs`, in devices, that favourite
# children and their parents may be; None if devices only wait for them. In
# order of what they are worth.
_WAYS = (
    (proposals.Way(_FUSED, _LOCAL), None),
    (proposals.Way(_DEAREST, _PORTS_ORDER), None),
    (proposals.Way(_FUSED, _LOCAL), 16),
    (proposals.Way(_DEAREST, _LOCAL), None),
    (proposals.Way(_FUSED, _PORTS_LOCAL_ORDER), None),
    # No favourites: where nothing is worth waiting for.
    (proposals.Way(_Bundles(parts=4), _Rules(ports=True, in_order=True)), None),
    (_PUBLISHED, None),
    (proposals.Way(_Bundles(parts=4), _PORTS_ORDER), None),
    (proposals.Way(_Bundles(parts=4), _PORTS_LOCAL), None),
    (proposals.Way(_Bundles(grain=1., dear=10.), _PORTS_LOCAL), None),
    (proposals.Way(_DEAREST, _PORTS_LOCAL_ORDER), None),
    (proposals.Way(_FUSED, _NO_CONTENTION.rules), None),
    (proposals.Way(_DEAR, _LOCAL), None),
    (proposals.Way(_DEAR, _PORTS_ORDER), None),
    (proposals.Way(_FUSED, _PORTS_LOCAL), None),
    (proposals.Way(_FUSED, _PORTS_LOCAL), 16),
    (proposals.Way(_FUSED, _LOCAL), 4),
    (_NO_CONTENTION, None),
    (proposals.Way(_Bundles(), _PORTS_LOCAL), None),
    (proposals.Way(_Bundles(), _Rules(favourites=True, in_order=True)), None),
    (proposals.Way(_FUSED, _QUEUES), None),
    (proposals.Way(_FUSED, _LOCAL), 1),
    (proposals.Way(_Bundles(), _LOCAL), None),
    (proposals.Way(_Bundles(), _LOCAL), 4),
    (proposals.Way(_Bundles(parts=2), _QUEUES), None),
    (proposals.Way(_Bundles(grain=1., halvings=1), _LOCAL), None),
    (proposals.Way(_Bundles(grain=1., halvings=1), _LOCAL), 4),
    (proposals.Way(_Bundles(grain=1., halvings=2), _PORTS_LOCAL), None),
    (proposals.Way(_Bundles(grain=1., every_device=True), _FINISH), None),
    (proposals.Way(_Bundles(grain=4.), _LOCAL), None),
    (proposals.Way(_FUSED, _Rules(local_first=True)), None),
    (proposals.Way(_Bundles(), _Rules(ports=True, in_order=True)), None),
)
# For large graphs.
_FEW = 6
# Tasks of a linear program, and of those of a graph of more ops: HiGHS takes
# 0.3 to 3 s for 4000, a third of that for half of them, which is hardly worse.
_WINDOW, _SMALL_WINDOW = 4000, 2000
_MOST_OPS = 10_000


class MSctPlacer:
  """ETF in which a device waits for the favourite child of its last op.

  Hanen and Munier, "An approximation algorithm for scheduling dependent tasks
  on m processors with small communication delays", ETFA 1995, with the memory
  limits of Jeon et al., "Baechi: fast device placement of machine learning
  graphs", SoCC 2020, section 3.2. After an op, its device is reserved: until
  the favourite child could as well start elsewhere, it takes only that child or
  what could start on any device. In the papers favourite children come from a
  linear program; a matching, which takes a hundredth of the time, makes paths
  as short (`favourite_children`).

  Proposes several placements and keeps the cheapest by the evaluator: as in
  Baechi, where a device sends or receives one tensor at a time, and as in Hanen
  and Munier, where transfers do not disturb each other; with transfers queueing
  for their link as in the simulator; in topological or rank order; with ops
  joined whose communication outweighs them (before favourites are sought); with
  all favourite children or only those that are so in any case; with those that
  share the device of their parent for good, up to a fair share of the work, or
  for which nothing waits; with large tensors kept at
  home; with half, a quarter or one of the accelerators. Where accelerators
  differ, the op that can start first goes where it ends first. CPUs get only
  what accelerators cannot have, except in a proposal with all devices.

  Large graphs get fewer proposals.

  Attributes:
    published: Whether to make the one proposal of Baechi and no other, with
      the linear program solved by HiGHS.
  """

  def __init__(self, published: bool = False) -> None:
    self.published = published

  def place(self, problem: placer_lib.Problem) -> placement_lib.Placement:
    """See `Placer`.

    Raises:
      GdpError: as published, and highspy is not installed.
    """
    shared = proposals.Proposals(problem)
    ways = _WAYS[:_FEW] if shared.large else _WAYS
    if self.published:
      ways = ((dataclasses.replace(
          _PUBLISHED, rules=dataclasses.replace(_PUBLISHED.rules,
                                                thorough=True)), None),)
    favourites = {}
    for way, _ in ways:
      key = _same_tasks(way.bundles)
      if way.rules.favourites and key not in favourites:
        favourites[key] = self._favourites(problem, shared.tasks(key),
                                           shared.link)
    scheduled = [
        _proposer(shared, _suited(shared, way), at_home, row)
        for way, at_home in ways for row in (
            favourites[_same_tasks(way.bundles)] if way.rules.favourites else (
                None,))
    ]
    if self.published:
      return candidates.best(problem, scheduled, beyond=False)
    return candidates.best(problem, [shared.alone, *scheduled])

  def _favourites(self, problem: placer_lib.Problem,
                  tasks: task_graph.TaskGraph,
                  link: tuple[float, float]) -> np.ndarray:
    """int32 [K, M], the favourite child of each task or -1, K answers."""
    work_s = bundling.work_s(tasks)
    if not self.published:
      found = favourite_children.matched(tasks, work_s, link)
      return found[:1] if (found[0] == found[1]).all() else found
    small = problem.graph.num_ops <= _MOST_OPS
    return favourite_children.solve(tasks, work_s, link,
                                    _WINDOW if small else _SMALL_WINDOW)[None]


def _same_tasks(bundles: proposals.Bundles) -> proposals.Bundles:
  """Co-placement changes bundles, not tasks: their favourites are the same."""
  return dataclasses.replace(bundles, parts=None, dear=None)


def _suited(shared: proposals.Proposals, way: proposals.Way) -> proposals.Way:
  if (shared.equal_devices or way.rules.thorough or
      way in (_PUBLISHED, _NO_CONTENTION)):
    return way
  return dataclasses.replace(
      way, rules=dataclasses.replace(way.rules, earliest_finish=True))


def _proposer(shared: proposals.Proposals, way: proposals.Way,
              at_home: int | None,
              favourites: np.ndarray | None) -> candidates.Proposer:
  if at_home is None:
    return shared.proposer(way, favourites)
  assert favourites is not None  # The rules of every such way ask for them.
  parents = np.flatnonzero(favourites >= 0)
  pairs = np.stack([parents, favourites[parents]], axis=1)
  parts = at_home * len(shared.targets(way.bundles.halvings))
  return lambda pool_bytes: shared.schedule(
      bundling.co_place_pairs(shared.tasks(way.bundles), pairs, parts), way.
      rules, pool_bytes, favourites)

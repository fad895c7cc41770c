"""Heterogeneous earliest finish time (HEFT)."""

from __future__ import annotations

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.list_scheduling import candidates
from gdp_grappler.placers.list_scheduling import native_scheduler
from gdp_grappler.placers.list_scheduling import proposals

_Bundles = proposals.Bundles
_PUBLISHED = native_scheduler.Rules(insert=True, queues=False)
_QUEUES = native_scheduler.Rules(insert=True)
_WAYS = (
    proposals.Way(_Bundles(every_device=True), _PUBLISHED),
    proposals.Way(_Bundles(grain=1.), _QUEUES),
    proposals.Way(_Bundles(grain=1., parts=4), _QUEUES),
    proposals.Way(_Bundles(grain=1., dear=.1), _QUEUES),
    proposals.Way(_Bundles(grain=1.), _PUBLISHED),
    proposals.Way(_Bundles(grain=1., every_device=True), _QUEUES),
    proposals.Way(_Bundles(), _QUEUES),
    proposals.Way(_Bundles(parts=2), _QUEUES),
    proposals.Way(_Bundles(grain=1., dear=1.), _QUEUES),
    proposals.Way(_Bundles(), _PUBLISHED),
    proposals.Way(_Bundles(parts=1), _PUBLISHED),
    proposals.Way(_Bundles(grain=1., halvings=1), _QUEUES),
    proposals.Way(_Bundles(grain=1., halvings=2), _QUEUES),
    proposals.Way(_Bundles(grain=16., parts=4), _QUEUES),
)
# For large graphs.
_FEW = 5


class HeftPlacer:
  """Ops by upward rank, each in the gap of a device where it ends first.

  Topcuoglu, Hariri and Wu, "Performance-effective and low-complexity task
  scheduling for heterogeneous computing", IEEE TPDS 13(3), 2002: ranks are
  those of equation 4 with mean costs, gaps are filled as in section 4. A
  device without room for an op is no choice for it; HEFT itself knows no
  memory.

  Proposes several placements and keeps the cheapest by the evaluator: HEFT as
  published on all devices, and with transfers queueing for their link, ops
  joined whose communication outweighs them, large tensors kept at home, and
  only what has to be there on CPUs. Where ops share a device by the graph's
  rules, the first of them to be placed decides by the time they all take.
  """

  def place(self, problem: placer_lib.Problem) -> placement_lib.Placement:
    """See `Placer`."""
    shared = proposals.Proposals(problem)
    ways = _WAYS[:_FEW] if shared.large else _WAYS
    return candidates.best(problem, [shared.proposer(way) for way in ways])

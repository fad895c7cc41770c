"""Earliest task first within memory limits (m-ETF)."""

from __future__ import annotations

import dataclasses

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.list_scheduling import candidates
from gdp_grappler.placers.list_scheduling import native_scheduler
from gdp_grappler.placers.list_scheduling import proposals

_Bundles, _Rules = proposals.Bundles, native_scheduler.Rules
_LOCAL = _Rules(local_first=True)
_FINISH = _Rules(local_first=True, earliest_finish=True)
_ORDER = _Rules(in_order=True)
_PORTS = _Rules(ports=True)
_PORTS_LOCAL = _Rules(ports=True, local_first=True)
_PORTS_LOCAL_ORDER = _Rules(ports=True, local_first=True, in_order=True)
# As Baechi has it, and as Hwang et al.
_PUBLISHED = proposals.Way(_Bundles(), _Rules(ports=True, in_order=True))
_NO_CONTENTION = proposals.Way(_Bundles(), _Rules(queues=False))
# In order of what they are worth on training graphs and random layered ones.
_WAYS = (
    proposals.Way(_Bundles(grain=1.), _LOCAL),
    proposals.Way(_Bundles(grain=1., dear=1.), _ORDER),
    proposals.Way(_Bundles(parts=4), _PUBLISHED.rules),
    proposals.Way(_Bundles(grain=1., halvings=1), _PORTS_LOCAL),
    _PUBLISHED,
    proposals.Way(_Bundles(parts=4), _PORTS_LOCAL),
    proposals.Way(_Bundles(), _PORTS_LOCAL_ORDER),
    proposals.Way(_Bundles(parts=4), _PORTS),
    proposals.Way(_Bundles(grain=1., halvings=2), _PORTS_LOCAL),
    proposals.Way(_Bundles(grain=1., dear=1.), _PORTS_LOCAL_ORDER),
    proposals.Way(_Bundles(grain=1., dear=1.), _PORTS_LOCAL),
    proposals.Way(_Bundles(grain=1., dear=10.), _PORTS_LOCAL),
    proposals.Way(_Bundles(grain=16., parts=1, halvings=1), _PORTS),
    proposals.Way(_Bundles(grain=1.), _PORTS),
    proposals.Way(_Bundles(), _LOCAL),
    proposals.Way(_Bundles(grain=1.), _Rules(local_first=True, in_order=True)),
    proposals.Way(_Bundles(grain=1., dear=.1), _ORDER),
    _NO_CONTENTION,
    proposals.Way(_Bundles(grain=1., halvings=1), _LOCAL),
    proposals.Way(_Bundles(grain=1., dear=.1), _LOCAL),
    proposals.Way(_Bundles(parts=2), _Rules()),
    proposals.Way(_Bundles(grain=1., dear=1.), _LOCAL),
    proposals.Way(_Bundles(grain=1., every_device=True), _FINISH),
    proposals.Way(_Bundles(grain=1., halvings=2), _LOCAL),
    proposals.Way(_Bundles(grain=1.), _Rules(queues=False, local_first=True)),
    proposals.Way(_Bundles(grain=1.), _Rules()),
    proposals.Way(_Bundles(grain=4.), _LOCAL),
    proposals.Way(_Bundles(grain=16.), _Rules()),
    proposals.Way(_Bundles(grain=16., parts=1), _LOCAL),
    proposals.Way(_Bundles(parts=2, halvings=1), _Rules()),
    proposals.Way(_Bundles(grain=16., parts=4), _Rules()),
)
# For large graphs.
_FEW = 6


class MEtfPlacer:
  """Among all ready ops the one that can start first, where it can.

  Hwang, Chow, Anger and Lee, "Scheduling precedence graphs in systems with
  interprocessor communication times", SIAM J. Comput. 18(2), 1989, with the
  memory limits of Jeon et al., "Baechi: fast device placement of machine
  learning graphs", SoCC 2020, section 3.2: a device that has no room left for
  an op is no choice for it.

  Proposes several placements and keeps the cheapest by the evaluator: ETF as
  in Baechi, where each op stands for itself and a device sends or receives one
  tensor at a time, and as in Hwang et al., where transfers do not disturb each
  other; with transfers queueing for their link as in the simulator; with ops
  joined whose communication outweighs them, and large tensors kept at home
  (Baechi's co-placement and fusion, section 3.1); with half, a quarter or one
  of the accelerators. Among ops that can start at once the first in topological
  order is next, the one of the highest upward rank, or the one with the least
  data to fetch. Where accelerators differ, the op that can start first goes
  where it ends first. CPUs get only what accelerators cannot have, except in a
  proposal with all devices, which small graphs may gain from.

  Large graphs get fewer proposals: time grows with ops x devices. Above 40,000
  tasks what waits for a link is not looked at again for every op that is placed
  (earliest_task_first.h), which would take time by the square of the tasks;
  placements may become others by it.

  Attributes:
    published: Whether to make the one proposal of Baechi and no other.
  """

  def __init__(self, published: bool = False) -> None:
    self.published = published

  def place(self, problem: placer_lib.Problem) -> placement_lib.Placement:
    """See `Placer`."""
    shared = proposals.Proposals(problem)
    if self.published:
      way = dataclasses.replace(
          _PUBLISHED, rules=dataclasses.replace(_PUBLISHED.rules,
                                                thorough=True))
      return candidates.best(problem, [shared.proposer(way)], beyond=False)
    return candidates.best(
        problem,
        [shared.alone, *(shared.proposer(way) for way in _ways(shared))])


def _ways(shared: proposals.Proposals) -> list[proposals.Way]:
  """Those that suit a problem."""
  result = list(_WAYS[:_FEW] if shared.large else _WAYS)
  if not shared.equal_devices:
    result = [
        _PUBLISHED, _NO_CONTENTION, *(dataclasses.replace(
            way, rules=dataclasses.replace(way.rules, earliest_finish=True))
                                      for way in result)
    ]
  return result

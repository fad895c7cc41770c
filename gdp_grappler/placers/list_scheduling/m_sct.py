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

_Bundles, _Rules = proposals.Bundles, native_scheduler.Rules
_QUEUES = _Rules(favourites=True)
_LOCAL = _Rules(favourites=True, local_first=True)
_FINISH = dataclasses.replace(_LOCAL, earliest_finish=True)
_FUSED = _Bundles(grain=1.)
_LIKE_PUBLISHED = proposals.Way(
    _Bundles(), _Rules(favourites=True, queues=False))
# With the parts of `bundling.co_place_pairs`, in devices, that favourite
# children and their parents may be; None if devices only wait for them. In
# order of what they are worth.
_WAYS = (
    (proposals.Way(_FUSED, _LOCAL), None),
    (proposals.Way(_FUSED, _LOCAL), 16),
    (proposals.Way(_FUSED, _LIKE_PUBLISHED.rules), None),
    (proposals.Way(_Bundles(grain=1., dear=.1), _LOCAL), None),
    (proposals.Way(_FUSED, _LOCAL), 4),
    (_LIKE_PUBLISHED, None),
    (proposals.Way(_FUSED, _QUEUES), None),
    (proposals.Way(_FUSED, _LOCAL), 1),
    (proposals.Way(_Bundles(), _LOCAL), None),
    (proposals.Way(_Bundles(), _LOCAL), 4),
    (proposals.Way(_Bundles(parts=2), _QUEUES), None),
    (proposals.Way(_Bundles(grain=1., dear=1.), _LOCAL), None),
    (proposals.Way(_Bundles(grain=1., halvings=1), _LOCAL), None),
    (proposals.Way(_Bundles(grain=1., halvings=1), _LOCAL), 4),
    (proposals.Way(_Bundles(grain=1., halvings=2), _LOCAL), None),
    (proposals.Way(_Bundles(grain=1., every_device=True), _FINISH), None),
    (proposals.Way(_Bundles(grain=4.), _LOCAL), None),
)
# For large graphs.
_FEW = 5
# Tasks of a linear program: HiGHS takes 0.3 s for so many.
_WINDOW = 4000


class MSctPlacer:
  """ETF in which a device waits for the favourite child of its last op.

  Hanen and Munier, "An approximation algorithm for scheduling dependent tasks
  on m processors with small communication delays", ETFA 1995, with the memory
  limits of Jeon et al., "Baechi: fast device placement of machine learning
  graphs", SoCC 2020, section 3.2. Favourite children come from a linear program
  (`favourite_children`), solved by HiGHS. After an op, its device is reserved:
  until the favourite child could as well start elsewhere, it takes only that
  child or what could start on any device.

  Proposes several placements and keeps the cheapest by the evaluator: as
  published; with transfers queueing for their link as in the simulator; with
  ops joined whose communication outweighs them (before the program is solved);
  with favourite children that share the device of their parent for good, up to
  a fair share of the work; with large tensors kept at home; with half or a
  quarter of the accelerators. Where accelerators differ, the op that can start
  first goes where it ends first. CPUs get only what accelerators cannot have,
  except in a proposal with all devices.

  Large graphs get fewer proposals.

  Raises:
    GdpError: highspy is not installed.
  """

  def place(self, problem: placer_lib.Problem) -> placement_lib.Placement:
    """See `Placer`."""
    shared = proposals.Proposals(problem)
    ways = _WAYS[:_FEW] if shared.large else _WAYS
    favourites = {}
    for way, _ in ways:
      key = _same_tasks(way.bundles)
      if key not in favourites:
        tasks = shared.tasks(key)
        favourites[key] = favourite_children.solve(
            tasks, bundling.work_s(tasks), shared.link, _WINDOW)
    return candidates.best(problem, [
        _proposer(shared, _suited(shared, way), at_home,
                  favourites[_same_tasks(way.bundles)])
        for way, at_home in ways])


def _same_tasks(bundles) -> proposals.Bundles:
  """Co-placement changes bundles, not tasks: their favourites are the same."""
  return dataclasses.replace(bundles, parts=None, dear=None)


def _suited(shared, way) -> proposals.Way:
  if shared.equal_devices or way == _LIKE_PUBLISHED:
    return way
  return dataclasses.replace(
      way, rules=dataclasses.replace(way.rules, earliest_finish=True))


def _proposer(shared, way, at_home, favourites) -> candidates.Proposer:
  if at_home is None:
    return shared.proposer(way, favourites)
  parents = np.flatnonzero(favourites >= 0)
  pairs = np.stack([parents, favourites[parents]], axis=1)
  parts = at_home * len(shared.targets(way.bundles.halvings))
  return lambda pool_bytes: shared.schedule(
      bundling.co_place_pairs(shared.tasks(way.bundles), pairs, parts),
      way.rules, pool_bytes, favourites)

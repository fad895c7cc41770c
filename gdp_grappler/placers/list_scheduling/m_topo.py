"""Topological order, cut into equal shares of memory (m-TOPO)."""

from __future__ import annotations

from typing import Sequence

import numpy as np

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.list_scheduling import candidates
from gdp_grappler.placers.list_scheduling import native_scheduler
from gdp_grappler.placers.list_scheduling import proposals
from gdp_grappler.placers.list_scheduling import reservations

_PUBLISHED = proposals.Bundles()
_BUNDLES = (_PUBLISHED, proposals.Bundles(grain=1.), proposals.Bundles(parts=4),
            proposals.Bundles(grain=1.,
                              parts=2), proposals.Bundles(grain=16., parts=1),
            proposals.Bundles(halvings=1), proposals.Bundles(grain=1., dear=.1),
            proposals.Bundles(grain=1., parts=2,
                              halvings=1), proposals.Bundles(grain=1., dear=1.),
            proposals.Bundles(grain=1., halvings=2))
# For large graphs.
_FEW = 3


class MTopoPlacer:
  """Fills one accelerator after the other with ops in topological order.

  Jeon et al., "Baechi: fast device placement of machine learning graphs", SoCC
  2020, section 3.2: a device is full when it has an equal share of the memory
  that all ops need, or no room left.

  Proposes several placements and keeps the cheapest by the evaluator: the
  order is breadth first or depth first; what shares the device with an op is
  what the graph puts there (as published), or also what joins it by Baechi's
  co-placement and fusion (section 3.1), such as its gradient; memory counts
  all outputs (as published) or the share of them that is alive at a time; all
  accelerators are used, half, a quarter or one of them. Large graphs get fewer
  proposals.

  Attributes:
    published: Whether to make the one proposal of the paper and no other.
  """

  def __init__(self, published: bool = False) -> None:
    self.published = published

  def place(self, problem: placer_lib.Problem) -> placement_lib.Placement:
    """See `Placer`."""
    shared = proposals.Proposals(problem)
    all_bytes = reservations.group_bytes(problem.graph, share=1.)
    if self.published:
      return candidates.best(problem,
                             [_proposer(shared, _PUBLISHED, False, all_bytes)],
                             beyond=False)
    return candidates.best(problem, [
        shared.alone,
        *(_proposer(shared, bundles, depth_first, group_bytes)
          for bundles in (_BUNDLES[:_FEW] if shared.large else _BUNDLES)
          for depth_first in (False, True)
          for group_bytes in (shared.group_bytes, all_bytes))
    ])


def _proposer(shared: proposals.Proposals, bundles: proposals.Bundles,
              depth_first: bool,
              group_bytes: np.ndarray) -> candidates.Proposer:

  def propose(pool_bytes: np.ndarray) -> np.ndarray:
    tasks = shared.tasks(bundles)
    order = tasks.bundles[native_scheduler.topological_order(
        tasks, depth_first)]
    first = np.full(tasks.num_bundles, len(order))
    np.minimum.at(first, order, np.arange(len(order)))
    by_bundle = _fill(
        np.argsort(first, kind='stable').tolist(),
        tasks.bundle_sums(group_bytes), tasks.allowed,
        shared.targets(bundles.halvings).tolist(),
        shared.problem.cluster.memory_pools.tolist(), pool_bytes.tolist())
    return by_bundle[tasks.group_bundles]

  return propose


def _fill(order: Sequence[int], size: np.ndarray, allowed: np.ndarray,
          targets: Sequence[int], pools: Sequence[int],
          pool_bytes: Sequence[float]) -> np.ndarray:
  """int32 [B], devices of bundles.

  Plain Python: there are few steps, but one for each bundle.

  Args:
    order: [B] bundles.
    size: float64 [B], their bytes.
    allowed: bool [B, D].
    targets: The devices to fill, in this order.
    pools: [D], their memories.
    pool_bytes: [P], what these hold.
  """
  welcome = np.asarray(allowed[:, targets].any(axis=1))
  share = size[welcome].sum() / len(targets)
  anywhere = np.asarray(allowed[:, targets].all(axis=1)).tolist()
  movable, sizes = welcome.tolist(), size.tolist()
  result = np.empty(len(order), np.int32)
  devices: list[int] = []
  used, left = [0.] * len(pools), list(pool_bytes)
  current, last = 0, len(targets) - 1
  for bundle in order:
    needed = sizes[bundle]
    if movable[bundle]:
      # Full: its share would be exceeded by more than it now lacks.
      while (current < last and used[targets[current]] > 0 and
             (used[targets[current]] + needed / 2 > share or
              needed > left[pools[targets[current]]])):
        current += 1
    device = targets[current]
    if not anywhere[bundle] or left[pools[device]] < needed:
      device = _nearest(targets, current, allowed[bundle],
                        [left[pool] - needed for pool in pools])
    devices.append(device)
    used[device] += needed
    left[pools[device]] -= needed
  result[order] = devices
  return result


def _nearest(targets: Sequence[int], current: int, allowed: np.ndarray,
             room: Sequence[float]) -> int:
  """The current target, or another where a bundle may be and has room."""
  device = targets[current]
  if allowed[device] and room[device] >= 0:
    return device
  suited = [d for d in (*targets[current:], *targets[:current]) if allowed[d]]
  suited = suited or np.flatnonzero(allowed).tolist()
  return next((d for d in suited if room[d] >= 0),
              max(suited, key=lambda d: room[d]))

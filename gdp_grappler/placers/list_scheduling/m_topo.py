"""Topological order, cut into equal shares of memory (m-TOPO)."""

from __future__ import annotations

import numpy as np

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.list_scheduling import candidates
from gdp_grappler.placers.list_scheduling import native_scheduler
from gdp_grappler.placers.list_scheduling import proposals
from gdp_grappler.placers.list_scheduling import reservations
from gdp_grappler.placers.list_scheduling import task_graph

_BUNDLES = (proposals.Bundles(), proposals.Bundles(grain=1.),
            proposals.Bundles(parts=4), proposals.Bundles(grain=1., parts=2),
            proposals.Bundles(grain=16., parts=1),
            proposals.Bundles(halvings=1),
            proposals.Bundles(grain=1., dear=.1),
            proposals.Bundles(grain=1., parts=2, halvings=1))
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
  accelerators are used or half of them. Large graphs get fewer proposals.
  """

  def place(self, problem: placer_lib.Problem) -> placement_lib.Placement:
    """See `Placer`."""
    shared = proposals.Proposals(problem)
    sizes = (shared.group_bytes,
             reservations.group_bytes(problem.graph, share=1.))
    return candidates.best(problem, [
        _proposer(shared, bundles, depth_first, group_bytes)
        for bundles in (_BUNDLES[:_FEW] if shared.large else _BUNDLES)
        for depth_first in (False, True)
        for group_bytes in sizes])


def _proposer(shared, bundles, depth_first, group_bytes):
  def propose(pool_bytes):
    tasks = shared.tasks(bundles)
    order = (_depth_first(tasks) if depth_first
             else native_scheduler.topological_order(tasks))
    bundle_order = tasks.bundles[order]
    first = np.sort(np.unique(bundle_order, return_index=True)[1])
    by_bundle = _fill(
        bundle_order[first].tolist(), tasks.bundle_sums(group_bytes),
        tasks.allowed, shared.targets(bundles.halvings),
        shared.problem.cluster.memory_pools, pool_bytes)
    return by_bundle[tasks.group_bundles]
  return propose


def _fill(order, size, allowed, targets, pools, pool_bytes) -> np.ndarray:
  """int32 [B], devices of bundles.

  Args:
    order: [B] bundles.
    size: float64 [B], their bytes.
    allowed: bool [B, D].
    targets: int, the devices to fill, in this order.
    pools: int [D], their memories.
    pool_bytes: [P], what these hold.
  """
  movable = allowed[:, targets].any(axis=1)
  share = size[movable].sum() / len(targets)
  result = np.empty(len(order), np.int32)
  used, left = np.zeros(len(pools)), np.array(pool_bytes, float)
  current, sizes = 0, size.tolist()
  for bundle in order:
    needed = sizes[bundle]
    if movable[bundle]:
      # Full: its share would be exceeded by more than it now lacks.
      while (current < len(targets) - 1 and used[targets[current]] > 0
             and (used[targets[current]] + needed / 2 > share
                  or needed > left[pools[targets[current]]])):
        current += 1
    device = _nearest(targets, current, allowed[bundle], left[pools] - needed)
    result[bundle] = device
    used[device] += needed
    left[pools[device]] -= needed
  return result


def _nearest(targets, current, allowed, room) -> int:
  """The current target, or another where a bundle may be and has room."""
  device = targets[current]
  if allowed[device] and room[device] >= 0:
    return device
  suited = [d for d in (*targets[current:], *targets[:current]) if allowed[d]]
  suited = suited or np.flatnonzero(allowed).tolist()
  return next((d for d in suited if room[d] >= 0),
              max(suited, key=lambda d: room[d]))


def _depth_first(tasks: task_graph.TaskGraph) -> np.ndarray:
  """int32 [M], topological: what became ready last is next."""
  pairs, _ = tasks.pairs(0., 0.)
  starts = np.searchsorted(pairs[:, 0], np.arange(tasks.num_tasks + 1)).tolist()
  consumers = pairs[:, 1].tolist()
  waiting = np.bincount(pairs[:, 1], minlength=tasks.num_tasks).tolist()
  ready = [task for task, count in enumerate(waiting) if not count][::-1]
  order = []
  while ready:
    task = ready.pop()
    order.append(task)
    for consumer in consumers[starts[task]:starts[task + 1]]:
      waiting[consumer] -= 1
      if not waiting[consumer]:
        ready.append(consumer)
  return np.array(order, np.int32)

"""Topological order, cut into equal shares of memory (m-TOPO)."""

from __future__ import annotations

from typing import Sequence

import numpy as np

from gdp_grappler.placers.list_scheduling import candidates
from gdp_grappler.placers.list_scheduling import native_scheduler
from gdp_grappler.placers.list_scheduling import proposals
from gdp_grappler.placers.search.memory import memory_estimate

_PUBLISHED = proposals.Bundles()
_BUNDLES = (_PUBLISHED, proposals.Bundles(grain=1.), proposals.Bundles(parts=4),
            proposals.Bundles(grain=1.,
                              parts=2), proposals.Bundles(grain=16., parts=1),
            proposals.Bundles(halvings=1),
            proposals.Bundles(grain=1., transfer_grain=.1),
            proposals.Bundles(grain=1., parts=2, halvings=1),
            proposals.Bundles(grain=1., transfer_grain=1.),
            proposals.Bundles(grain=1., halvings=2))
# Number of choices of bundles for a large graph (`Proposals.large`).
_NUM_FOR_LARGE = 3


class MTopoPlacer(candidates.ListSchedulingPlacer):
  """Fills one accelerator after the other, in topological order (m-TOPO).

  The algorithm is m-TOPO of Jeon et al., "Baechi: fast device placement of
  machine learning graphs", SoCC 2020, section 3.2. A device is full when it has
  an equal share of the memory that all ops need, or no room left.

  The placer makes several proposals and keeps the one with the best price. The
  proposals differ in:

  * the topological order: breadth first or depth first;
  * bundles: the ops that the graph puts on one device (as published), or also
    the ops that Baechi's co-placement and fusion put there (section 3.1), such
    as an op and its gradient;
  * memory: all outputs count (as published), or the share of them that is alive
    at the worst moment;
  * devices: all accelerators, half, a quarter or one of them.

  Large graphs get fewer proposals. If one accelerator cannot hold all ops, the
  placer also proposes schedules by earliest finish within the memories.

  Attributes:
    published: Whether to make only the proposal of the paper.
  """

  # If neighbours in the order share a device, other devices wait. With these
  # configurations, each op gets the device on which it ends first.
  _tight = (proposals.config(insert=True),
            proposals.config(grain=1., insert=True))

  def _proposers(self,
                 shared: proposals.Proposals) -> Sequence[proposals.Proposer]:
    all_bytes = memory_estimate.group_bytes(shared.graph, share=1.)
    if self.published:
      return [_proposer(shared, _PUBLISHED, False, all_bytes)]
    return [
        shared.alone,
        *(_proposer(shared, bundles, depth_first, group_bytes) for bundles in (
            _BUNDLES[:_NUM_FOR_LARGE] if shared.large else _BUNDLES)
          for depth_first in (False, True)
          for group_bytes in (shared.group_bytes, all_bytes))
    ]


def _proposer(shared: proposals.Proposals, bundles: proposals.Bundles,
              depth_first: bool, group_bytes: np.ndarray) -> proposals.Proposer:

  def propose(pool_bytes: np.ndarray) -> np.ndarray:
    tasks = shared.tasks(bundles)
    order = tasks.bundles[native_scheduler.topological_order(
        tasks, depth_first)]
    first = np.full(tasks.num_bundles, len(order))
    np.minimum.at(first, order, np.arange(len(order)))
    by_bundle = native_scheduler.fill(np.argsort(first, kind='stable'),
                                      tasks.bundle_sums(group_bytes),
                                      tasks.allowed,
                                      shared.targets(bundles.halvings),
                                      shared.cluster.memory_pools, pool_bytes)
    return by_bundle[tasks.group_bundles]

  return propose

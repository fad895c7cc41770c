"""Small communication times within memory limits (m-SCT)."""

from __future__ import annotations

import functools
from typing import Sequence

import numpy as np

from gdp_grappler.placers.list_scheduling import bundling
from gdp_grappler.placers.list_scheduling import candidates
from gdp_grappler.placers.list_scheduling import favourite_children
from gdp_grappler.placers.list_scheduling import proposals

_config = functools.partial(proposals.config, favourites=True)
# Without favourite children, for graphs in which waiting does not pay.
_no_waiting = functools.partial(proposals.config, favourites=False)
# The method of Baechi, without and with the rule `Rules.thorough`.
_PUBLISHED = _config(ports=True, in_order=True)
_THOROUGH = _config(ports=True, in_order=True, thorough=True)
# The method of Hanen and Munier.
_NO_CONTENTION = _config(queues=False)
# Pairs of a configuration and a number or None; the most useful pairs come
# first. None: devices wait for favourite children. A number: favourite children
# and their parents form bundles, and each bundle has one device. The largest
# work of such a bundle is the work per device, divided by this number
# (`bundling.co_place_pairs`).
_CONFIGS = (
    (_config(grain=1., local_first=True), None),
    (_config(grain=1., transfer_grain=1., ports=True, in_order=True), None),
    (_config(grain=1., local_first=True), 16),
    (_config(grain=1., transfer_grain=1., local_first=True), None),
    (_config(grain=1., ports=True, in_order=True, local_first=True), None),
    (_no_waiting(parts=4, ports=True, in_order=True), None),
    (_PUBLISHED, None),
    (_config(parts=4, ports=True, in_order=True), None),
    (_config(parts=4, ports=True, local_first=True), None),
    (_config(grain=1., transfer_grain=10., ports=True, local_first=True), None),
    (_config(grain=1., transfer_grain=1., ports=True, in_order=True,
             local_first=True), None),
    (_config(grain=1., queues=False), None),
    (_config(grain=1., transfer_grain=.1, local_first=True), None),
    (_config(grain=1., transfer_grain=.1, ports=True, in_order=True), None),
    (_config(grain=1., ports=True, local_first=True), None),
    (_config(grain=1., ports=True, local_first=True), 16),
    (_config(grain=1., local_first=True), 4),
    (_NO_CONTENTION, None),
    (_config(ports=True, local_first=True), None),
    (_config(in_order=True), None),
    (_config(grain=1.), None),
    (_config(grain=1., local_first=True), 1),
    (_config(local_first=True), None),
    (_config(local_first=True), 4),
    (_config(parts=2), None),
    (_config(grain=1., halvings=1, local_first=True), None),
    (_config(grain=1., halvings=1, local_first=True), 4),
    (_config(grain=1., halvings=2, ports=True, local_first=True), None),
    (_config(grain=1., every_device=True, earliest_finish=True,
             local_first=True), None),
    (_config(grain=4., local_first=True), None),
    (_no_waiting(grain=1., local_first=True), None),
    (_no_waiting(ports=True, in_order=True), None),
)
# Number of configurations for a large graph (`Proposals.large`).
_NUM_FOR_LARGE = 6
# Number of tasks of one linear program. HiGHS solves it in a few seconds.
_WINDOW = 4000
# The same for a graph with more than `_MOST_OPS` ops. Smaller programs take
# less time per task, and their result is hardly worse.
_SMALL_WINDOW = 2000
# Largest number of ops of a graph whose linear programs have `_WINDOW` tasks.
_MOST_OPS = 10_000


class MSctPlacer(candidates.ListSchedulingPlacer):
  """List scheduling in which devices wait for favourite children (m-SCT).

  The algorithm is SCT of Hanen and Munier, "An approximation algorithm for
  scheduling dependent tasks on m processors with small communication delays",
  ETFA 1995, with the memory limits of Jeon et al., "Baechi: fast device
  placement of machine learning graphs", SoCC 2020, section 3.2. It extends ETF
  (`m_etf`). After an op, its device is reserved for the favourite child of the
  op. The reservation ends when the child could start on another device, too.
  Until then the device takes only the child, or a task that could start on any
  device. The papers find favourite children by a linear program. This placer
  finds them by a matching. This takes much less time, and the longest path
  does not get longer (`favourite_children`).

  The placer makes several proposals and keeps the one with the best price. The
  proposals differ in:

  * transfers: one at a time per device (Baechi), all at once (Hanen and
    Munier), or queues per link, as in the simulator;
  * the order of tasks that are equally good: topological or by upward rank;
  * fusion: ops whose transfers take longer than the ops form one task, before
    favourite children are chosen;
  * favourite children: all, those of every round of the matching, or none;
  * co-placement: a favourite child may share the device of its parent, up to a
    fair share of the work, and ops that share large tensors may share a device;
  * devices: all accelerators, half, a quarter or one of them. A CPU gets only
    ops that no accelerator can have, except in one configuration.

  If accelerators differ, the op that can start first gets the device on which
  it ends first. Large graphs get fewer proposals.

  Attributes:
    published: Whether to make only Baechi's proposal, with the linear program
      solved by HiGHS.
  """

  def _proposers(self,
                 shared: proposals.Proposals) -> Sequence[proposals.Proposer]:
    configs = _CONFIGS[:_NUM_FOR_LARGE] if shared.large else _CONFIGS
    if self.published:
      configs = ((_THOROUGH, None),)
    scheduled = [
        _proposer(shared, _suited(shared, config), per_device, row)
        for config, per_device in configs
        for row in (self._favourites(shared, config.bundles) if config.rules.
                    favourites else (None,))
    ]
    return scheduled if self.published else [shared.alone, *scheduled]

  def _favourites(self, shared: proposals.Proposals,
                  bundles: proposals.Bundles) -> np.ndarray:
    """int32 [K, M], K choices of the favourite child of each task, or -1."""
    if not self.published:
      rows = shared.favourites(bundles)
      return rows[:1] if (rows[0] == rows[1]).all() else rows
    tasks = shared.tasks(bundles)
    small = shared.graph.num_ops <= _MOST_OPS
    return favourite_children.solve(tasks, bundling.work_s(tasks), shared.link,
                                    _WINDOW if small else _SMALL_WINDOW)[None]


def _suited(shared: proposals.Proposals,
            config: proposals.ScheduleConfig) -> proposals.ScheduleConfig:
  """See `Proposals.suited`; published configurations stay as they are."""
  if config.rules.thorough or config in (_PUBLISHED, _NO_CONTENTION):
    return config
  return shared.suited(config)


def _proposer(shared: proposals.Proposals, config: proposals.ScheduleConfig,
              per_device: int | None,
              favourites: np.ndarray | None) -> proposals.Proposer:
  """A proposer; `per_device` is the number beside the configuration."""
  if per_device is None:
    return shared.proposer(config, favourites)
  assert favourites is not None  # The rules of these configurations need them.
  parents = np.flatnonzero(favourites >= 0)
  pairs = np.stack([parents, favourites[parents]], axis=1)
  parts = per_device * len(shared.targets(config.bundles.halvings))
  return lambda pool_bytes: shared.schedule(
      bundling.co_place_pairs(shared.tasks(config.bundles), pairs, parts),
      config.rules, pool_bytes, favourites)

"""Heterogeneous earliest finish time (HEFT)."""

from __future__ import annotations

import functools
from typing import Sequence

from gdp_grappler.placers.list_scheduling import candidates
from gdp_grappler.placers.list_scheduling import proposals

_config = functools.partial(proposals.config, insert=True)
_CONFIGS = (
    _config(every_device=True, queues=False),
    _config(grain=1.),
    _config(grain=1., parts=4),
    _config(grain=1., transfer_grain=.1),
    _config(grain=1., queues=False),
    _config(grain=1., every_device=True),
    _config(),
    _config(parts=2),
    _config(grain=1., transfer_grain=1.),
    _config(queues=False),
    _config(parts=1, queues=False),
    _config(grain=1., halvings=1),
    _config(grain=1., halvings=2),
    _config(grain=16., parts=4),
)
# Number of configurations for a large graph (`Proposals.large`).
_NUM_FOR_LARGE = 5


class HeftPlacer(candidates.ListSchedulingPlacer):
  """Schedules ops by upward rank, each where it ends first (HEFT).

  The algorithm is HEFT of Topcuoglu, Hariri and Wu, "Performance-effective and
  low-complexity task scheduling for heterogeneous computing", IEEE TPDS 13(3),
  2002. Ranks are those of equation 4 with mean costs. An op goes into the gap
  of a device's schedule in which it ends first (section 4). HEFT has no memory
  limits; here a device without room for an op cannot get the op.

  The placer makes several proposals and keeps the one with the best price. One
  proposal is HEFT as published, on all devices. The others differ in:

  * transfers: transfers may queue for their link;
  * fusion: ops whose transfers take longer than the ops form one task;
  * co-placement: ops that share large tensors share a device;
  * devices: all accelerators, half or a quarter of them. A CPU gets only ops
    that no accelerator can have, except in one more proposal.

  Ops of one group share a device. The placer chooses this device when it
  schedules the first op of the group, by the time of all ops of the group.
  """

  def _proposers(self,
                 shared: proposals.Proposals) -> Sequence[proposals.Proposer]:
    configs = _CONFIGS[:_NUM_FOR_LARGE] if shared.large else _CONFIGS
    return [shared.proposer(config) for config in configs]

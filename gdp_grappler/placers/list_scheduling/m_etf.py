"""Earliest task first within memory limits (m-ETF)."""

from __future__ import annotations

from typing import Sequence

from gdp_grappler.placers.list_scheduling import candidates
from gdp_grappler.placers.list_scheduling import proposals

_config = proposals.config
# The method of Baechi, without and with the rule `Rules.thorough`.
_PUBLISHED = _config(ports=True, in_order=True)
_THOROUGH = _config(ports=True, in_order=True, thorough=True)
# The method of Hwang et al.
_NO_CONTENTION = _config(queues=False)
# The most useful configurations come first, as measured on training graphs and
# on random layered graphs.
_CONFIGS = (
    _config(grain=1., local_first=True),
    _config(grain=1., transfer_grain=1., in_order=True),
    _config(parts=4, ports=True, in_order=True),
    _config(grain=1., halvings=1, ports=True, local_first=True),
    _PUBLISHED,
    _config(parts=4, ports=True, local_first=True),
    _config(ports=True, in_order=True, local_first=True),
    _config(parts=4, ports=True),
    _config(grain=1., halvings=2, ports=True, local_first=True),
    _config(grain=1., transfer_grain=1., ports=True, in_order=True,
            local_first=True),
    _config(grain=1., transfer_grain=1., ports=True, local_first=True),
    _config(grain=1., transfer_grain=10., ports=True, local_first=True),
    _config(grain=16., parts=1, halvings=1, ports=True),
    _config(grain=1., ports=True),
    _config(local_first=True),
    _config(grain=1., in_order=True, local_first=True),
    _config(grain=1., transfer_grain=.1, in_order=True),
    _NO_CONTENTION,
    _config(grain=1., halvings=1, local_first=True),
    _config(grain=1., transfer_grain=.1, local_first=True),
    _config(parts=2),
    _config(grain=1., transfer_grain=1., local_first=True),
    _config(grain=1., every_device=True, earliest_finish=True,
            local_first=True),
    _config(grain=1., halvings=2, local_first=True),
    _config(grain=1., queues=False, local_first=True),
    _config(grain=1.),
    _config(grain=4., local_first=True),
    _config(grain=16.),
    _config(grain=16., parts=1, local_first=True),
    _config(parts=2, halvings=1),
    _config(grain=16., parts=4),
)
# Number of configurations for a large graph (`Proposals.large`).
_NUM_FOR_LARGE = 6


class MEtfPlacer(candidates.ListSchedulingPlacer):
  """Earliest task first: the ready op that can start first is next (m-ETF).

  The algorithm is ETF of Hwang, Chow, Anger and Lee, "Scheduling precedence
  graphs in systems with interprocessor communication times", SIAM J. Comput.
  18(2), 1989, with the memory limits of Jeon et al., "Baechi: fast device
  placement of machine learning graphs", SoCC 2020, section 3.2. The op goes to
  the device on which it can start first. A device without room for an op cannot
  get the op.

  The placer makes several proposals and keeps the one with the best price. The
  proposals differ in:

  * transfers: one at a time per device (Baechi), all at once (Hwang et al.), or
    queues per link, as in the simulator;
  * fusion and co-placement (Baechi, section 3.1): ops whose transfers take
    longer than the ops form one task; ops that share large tensors share a
    device;
  * the choice among ops that can start at the same time: the first in
    topological order, the op with the highest upward rank, or the op with the
    least data to fetch;
  * devices: all accelerators, half, a quarter or one of them. A CPU gets only
    ops that no accelerator can have, except in one proposal.

  If accelerators differ, the op that can start first gets the device on which
  it ends first.

  Large graphs get fewer proposals, because time grows with ops times devices.
  In very large graphs, the scheduler limits how often it estimates the start of
  waiting tasks again (`kManyTasks` in earliest_task_first.h). Without a limit,
  its time grows with the square of the number of tasks. The limit may change
  placements.

  Attributes:
    published: Whether to make only Baechi's proposal.
  """

  def _proposers(self,
                 shared: proposals.Proposals) -> Sequence[proposals.Proposer]:
    if self.published:
      return [shared.proposer(_THOROUGH)]
    return [
        shared.alone, *(shared.proposer(config) for config in _configs(shared))
    ]


def _configs(shared: proposals.Proposals) -> list[proposals.ScheduleConfig]:
  """The configurations for a problem."""
  result = list(_CONFIGS[:_NUM_FOR_LARGE] if shared.large else _CONFIGS)
  if not shared.equal_devices:
    result = [_PUBLISHED, _NO_CONTENTION, *map(shared.suited, result)]
  return result

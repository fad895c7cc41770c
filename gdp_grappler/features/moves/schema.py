"""Names of the features of moves, in their order.

A move takes groups from the devices of an incumbent placement to other devices.
No feature contains the number of a device. The source is the device that loses
the most work, and the target the device that gains the most. Features in
seconds are shares of the incumbent's step. Features that span orders of
magnitude are on a logarithmic scale, which is 0 for a tiny share of the step
and 1 for the whole step, with a sign if they may be negative.
"""

from __future__ import annotations

from typing import Sequence

# In the order of `Feature` in move_candidates.h.
NATIVE = (
    # Size of the move.
    'groups',
    'work_share',
    'work_s',
    'work_change_s',
    'bytes_share',
    'targets',
    'sources',
    'backflow',
    # Work of devices before and after the move.
    'source_busy',
    'target_busy',
    'source_busy_after',
    'target_busy_after',
    'highest_busy',
    'highest_busy_change',
    'mean_busy',
    'deviation_change',
    'source_critical',
    'target_critical',
    'target_empty',
    'source_emptied',
    # Transfers between devices.
    'sent_before_s',
    'sent_after_s',
    'sent_change_s',
    'messages_change',
    'critical_sent_before_s',
    'critical_sent_after_s',
    'critical_sent_change_s',
    'source_affinity',
    'target_affinity',
    'wire_busy',
    'wire_busy_change',
    # Times at which the moved groups run, and the ops that depend on them.
    'critical_work_s',
    'critical_share',
    'waiting_s',
    'longest_wait_s',
    'least_slack_s',
    'slack_s',
    'span',
    'middle',
    'target_busy_then',
    'source_busy_then',
    'crowding_s',
    'late_inputs_s',
    'late_outputs_s',
    'delayed_s',
    'hastened_s',
    'retimed_change_s',
    # Memories.
    'source_full',
    'target_full',
    'target_full_after',
    'overflow',
    'overflow_after',
    # The machine and the graph.
    'slower',
    'devices_used',
    'devices',
    'graph_groups',
)


def names(kinds: Sequence[str]) -> tuple[str, ...]:
  """Returns the native features and one feature for each kind of move, [F]."""
  return (*NATIVE, *(f'kind:{kind}' for kind in kinds))

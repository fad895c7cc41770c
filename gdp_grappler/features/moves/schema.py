"""Names of the features of moves, in their order.

A move takes groups from the devices where an incumbent has them to others. No
feature tells the number of a device: source and target are the devices that
lose and gain the most work. What is in seconds is a share of the incumbent's
step; what spans orders of magnitude is on a logarithmic scale from 0 to 1, with
a sign where it may be negative.
"""

from __future__ import annotations

from typing import Sequence

# In the order of `Feature` in move_candidates.h.
NATIVE = (
    # How much moves.
    'groups',
    'work_share',
    'work_s',
    'work_change_s',
    'bytes_share',
    'targets',
    'sources',
    'backflow',
    # Work of devices before and after.
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
    # What is sent between devices.
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
    # When what moves runs, and what hangs on it.
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
    # Memories.
    'source_full',
    'target_full',
    'target_full_after',
    'overflow',
    'overflow_after',
    # Machine and graph.
    'slower',
    'devices_used',
    'devices',
    'graph_groups',
)


def names(kinds: Sequence[str]) -> tuple[str, ...]:
  """[F], the native features and one for each kind of move."""
  return (*NATIVE, *(f'kind:{kind}' for kind in kinds))

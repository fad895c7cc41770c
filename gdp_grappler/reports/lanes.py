"""Draws a simulated step as lanes of pixels, one per device and per sender.

Time is cut into as many columns as the picture has pixels, so that 80,000 ops
are as readable as 80. A column of a lane shows how busy the device was, and the
family of ops that took most of the time.
"""

from __future__ import annotations

import dataclasses
from typing import Iterator

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation.costs import roofline
from gdp_grappler.evaluation.simulation import schedule as schedule_lib
from gdp_grappler.graph import op_graph
from gdp_grappler.reports import colors

_MOST_KINDS = 6  # Kinds of ops with a color of their own; a legend stays short.
# The colour of a column in which nothing happens.
_IDLE = np.array([242, 242, 242])


@dataclasses.dataclass(frozen=True, eq=False)
class Lane:
  """A row of a chart of C columns.

  Attributes:
    label: Name of the device or the sender, and its busy share of the step.
    busy: float64 [C], busy share of each column, from 0 to 1.
    kinds: int [C], family of the ops that ran, an index into `Lanes.names`.
  """

  label: str
  busy: np.ndarray
  kinds: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class Lanes:
  """All lanes of a step.

  Attributes:
    rows: Lanes, from top to bottom.
    names: [K], families of ops, maybe 'other' for the rest, and 'transfer'.
    palette: [K], colours of the families.
  """

  rows: tuple[Lane, ...]
  names: tuple[str, ...]
  palette: tuple[str, ...]

  def pixels(self, row: int) -> np.ndarray:
    """Returns a lane, uint8 [C, 3]: colours of families, pale if less busy."""
    lane = self.rows[row]
    rgb = np.array([_rgb(color) for color in self.palette])[lane.kinds]
    # A column with a short op is pale, but visible.
    strength = np.where(lane.busy > 1e-9, .25 + .75 * lane.busy, 0.)[:, None]
    return np.round(strength * rgb + (1 - strength) * _IDLE).astype(np.uint8)


def lanes(graph: op_graph.OpGraph, placement: placement_lib.Placement,
          schedule: schedule_lib.Schedule, columns: int) -> Lanes:
  """Returns the lanes of devices and senders.

  Args:
    graph: N ops.
    placement: Placement of these ops.
    schedule: Schedule of this placement.
    columns: C, number of parts into which the step is cut.
  """
  kinds, names, palette = _kinds(graph, schedule)
  rows = (*_device_lanes(placement, schedule, kinds, len(names), columns),
          *_transfer_lanes(placement.cluster, schedule, len(names), columns))
  return Lanes(rows, (*names, 'transfer'), (*palette, colors.TRANSFER))


def _rgb(color: str) -> tuple[int, ...]:
  return tuple(bytes.fromhex(color.removeprefix('#')))


def _kinds(
    graph: op_graph.OpGraph,
    schedule: schedule_lib.Schedule) -> tuple[np.ndarray, list[str], list[str]]:
  """Returns the family of each op, int [N], and names and colours of families.

  Families that take the most time have names. The rest is 'other'.
  """
  families = [roofline.family(t) for t in graph.op_types]
  known, index = np.unique(families, return_inverse=True)
  seconds = np.bincount(index, schedule.end_s - schedule.start_s, len(known))
  top = np.argsort(-seconds, kind='stable')[:_MOST_KINDS]
  number = np.full(len(known), len(top))
  number[top] = np.arange(len(top))
  names, palette = [], []
  for family in known[top].tolist():
    visit = family == roofline.VISIT
    names.append('no kernel' if visit else family.replace('_', ' '))
    palette.append(colors.NO_KERNEL if visit else colors.FAMILIES[family])
  if len(known) > len(top):
    names.append('other')
    palette.append(colors.OTHER)
  return number[index], names, palette


def _device_lanes(placement: placement_lib.Placement,
                  schedule: schedule_lib.Schedule, kinds: np.ndarray,
                  num_kinds: int, columns: int) -> Iterator[Lane]:
  for number, device in enumerate(placement.cluster.devices):
    ops = np.flatnonzero(schedule.devices == number)
    start_s, end_s = schedule.start_s[ops], schedule.end_s[ops]
    shares = _shares(start_s, end_s, kinds[ops], num_kinds,
                     schedule.step_time_s, columns)
    room_s = schedule.step_time_s * device.slots
    share = (end_s - start_s).sum() / room_s if room_s else 0.
    # A host has many slots, and the share of one slot would be too pale to see.
    # So a device counts as busy if a single slot is.
    yield Lane(f'{placement.cluster.device_labels[number]}  {share:.0%}',
               np.minimum(shares.sum(axis=0), 1.), shares.argmax(axis=0))


def _transfer_lanes(cluster: cluster_lib.Cluster,
                    schedule: schedule_lib.Schedule, kind: int,
                    columns: int) -> Iterator[Lane]:
  """Yields a lane for each device that sends."""
  data = schedule.transfer_tensors >= 0
  for number, label in enumerate(cluster.device_labels):
    sent = np.flatnonzero(data & (schedule.transfer_sources == number))
    if not len(sent):
      continue
    [share] = _shares(schedule.transfer_start_s[sent],
                      schedule.transfer_end_s[sent], np.zeros(len(sent), int),
                      1, schedule.step_time_s, columns)
    busy = np.minimum(share, 1.)
    yield Lane(f'from {label}  {busy.mean():.0%}', busy, np.full(columns, kind))


def _shares(start_s: np.ndarray, end_s: np.ndarray, kinds: np.ndarray,
            num_kinds: int, step_s: float, columns: int) -> np.ndarray:
  """Returns float64 [num_kinds, C], how much of each column intervals cover.

  Each interval changes the covered share of a column only at its two ends. So
  differences are added at the ends, and their cumulative sum is the share.
  """
  result = np.zeros((num_kinds, columns + 2))
  if not step_s:
    return result[:, :columns]
  for sign, moment in ((1., start_s), (-1., end_s)):
    at = np.clip(moment / step_s, 0., 1.) * columns
    column = np.minimum(at.astype(int), columns - 1)
    part = at - column
    # An interval from `at` on covers 1 - part of a column, and all later ones.
    np.add.at(result, (kinds, column), sign * (1. - part))
    np.add.at(result, (kinds, column + 1), sign * part)
  return result.cumsum(axis=1)[:, :columns].clip(0.)

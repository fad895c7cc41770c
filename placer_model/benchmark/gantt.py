"""One simulated step as a chart: a lane per device and per sender.

Time is cut into as many columns as the picture has pixels, so that 80,000 ops
are as readable as 80: a column of a lane shows how busy it was, and what with.
"""

from __future__ import annotations

import pathlib
from typing import Any, Iterator, Sequence

from matplotlib import colors
from matplotlib import figure as figure_lib
from matplotlib import patches
import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation.costs import roofline
from gdp_grappler.evaluation.simulation import schedule as schedule_lib
from gdp_grappler.graph import op_graph
from gdp_grappler.reports import colors as family_colors
from placer_model.benchmark import pictures

_COLUMNS = 1400
_MOST_KINDS = 6


def draw(path: pathlib.Path, title: str, graph: op_graph.OpGraph,
         placement: placement_lib.Placement,
         schedule: schedule_lib.Schedule) -> None:
  """Writes the chart as a PNG.

  Args:
    path: Where.
    title: Over it.
    graph: N ops.
    placement: Of these ops.
    schedule: Of this placement.
  """
  kinds, names, palette = _kinds(graph, schedule)
  lanes = [
      *_device_lanes(placement, schedule, kinds, len(names)),
      *_transfer_lanes(placement.cluster, schedule)
  ]
  figure = figure_lib.Figure((14.5, 1.7 + .5 * len(lanes)),
                             layout='constrained')
  axes = figure.subplots()
  palette.append(family_colors.TRANSFER)
  for row, (_, busy, kind) in enumerate(lanes):
    _draw_lane(axes, row, busy, kind, palette, schedule.step_time_s)
  axes.set_yticks(range(len(lanes)), [label for label, _, _ in lanes],
                  fontsize=8)
  axes.set(xlim=(0, schedule.step_time_s * 1e3), ylim=(len(lanes) - .5, -.5),
           xlabel='ms since the start of the step')
  axes.set_title(title, fontsize=10)
  for row in range(len(lanes) - 1):
    axes.axhline(row + .5, color='white', linewidth=2)
  figure.legend(
      handles=[
          patches.Patch(color=color, label=label)
          for color, label in zip(palette, [*names, 'transfer'])
      ], loc='outside lower center', ncols=len(palette), fontsize=8,
      title='darker: busier; percentages: busy share of the step',
      title_fontsize=8)
  pictures.save(path, figure)


def _kinds(
    graph: op_graph.OpGraph,
    schedule: schedule_lib.Schedule) -> tuple[np.ndarray, list[str], list[str]]:
  """A number [N] for each op's family, and the families' names and colours.

  Those that take the most time have names; the rest is 'other'.
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
    palette.append(
        family_colors.NO_KERNEL if visit else family_colors.FAMILIES[family])
  if len(known) > len(top):
    names.append('other')
    palette.append(family_colors.OTHER)
  return number[index], names, palette


def _device_lanes(
    placement: placement_lib.Placement, schedule: schedule_lib.Schedule,
    kinds: np.ndarray,
    num_kinds: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
  """Label with the busy share, how busy [C] and with what [C]."""
  for number, device in enumerate(placement.cluster.devices):
    ops = np.flatnonzero(placement.devices == number)
    seconds = _seconds_per_column(schedule.start_s[ops], schedule.end_s[ops],
                                  kinds[ops], num_kinds, schedule.step_time_s)
    total = seconds.sum(axis=0)
    share = (schedule.end_s[ops] - schedule.start_s[ops]).sum() / (
        schedule.step_time_s * device.slots)
    # A host runs many ops at a time; two of 20 slots would be invisible.
    busy = np.minimum(total, 1.)
    yield (f'{placement.cluster.device_labels[number]}  {share:.0%}', busy,
           seconds.argmax(axis=0))


def _transfer_lanes(
    cluster: cluster_lib.Cluster, schedule: schedule_lib.Schedule
) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
  """A lane for each device that sends."""
  data = schedule.transfer_tensors >= 0
  for number, label in enumerate(cluster.device_labels):
    sent = np.flatnonzero(data & (schedule.transfer_sources == number))
    if not len(sent):
      continue
    start, end = (schedule.transfer_start_s[sent],
                  schedule.transfer_end_s[sent])
    busy = _seconds_per_column(start, end, np.zeros(len(sent), int), 1,
                               schedule.step_time_s)[0]
    yield (f'from {label}  {np.minimum(busy, 1.).mean():.0%}',
           np.minimum(busy, 1.), np.full(_COLUMNS, -1))


def _seconds_per_column(start_s: np.ndarray, end_s: np.ndarray,
                        kinds: np.ndarray, num_kinds: int,
                        step_s: float) -> np.ndarray:
  """float64 [num_kinds, C], share of each column that intervals cover.

  An interval adds to all columns between its ends: the derivative of what it
  has covered so far is piecewise constant, so differences at its ends do.
  """
  result = np.zeros((num_kinds, _COLUMNS + 2))
  if not step_s:
    return result[:, :_COLUMNS]
  for sign, moment in ((1., start_s), (-1., end_s)):
    at = np.clip(moment / step_s, 0., 1.) * _COLUMNS
    column = np.minimum(at.astype(int), _COLUMNS - 1)
    part = at - column
    # Covered from `at` on: 1 - part of its own column, all of the later ones.
    np.add.at(result, (kinds, column), sign * (1. - part))
    np.add.at(result, (kinds, column + 1), sign * part)
  return result.cumsum(axis=1)[:, :_COLUMNS].clip(0.)


def _draw_lane(axes: Any, row: int, busy: np.ndarray, kind: np.ndarray,
               palette: Sequence[str], step_s: float) -> None:
  """One row of pixels: colour by kind, paler where less busy."""
  rgb = np.array([colors.to_rgb(c) for c in palette])[kind]
  # Anything that happens can be seen.
  strength = np.where(busy > 1e-9, .25 + .75 * busy, 0.)[:, None]
  pixels = strength * rgb + (1 - strength) * np.array([.95, .95, .95])
  axes.imshow(pixels[None], aspect='auto', interpolation='nearest',
              extent=(0, step_s * 1e3, row + .5, row - .5))

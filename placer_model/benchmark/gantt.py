"""Chart of a simulated step, with a lane per device and per sender."""

from __future__ import annotations

import pathlib

from matplotlib import figure as figure_lib
from matplotlib import patches

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation.simulation import schedule as schedule_lib
from gdp_grappler.graph import op_graph
from gdp_grappler.reports import lanes as lanes_lib
from placer_model.benchmark import pictures

_COLUMNS = 1400  # Width of the chart in pixels.


def draw(path: pathlib.Path, title: str, graph: op_graph.OpGraph,
         placement: placement_lib.Placement,
         schedule: schedule_lib.Schedule) -> None:
  """Writes the chart as a PNG.

  Args:
    path: File of the picture.
    title: Title of the chart.
    graph: Graph of N ops.
    placement: Placement of these ops.
    schedule: Schedule of this placement.
  """
  lanes = lanes_lib.lanes(graph, placement, schedule, _COLUMNS)
  count = len(lanes.rows)
  figure = figure_lib.Figure((14.5, 1.7 + .5 * count), layout='constrained')
  axes = figure.subplots()
  for row in range(count):
    axes.imshow(
        lanes.pixels(row)[None], aspect='auto', interpolation='nearest',
        extent=(0, schedule.step_time_s * 1e3, row + .5, row - .5))
  axes.set_yticks(range(count), [lane.label for lane in lanes.rows], fontsize=8)
  axes.set(xlim=(0, schedule.step_time_s * 1e3), ylim=(count - .5, -.5),
           xlabel='ms since the start of the step')
  axes.set_title(title, fontsize=10)
  for row in range(count - 1):
    axes.axhline(row + .5, color='white', linewidth=2)
  figure.legend(
      handles=[
          patches.Patch(color=color, label=label)
          for color, label in zip(lanes.palette, lanes.names)
      ], loc='outside lower center', ncols=len(lanes.palette), fontsize=8,
      title='darker: busier; percentages: busy share of the step',
      title_fontsize=8)
  pictures.save(path, figure)

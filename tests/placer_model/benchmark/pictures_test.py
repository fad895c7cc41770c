"""Pictures show what the results say."""

import numpy as np
import pytest

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.placers import placer_table
from helpers import bench_results
from helpers import clusters
from helpers import graphs
from placer_model.benchmark import gantt
from placer_model.benchmark import pictures

_CELL = bench_results.cell


def _texts(figure):
  return [text.get_text() for text in figure.axes[0].texts]


def test_bars_are_normalised_to_human():
  task = bench_results.task(human_expert=_CELL(2.), metis=_CELL(1.),
                            scotch=_CELL(None), random=_CELL(20.))
  figure = pictures.bars([task], 'simulated')
  assert _texts(figure) == ['1.00', '0.50', 'OOM +3.00 GiB', '10.00']
  widths = [bar.get_width() for bar in figure.axes[0].patches]
  assert widths == [1., .5, pictures._FARTHEST]
  assert '1 = human: 2 s' in figure.axes[0].get_title()


def test_bars_that_are_too_long_are_broken():
  task = bench_results.task(human_expert=_CELL(2.), random=_CELL(20.))
  figure = pictures.bars([task], 'simulated')
  gaps = [line for line in figure.axes[0].lines if line.get_color() == 'white']
  assert len(gaps) == 2
  assert all(max(gap.get_xdata()) < pictures._FARTHEST for gap in gaps)


def test_no_line_strikes_a_number_through():
  task = bench_results.task(human_expert=_CELL(2.), metis=_CELL(1.9),
                            scotch=_CELL(None))
  axes = pictures.bars([task], 'simulated').axes[0]
  highest = max(line.get_zorder() for line in axes.lines)
  for text in axes.texts:
    assert text.get_zorder() > highest
    assert text.get_bbox_patch().get_facecolor()[:3] == (1, 1, 1)


def test_no_two_placers_share_a_colour():
  table = placer_table.table().values()
  assert len({entry.color for entry in table}) == len(table)


def test_bars_without_a_human_are_normalised_to_the_best():
  figure = pictures.bars(
      [bench_results.task(metis=_CELL(2.), random=_CELL(3.))], 'simulated')
  assert _texts(figure) == ['1.00', '1.50']
  assert 'no human, metis' in figure.axes[0].get_title()


def test_nothing_to_draw():
  tasks = [bench_results.task(metis=bench_results.failure())]
  assert pictures.bars(tasks, 'simulated') is None
  assert pictures.curves(tasks, 0, 'evaluations', 'simulated') is None


@pytest.mark.parametrize('axis, along', [(0, [1, 40, 50]), (1, [.5, 9., 10.])])
def test_curves_go_on_to_the_end_of_the_search(axis, along):
  task = bench_results.task(hdp=_CELL(1.2, curve=[[1, .5, 3.], [40, 9., 1.2]],
                                      evaluations=50, seconds=10.))
  figure = pictures.curves([task], axis, 'x', 'simulated')
  [line] = figure.axes[0].lines
  np.testing.assert_allclose(line.get_xdata(), along)
  np.testing.assert_allclose(line.get_ydata(), [3., 1.2, 1.2])


def test_a_chart_is_written(tmp_path):
  graph = graphs.random_graph(1, 400)
  cluster = clusters.make_cluster(2, latency_s=1e-3, bandwidth_bytes_per_s=1e9)
  placement = placement_lib.from_groups(graph,
                                        np.arange(graph.num_groups) % 3,
                                        cluster)
  gantt.draw(tmp_path / 'a' / 'chart.png', 'title', graph, placement,
             simulator.Simulator(cluster).schedule(graph, placement))
  assert (tmp_path / 'a' / 'chart.png').read_bytes().startswith(b'\x89PNG')

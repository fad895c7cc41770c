"""Lanes of a step."""

import numpy as np
import pytest

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.reports import colors
from gdp_grappler.reports import lanes as lanes_lib
from helpers import clusters
from helpers import graphs

_COLUMNS = 1400


def test_shares_of_columns():
  # 0 to 1/2 of the step of kind 0, the last tenth of a column of kind 1.
  width = 1 / _COLUMNS
  shares = lanes_lib._shares(np.array([0., 1 - .1 * width]), np.array([.5, 1.]),
                             np.array([0, 1]), 2, 1., _COLUMNS)
  np.testing.assert_allclose(shares[0, :_COLUMNS // 2], 1.)
  np.testing.assert_allclose(shares[0, _COLUMNS // 2:], 0., atol=1e-9)
  np.testing.assert_allclose(shares[1, -1], .1)
  np.testing.assert_allclose(shares.sum(axis=1) * width, [.5, .1 * width])


def test_lanes_hold_all_seconds():
  graph = graphs.random_graph(1, 400)
  cluster = clusters.make_cluster(2, latency_s=1e-3, bandwidth_bytes_per_s=1e9)
  placement = placement_lib.from_groups(graph,
                                        np.arange(graph.num_groups) % 3,
                                        cluster)
  schedule = simulator.Simulator(cluster).schedule(graph, placement)
  lanes = lanes_lib.lanes(graph, placement, schedule, _COLUMNS)
  assert set(lanes.names) <= {'matmul', 'no kernel', 'transfer'}
  color = lanes.palette[lanes.names.index('matmul')]
  assert color == colors.FAMILIES['matmul']
  for number, lane in enumerate(lanes.rows[:3]):
    ops = placement.devices == number
    share = (schedule.end_s
             - schedule.start_s)[ops].sum() / (schedule.step_time_s)
    assert lane.busy.mean() == pytest.approx(share)
    assert lane.label == f'{cluster.device_labels[number]}  {share:.0%}'


def test_pixels_are_the_colour_of_the_kind_or_idle():
  graph = graphs.make_graph([(0, 1, 100)], 2)
  cluster = clusters.make_cluster(1)
  placement = placement_lib.Placement([1, 1], cluster)
  schedule = simulator.Simulator(cluster, clusters.FixedCosts(1.)).schedule(
      graph, placement)
  lanes = lanes_lib.lanes(graph, placement, schedule, 10)
  matmul = tuple(bytes.fromhex(colors.FAMILIES['matmul'][1:]))
  assert {tuple(pixel) for pixel in lanes.pixels(1).tolist()} == {matmul}
  assert {tuple(pixel) for pixel in lanes.pixels(0).tolist()} == {(242, 242,
                                                                   242)}

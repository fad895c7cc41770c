"""Kernels of several streams of one card, by hand."""

import dataclasses

import numpy as np
import pytest

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation.simulation import simulator
from helpers import clusters
from helpers import graphs


def _cut(parts=2):
  """Logical GPUs of one card, whose driver takes no time."""
  cluster = clusters.make_cluster(parts)
  return dataclasses.replace(
      cluster, devices=tuple(
          dataclasses.replace(d, launch=cluster_lib.ASYNCHRONOUS, card='card'
                             ) if d.type == 'GPU' else d
          for d in cluster.devices))


def _schedule(seconds, shares, devices, parts=2):
  """Of ops that wait for nothing."""
  graph = graphs.make_graph(num_ops=len(devices))
  cluster = _cut(parts)
  costs = clusters.FixedCosts(seconds, card=np.array(shares)[:, None])
  return simulator.Simulator(cluster, costs).schedule(
      graph, placement_lib.Placement(np.array(devices, np.int32), cluster))


def test_small_kernels_run_side_by_side():
  assert _schedule([3., 2.], [.5, .5], [1, 2]).step_time_s == 3


def test_kernels_that_fill_the_card_run_one_after_the_other():
  found = _schedule([3., 2.], [1., 1.], [1, 2])
  assert found.start_s.tolist() == [0, 3]
  assert found.end_s.tolist() == [3, 5]


def test_the_later_one_gets_what_is_left():
  # A quarter of the card for 4 s, half of what it could use: 2 s are done. The
  # other 2 take as long as ever.
  found = _schedule([4., 4.], [.75, .5], [1, 2])
  assert found.start_s.tolist() == [0, 0]
  assert found.end_s.tolist() == [4, 6]


def test_a_third_stream_fills_the_rest():
  # .3 + .3 leave .4 for 2 s, then .7, then all.
  found = _schedule([2., 4., 3.], [.3, .3, 1.], [1, 2, 3], parts=3)
  assert found.end_s.tolist() == pytest.approx([2, 4, 4.8])


def test_one_stream_is_as_ever():
  assert _schedule([3., 2.], [.5, .5], [1, 1]).step_time_s == 5


def test_a_share_that_is_none_is_refused():
  with pytest.raises(ValueError, match='above 0 and at most 1'):
    _schedule([1.], [1.5], [1])


def test_no_more_is_done_than_the_card_can():
  rng = np.random.default_rng(0)
  for _ in range(50):
    seconds, shares = rng.random(12), rng.uniform(.05, 1, 12)
    devices = rng.integers(1, 5, 12)
    found = _schedule(seconds, shares, devices, parts=4)
    alone = [seconds[devices == d].sum() for d in range(1, 5)]
    assert found.step_time_s >= max(max(alone), seconds @ shares) - 1e-9
    assert found.step_time_s <= seconds.sum() + 1e-9

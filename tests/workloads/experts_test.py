import itertools

import numpy as np
import pytest

from gdp_grappler.workloads import experts
from helpers import clusters
from helpers import graphs


def _place(rule, stages, cluster, seconds=None, **options):
  """Devices by stage, for one op per stage."""
  stages = np.array(stages)
  graph = graphs.make_graph(num_ops=len(stages))
  if seconds is None:
    seconds = np.ones((len(stages), cluster.num_devices))
  return rule(graph, stages, cluster, np.array(seconds, float),
              **options).tolist()


def test_single_device_is_the_fastest():
  cluster = clusters.make_cluster(2)
  seconds = [[.1, 2., 1.], [.1, 2., 1.], [.1, 1., 1.]]
  assert _place(experts.single_device, [0, 1, 2], cluster, seconds) == [2] * 3


@pytest.mark.parametrize('num_gpus, expected', [
    (1, [1, 1, 1, 1, 1]),
    (2, [1, 1, 2, 2, 2]),
    (3, [1, 2, 2, 3, 3]),
    (4, [1, 2, 3, 4, 4]),
    (5, [1, 2, 3, 4, 5]),
    (16, [1, 2, 3, 4, 5]),
])
def test_stages_on_devices_of_their_own_or_in_blocks(num_gpus, expected):
  cluster = clusters.make_cluster(num_gpus)
  assert _place(experts.stage_per_device, range(5), cluster) == expected


def test_stage_numbers_may_have_gaps():
  cluster = clusters.make_cluster(2)
  assert _place(experts.stage_per_device, [3, 7, 3], cluster) == [1, 2, 1]


@pytest.mark.parametrize(
    'num_gpus, expected',
    [
        (6, [1, 2, 3, 4, 5, 6]),  # All on their own.
        (5, [1, 2, 1, 2, 3, 4]),  # Layers of one height together.
        (4, [1, 2, 1, 2, 3, 4]),
        (3, [1, 2, 1, 2, 2, 2]),  # The rest with the highest.
        (2, [1, 2, 1, 2, 2, 2]),
        (1, [1, 1, 1, 1, 1, 1]),
    ])
def test_stages_are_put_together_where_devices_are_few(num_gpus, expected):
  cluster = clusters.make_cluster(num_gpus)
  joined = ((0, 1, 0, 1, 2, 3), (0, 1, 0, 1, 1, 1))
  assert _place(experts.stage_per_device, range(6), cluster,
                joined=joined) == expected


@pytest.mark.parametrize(
    'num_gpus, stages, seconds, expected',
    [
        (2, 6, [[3], [1], [1], [1], [1], [1]], [1, 1, 2, 2, 2, 2]),
        (2, 6, [1., 1., 2.], [1, 1, 1, 1, 2, 2]),  # The faster device has more.
        (4, 4, [[10], [1], [1], [1]], [1, 2, 3, 4])  # Beside a dear stage.
    ])
def test_equal_blocks(num_gpus, stages, seconds, expected):
  assert _place(experts.equal_blocks, range(stages),
                clusters.make_cluster(num_gpus),
                np.ones((stages, num_gpus + 1)) * seconds) == expected


def test_equal_blocks_are_the_best_of_all_divisions():
  random = np.random.default_rng(1)
  for _ in range(30):
    num_gpus, num_stages = random.integers(1, 5), random.integers(1, 8)
    cluster = clusters.make_cluster(int(num_gpus))
    seconds = random.random((num_stages, num_gpus + 1))
    found = np.array(
        _place(experts.equal_blocks, range(num_stages), cluster, seconds))
    assert (np.diff(found) >= 0).all()
    best = min(
        _price(np.array(d), seconds)
        for d in itertools.product(range(1, num_gpus + 1), repeat=num_stages)
        if list(d) == sorted(d))
    np.testing.assert_allclose(_price(found, seconds), best)


def _price(devices, seconds):
  """The dearest block, then the sum of squares."""
  blocks = np.bincount(devices, seconds[np.arange(len(devices)), devices])
  return round(float(blocks.max()), 12), float((blocks**2).sum())

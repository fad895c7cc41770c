import dataclasses

import numpy as np
import pytest

from gdp_grappler.cluster import shortage
from helpers import clusters
from helpers import graphs


def _cluster(*sizes):
  cluster = clusters.make_cluster(len(sizes) - 1)
  return dataclasses.replace(
      cluster, devices=tuple(
          dataclasses.replace(device, memory_bytes=int(size))
          for device, size in zip(cluster.devices, sizes)))


def _graph(param_bytes, groups=None, on_gpus=True):
  graph = graphs.chain(len(param_bytes), 1)
  allowed = np.ones((len(param_bytes), 2), bool)
  allowed[:, 0] = not on_gpus
  return graph.replace(
      param_bytes=np.array(param_bytes, np.int64), allowed_types=allowed,
      groups=np.array(groups or range(len(param_bytes)), np.int32))


def test_what_fits_is_not_refused():
  assert not shortage.is_certain(_graph([5, 5]), _cluster(1, 5, 5))
  # The host has room for what may be there.
  assert not shortage.is_certain(_graph([9, 9], on_gpus=False),
                                 _cluster(99, 5, 5))
  assert not shortage.is_certain(_graph([0, 0]), _cluster(1, 1))


def test_one_thing_that_no_memory_holds():
  said = shortage.is_certain(_graph([4 * 10**9, 8 * 10**9, 1], [0, 0, 1]),
                             _cluster(1, 11 * 10**9, 5 * 10**9))
  assert '4.0 GB, with its slots 12.0 GB must be in one memory' in said
  assert 'the largest that it may be in has 11.0 GB' in said
  assert 'Only tables are cut' in said and 'smaller batch' in said


def test_all_together_are_too_large():
  said = shortage.is_certain(_graph([6 * 10**6] * 5),
                             _cluster(10**9, 10**7, 10**7))
  assert 'hold 30 MB for good, and GPU:0 + GPU:1' in said
  assert 'have 20 MB' in said and said.count('6 MB') == 3


def test_rooms_are_those_of_cards_or_of_all_without_cards():
  assert shortage.rooms_bytes(_cluster(9, 5, 4)) == (5, 4)
  assert shortage.rooms_bytes(_cluster(9)) == (9,)


@pytest.mark.parametrize('seed', range(30))
def test_whatever_a_search_of_all_placements_fits_is_not_refused(seed):
  rng = np.random.default_rng(seed)
  sizes = rng.integers(1, 9, 5)
  room = rng.integers(4, 20, 2)
  fits = any((np.bincount(places, sizes, 2) <= room).all()
             for places in _all_places(5))
  said = shortage.is_certain(_graph(sizes), _cluster(1, *room))
  assert not (fits and said)


def _all_places(count):
  return (np.array([(code >> i) & 1 for i in range(count)])
          for code in range(2**count))


def test_the_best_placement_found_does_not_fit():
  said = shortage.of_placement(_graph([3 * 10**9, 10**9]),
                               _cluster(1, 4 * 10**9, 4 * 10**9),
                               [0, 5 * 10**9, 10**9])
  assert 'GPU:0 needs 5.0 GB of 4.0 GB' in said and 'GPU:1 needs' not in said
  assert '3.0 GB' in said


def test_a_memory_that_is_nearly_full_is_told():
  cluster = _cluster(100, 1000, 1000)
  assert not shortage.nearly(cluster, [0, 900, 0])
  assert 'GPU:0 ' in shortage.nearly(cluster, [0, 901, 0])
  assert not shortage.nearly(cluster, [0, 1001, 0])

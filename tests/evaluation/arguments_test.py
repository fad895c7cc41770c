"""Tests of gdp_grappler.evaluation.arguments."""

import numpy as np
import pytest

from gdp_grappler.evaluation import arguments
from helpers import graphs


def test_devices_out_of_range_stay_out_of_range():
  graph = graphs.chain(2)
  found = arguments.checked_devices(graph, np.array([[1 << 40, -(1 << 40)]]), 2)
  assert found.dtype == np.int32
  limits = np.iinfo(np.int32)
  assert found.tolist() == [[limits.max, limits.min]]


@pytest.mark.parametrize('devices, said', [
    (np.zeros(2, int), r'shape \[2\] where \[K, 2\] is needed'),
    (np.zeros((1, 3), int), r'shape \[1, 3\]'),
    (np.zeros((1, 2, 2), int), r'shape \[1, 2, 2\]'),
    (np.zeros((1, 2)), 'give integers'),
])
def test_devices_that_are_none(devices, said):
  with pytest.raises(ValueError, match=said):
    arguments.checked_devices(graphs.chain(2), devices, 2)


def test_priorities_of_one_placement_are_those_of_all():
  graph = graphs.chain(2)
  found = arguments.checked_priorities(graph, np.array([1, 2]), (3, 2))
  assert found.tolist() == [[1., 2.]] * 3 and found.flags.c_contiguous
  assert arguments.checked_priorities(graph, None, (3, 2)) is None


def test_priorities_that_are_none():
  graph = graphs.chain(2)
  for shape in ((2, 2, 2), (2, 3), (1, 2), (3,), ()):
    with pytest.raises(ValueError, match=r'priorities.*\[3, 2\] is needed'):
      arguments.checked_priorities(graph, np.zeros(shape), (3, 2))
  with pytest.raises(ValueError, match='"op1" is not a number.*None for all'):
    arguments.checked_priorities(graph, np.array([0., np.nan]), (2,))

"""Tests of what is not learned from."""

import placer_model  # isort: skip  # before TensorFlow  # noqa: F401

import numpy as np
import pytest

from gdp_grappler.placers import step as step_lib
from helpers import clusters
from helpers import graphs
from placer_model.pretraining.placements import evaluation


class _Network:
  """Likes what it is told to."""

  def __init__(self, row):
    self._row = np.array(row)

  def __call__(self, features):
    count = features['allowed'].shape[1]
    return _Tensor(1. * (np.arange(count) == self._row[:, None]))


class _Tensor:

  def __init__(self, values):
    self._values = values

  def numpy(self):
    return self._values


class _Student:

  def __init__(self, row):
    self.network = _Network(row)


def test_two_chains_are_twice_as_fast_on_two_devices():
  graph = graphs.make_graph([(0, 1, 8), (2, 3, 8)], flops=1e9)
  # Units are in topological order: 0, 2, 1, 3.
  test = evaluation.Evaluation(step_lib.Step(graph, clusters.make_cluster(2)))
  assert test.result(_Student([1, 1, 1, 1])) == pytest.approx(1., rel=1e-5)
  assert 1.8 < test.result(_Student([1, 2, 1, 2])) <= 2.

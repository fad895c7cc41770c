import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from helpers import graphs
from helpers import problems
from placer_model.hdp import config as config_lib
from placer_model.hdp import first_groups
from placer_model.hdp import grouper as grouper_lib


def test_heavy_edges_stay_inside():
  # Four chains of four with large tensors, in a ring of small ones.
  edges = [(i, i + 1, 1000 if i % 4 != 3 else 1) for i in range(15)]
  found = first_groups.joined(
      problems.make(graphs.make_graph(edges), seconds=1.), 4)
  np.testing.assert_array_equal(found, np.repeat(range(4), 4))


@pytest.mark.parametrize('most', [1, 2, 7, 60])
def test_no_more_groups_than_allowed(most):
  allowed = np.ones((200, 2), bool)
  allowed[::7, 1] = False
  graph = graphs.random_graph(3, 200).replace(allowed_types=allowed)
  found = first_groups.joined(problems.make(graph, seconds=1.), most)
  assert found.shape == (graph.num_groups,)
  assert set(found) <= set(range(most))
  assert most == 1 or len(set(found)) > most / 4


def test_grouper_begins_with_them_and_may_leave():
  config = config_lib.HdpConfig()
  first = np.random.default_rng(0).integers(5, size=2000)
  units = tf.constant(np.random.default_rng(1).random((2000, 8)), tf.float32)
  seed = tf.constant([1, 2])

  def sample(logit):
    grouper = grouper_lib.Grouper(
        8, 5, dataclasses.replace(config, first_group_logit=logit), 0, first)
    return grouper.sample(units, seed).numpy()

  assert (sample(config.first_group_logit) != first).sum() < 10
  left = (sample(3.) != first).mean()
  assert left == pytest.approx(4 / (4 + np.exp(3.)), abs=0.03)

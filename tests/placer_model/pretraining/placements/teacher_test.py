"""Tests of answers to drawn problems."""

import placer_model  # isort: skip  # before TensorFlow  # noqa: F401

import numpy as np
import pytest

from gdp_grappler.workloads.synthetic import synthetic
from helpers import clusters
from helpers import graphs
from helpers import problems
from placer_model.pretraining.placements import teacher

_CONFIG = teacher.TeacherConfig(
    drawn=synthetic.Config(ops=(100, 200), accelerators=(2, 3)))


@pytest.mark.parametrize('seed', range(3))
def test_answers_are_legal_fit_and_differ(seed):
  example = teacher.draw(_CONFIG, np.random.default_rng(seed))
  assert example is not None
  units = np.arange(example.answers.shape[1])
  for row in example.answers:
    assert example.features.allowed[units, row].all()
  assert example.excess[0] == 0 and (np.diff(example.excess) >= 0).all()
  assert example.excess.max() <= _CONFIG.excess
  for k, row in enumerate(example.answers):
    assert all((row != other).mean() > .1 for other in example.answers[:k])
  again = teacher.draw(_CONFIG, np.random.default_rng(seed))
  assert again.answers.tolist() == example.answers.tolist()


def test_the_best_answer_is_no_slower_than_what_was_known():
  """Two chains that nothing joins belong on two devices."""
  graph = graphs.make_graph([(0, 1, 8), (1, 2, 8), (3, 4, 8), (4, 5, 8)],
                            flops=1e9)
  problem = problems.make(graph)
  environment = teacher.environment_of(problem)
  known = np.zeros((1, 6), int)
  example = teacher.answered(problem, known, _CONFIG, np.random.default_rng(0))
  assert example is not None
  one, best = environment.price(np.stack([known[0],
                                          example.answers[0]])).step_time_s
  assert best < one


def test_nothing_to_decide_is_no_example():
  graph = graphs.make_graph([(0, 1, 8)], allowed_types=[[0, 1]] * 2)
  problem = problems.make(graph, cluster=clusters.make_cluster(1))
  assert teacher.answered(problem, np.ones((1, 2), int), _CONFIG,
                          np.random.default_rng(0)) is None

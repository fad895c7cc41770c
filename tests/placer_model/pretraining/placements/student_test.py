"""Tests of learning from examples."""

import placer_model  # isort: skip  # before TensorFlow  # noqa: F401

import numpy as np
import pytest

from gdp_grappler.workloads.synthetic import synthetic
from placer_model import config as config_lib
from placer_model.pretraining.placements import evaluation
from placer_model.pretraining.placements import student as student_lib
from placer_model.pretraining.placements import teacher

_NETWORK = config_lib.TRANSFER.replace(hidden_units=16, graph_layers=1,
                                       transformer_layers=1, heads=2,
                                       head_units=8, feed_forward_units=16,
                                       type_buckets=16)
_TEACHER = teacher.TeacherConfig(
    drawn=synthetic.Config(ops=(100, 150), accelerators=(2, 3)))


@pytest.fixture(scope='module')
def examples():
  return [
      teacher.draw(_TEACHER, np.random.default_rng(seed)) for seed in range(2)
  ]


@pytest.fixture(scope='module')
def student():
  return student_lib.Student(_NETWORK, 1e-2, 20.)


def test_what_is_learned_is_said(examples, student):
  before = evaluation.agreement(student, examples, 20.)
  losses = [student.learn(examples, 1.) for _ in range(60)]
  assert losses[-1] < losses[0] / 2
  assert evaluation.agreement(student, examples, 20.) > max(before, .85)


def test_no_rate_learns_nothing(examples, student):
  before = student.logits(examples[0])
  student.learn(examples, 0.)
  np.testing.assert_array_equal(before, student.logits(examples[0]))


def test_what_is_not_allowed_is_never_likely(examples):
  allowed = np.array([[True, False], [True, True], [False, True]])
  targets = student_lib._smoothed(np.array([0, 1, 1]), allowed)
  np.testing.assert_allclose(targets.sum(axis=1), 1., rtol=1e-6)
  assert targets[0].tolist() == [1., 0.] and targets[2].tolist() == [0., 1.]
  assert targets[1][1] == np.float32(.99)

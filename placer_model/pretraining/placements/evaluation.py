"""Tests of the policy network on problems that it was not trained on."""

from __future__ import annotations

from typing import Sequence

import numpy as np

from gdp_grappler.cluster import one_device
from gdp_grappler.placers import step as step_lib
from placer_model import network as network_lib
from placer_model.pretraining.placements import example as example_lib
from placer_model.pretraining.placements import student as student_lib
from placer_model.pretraining.placements import teacher


class Evaluation:
  """A held-out problem."""

  def __init__(self, step: step_lib.Step) -> None:
    """Prices all ops on one device.

    Raises:
      InfeasiblePlacementError: the graph cannot be placed on the cluster.
    """
    problem = teacher.problem_of(step, 0)
    self._environment = teacher.environment_of(problem)
    rows = one_device.of_each_kind(problem.cluster, problem.allowed,
                                   problem.op_seconds)
    # A device whose memory is too small counts by its simulated seconds.
    self._single_s = float(
        problem.evaluator.price_groups(problem.graph, rows, None).seconds.min())

  def result(self, student: student_lib.Student) -> float:
    """Returns the speed-up of the likeliest placement over one device."""
    features = network_lib.features_to_tensors(self._environment.features)
    said = student.network(features).numpy().argmax(axis=1)
    seconds = float(self._environment.price(said[None]).prices.seconds[0])
    return max(self._single_s, 1e-12) / max(seconds, 1e-12)


def agreement(student: student_lib.Student,
              examples: Sequence[example_lib.Example],
              patience: float) -> float:
  """Returns the weighted share of units that have an answer's device.

  Args:
    student: Network under test.
    examples: At least one example.
    patience: See `example.Example.target`.
  """
  shares = []
  for example in examples:
    logits, weights = student.logits(example), example.weights
    right = example.target(logits, weights, patience) == logits.argmax(axis=1)
    shares.append(float((right * weights).mean()))
  return float(np.mean(shares))

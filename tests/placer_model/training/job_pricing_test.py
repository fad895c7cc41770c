"""Pricing on a team is pricing here, to the last bit."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from gdp_grappler.processes import local_team
from placer_model.training import baselines
from placer_model.training import job_pricing
from placer_model.training import task as task_lib

pytestmark = pytest.mark.e2e
_STEP = 'dense_train_step.pb'


@pytest.fixture(name='tasks', scope='module')
def _tasks(request, tmp_path_factory):
  graph = request.config.rootpath / 'tests' / 'testdata' / _STEP
  return [
      task_lib.load(
          task_lib.TrainOptions(str(graph), cluster, 'simulated',
                                tmp_path_factory.mktemp('model'), seed=3),
          lambda line: None) for cluster in ('2xP100', '3xK40')
  ]


@pytest.fixture(name='pricing', scope='module')
def _pricing(tasks):
  with job_pricing.Pricing(local_team.Here(2), tasks) as pricing:
    yield pricing


@pytest.mark.parametrize('count', [0, 1, 2, 7])
def test_prices_are_the_same(tasks, pricing, count):
  for index, task in enumerate(tasks):
    rng = np.random.default_rng(count)
    devices = rng.integers(0, task.cluster.num_devices,
                           (count, task.graph.num_groups))
    devices = devices[:, task.graph.groups].astype(np.int32)
    here = task.problem.evaluator.price(task.graph, devices)
    there = pricing.evaluator(index).price(task.graph, devices)
    for field in dataclasses.fields(here):
      np.testing.assert_array_equal(getattr(there, field.name),
                                    getattr(here, field.name))


def test_placers_find_the_same(tasks, pricing):
  wanted = [(index, name, 5) for index in range(len(tasks))
            for name in baselines.NAMES]
  wanted.append((0, baselines.SEARCH, 5))
  for (index, name, seed), there in zip(wanted, pricing.place(wanted)):
    task = tasks[index]
    here = baselines.place(name, dataclasses.replace(task.problem, seed=seed),
                           task.simulator, task.simulator)
    np.testing.assert_array_equal(there.placement.devices,
                                  here.placement.devices)
    assert there.placement.cluster is task.cluster
    assert (there.evaluation, there.ordered,
            there.evaluations) == (here.evaluation, here.ordered,
                                   here.evaluations)

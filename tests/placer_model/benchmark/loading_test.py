"""Tests of tasks with all that their cells need."""

import dataclasses
import pathlib

import numpy as np
import pytest

from gdp_grappler import errors
from gdp_grappler.graph.sources import sources
from gdp_grappler.workloads import registry
from helpers import clusters
from helpers import profiles
from placer_model.benchmark import loading
from placer_model.benchmark import settings as settings_lib
from placer_model.benchmark import tasks as tasks_lib

_DENSE = str(pathlib.Path(__file__).parents[2] / 'testdata/dense_train_step.pb')
_TASK = tasks_lib.Task(_DENSE, '2xP100')


def test_a_profile_is_another_digest(tmp_path):
  plain = loading.load(_TASK, settings_lib.Settings())
  assert plain.cost_model is None and plain.expert_devices is None
  graph = plain.graph
  profiles.of_graph(graph, np.full(graph.num_ops, .25),
                    visit_s=0.).save(tmp_path / 'p.json')
  priced = loading.load(_TASK,
                        settings_lib.Settings(profile=str(tmp_path / 'p.json')))
  seconds = priced.cost_model.op_seconds(graph, priced.cluster)
  assert set(seconds[:, 0]) == {.25}
  assert priced.digest != plain.digest
  loading.save(tmp_path / 'task', priced)
  again = loading.parse((tmp_path / 'task').read_bytes())
  assert again.digest == priced.digest


def test_how_devices_slow_each_other_down_is_part_of_the_digest():
  loaded = loading.load(_TASK, settings_lib.Settings())
  digests = {
      dataclasses.replace(
          loaded, cost_model=clusters.FixedCosts(1., buses=[0] * 3,
                                                 shares=share)).digest
      for share in (0., .5)
  }
  assert len(digests) == 2


def test_what_kernels_an_op_launches_is_part_of_the_digest():
  """Cells of a graph whose ops became float16 would have been kept."""
  loaded = loading.load(_TASK, settings_lib.Settings())
  name = loaded.graph.names[0]
  digests = {
      dataclasses.replace(loaded, graph=loaded.graph.replace(**change)).digest
      for change in ({}, {'element_types_by_name': {name: 'float16'}},
                     {'host_ops': loaded.graph.host_ops ^ {name}},
                     {'rounds_by_name': {name: 2.}})
  }
  assert len(digests) == 4


def test_experts_of_workloads(monkeypatch):
  monkeypatch.setattr(
      registry, 'source',
      lambda name, tell, architecture: sources.load(_DENSE, name=name))
  task = tasks_lib.Task('rnnlm-2@tiny', '2xP100', tasks_lib.WORKLOAD)
  for expert in (tasks_lib.WORKLOAD, tasks_lib.ONE_GPU):
    loaded = loading.load(dataclasses.replace(task, expert=expert),
                          settings_lib.Settings())
    # Dense layers name no stage: all are of one, on the first GPU.
    assert loaded.expert_devices.tolist() == [1] * loaded.graph.num_ops
    assert loaded.expert_devices.dtype == np.int32
    assert loaded.setting == registry.get('rnnlm-2@tiny').setting


def test_costs_cannot_be_measured(tmp_path):
  path = tmp_path / 'graph.json'
  path.write_text('{"nodes": [{"name": "a", "seconds": 2}]}')
  with pytest.raises(errors.GdpError, match='has costs but no TensorFlow ops'):
    loading.load(tasks_lib.Task(str(path), 'local'),
                 settings_lib.Settings(reward='measured'))

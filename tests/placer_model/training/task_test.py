"""Tests of what a run learns on."""

import pathlib

import numpy as np
import pytest

from gdp_grappler import deadlines
from gdp_grappler import errors
from gdp_grappler.evaluation.emulation import emulator
from gdp_grappler.evaluation.measuring import measurer
from gdp_grappler.graph.sources import sources
from gdp_grappler.workloads import registry
from helpers import profiles
from placer_model.training import task as task_lib

_DENSE = str(pathlib.Path(__file__).parents[2] / 'testdata/dense_train_step.pb')


def _load(tmp_path, graph=_DENSE, tell=lambda line: None, **options):
  return task_lib.load(
      task_lib.TrainOptions(
          **{
              'graph': str(graph), 'cluster': '2xP100', 'reward': 'simulated',
              'model_dir': tmp_path / 'model', **options
          }), tell)


def test_a_profile_prices_the_ops(tmp_path):
  graph = _load(tmp_path).graph
  profiles.of_graph(graph, np.full(graph.num_ops, .25),
                    visit_s=0.).save(tmp_path / 'p.json')
  said = []
  task = _load(tmp_path, tell=said.append, profile=str(tmp_path / 'p.json'))
  assert set(task.op_seconds[:, 0]) == {.25}
  assert 'CPU:0' in said[0] and f'{graph.num_ops} ops measured' in said[0]


def test_a_workload_brings_its_expert(tmp_path, monkeypatch):
  monkeypatch.setattr(
      registry, 'source',
      lambda name, tell, architecture: sources.load(_DENSE, name=name))
  task = _load(tmp_path, 'rnnlm-2@tiny', seed=3)
  assert task.graph.name == 'rnnlm-2@tiny' and task.problem.seed == 3
  assert len(task.problem.expert_devices) == task.graph.num_ops


def test_costs_are_simulated_only(tmp_path):
  path = tmp_path / 'graph.json'
  path.write_text('{"nodes": [{"name": "a", "seconds": 2}]}')
  assert _load(tmp_path, path).op_seconds.tolist() == [[2., 2., 2.]]
  with pytest.raises(errors.GdpError, match='has costs but no TensorFlow ops'):
    _load(tmp_path, path, reward='measured', cluster='local')


def test_measured_steps_need_no_profile(tmp_path):
  graph = _load(tmp_path).graph
  path = tmp_path / 'p.json'
  profiles.of_graph(graph, np.ones(graph.num_ops)).save(path)
  with pytest.raises(errors.GdpError, match='Leave out profile'):
    _load(tmp_path, reward='measured', cluster='local', profile=str(path))


@pytest.mark.parametrize('reward, cluster', [('measured', 'local'),
                                             ('emulated', '2xP100')])
@pytest.mark.parametrize('left_s, timeout_s', [(None, 300), (1e3, 300),
                                               (100, 100), (0, 30)])
def test_a_step_that_hangs_does_so_no_longer_than_the_budget(
    tmp_path, monkeypatch, reward, cluster, left_s, timeout_s):
  seen = []
  for runner in (measurer.Measurer, emulator.Emulator):

    def made(self, *arguments, _init=runner.__init__, **fields):
      _init(self, *arguments, **fields)
      config = getattr(self, '_config', None)
      seen.append(config.timeout_s if config else self._timeout_s)

    monkeypatch.setattr(runner, '__init__', made)
  options = task_lib.TrainOptions(graph=_DENSE, cluster=cluster, reward=reward,
                                  model_dir=tmp_path)
  deadline = deadlines.Deadline(
      left_s, lambda: 0.) if (left_s is not None) else deadlines.NEVER
  with task_lib.load(options, lambda line: None, deadline).processes:
    assert seen == [timeout_s]

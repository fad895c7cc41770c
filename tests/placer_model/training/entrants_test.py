import types

import numpy as np
import pytest

from gdp_grappler import errors
from gdp_grappler.problems import rewards
from helpers import clusters
from placer_model.training import checkpoints
from placer_model.training import entrants


def test_graphs_of_one_name_have_labels_of_their_own():
  tasks = [
      types.SimpleNamespace(graph=types.SimpleNamespace(name=graph),
                            cluster=types.SimpleNamespace(name='2xP100'))
      for graph in ('a', 'b', 'a', 'a')
  ]
  assert entrants.labels(tasks) == [
      'a@2xP100', 'b@2xP100', 'a@2xP100#1', 'a@2xP100#2'
  ]
  assert entrants.labels(tasks[:1]) == ['']


@pytest.mark.parametrize('name, expected', [('a@2xP100', 'a_2xP100'),
                                            ('../up', '_up'), ('..', 'none')])
def test_file_names_lead_nowhere_else(name, expected):
  assert entrants.file_name(name, 'none') == expected


def _options(folder, **changes):
  return types.SimpleNamespace(
      **{
          'model_dir': folder, 'restart': False, 'reward': rewards.SIMULATED,
          'seed': 1, 'ray': '', 'searches': 0, 'may_round': False, **changes
      })


def _task(name='net'):
  return types.SimpleNamespace(
      graph=types.SimpleNamespace(name=name, fingerprint=name),
      cluster=clusters.make_cluster(2), op_seconds=np.ones(3))


def test_measured_runs_go_on_whatever_ops_are_said_to_cost(tmp_path):
  simulated = entrants.identity(_options(tmp_path), [_task()])
  dearer = _task()
  dearer.op_seconds = np.full(3, 2.)
  assert entrants.identity(_options(tmp_path), [dearer]) != simulated
  measured = _options(tmp_path, reward=rewards.MEASURED)
  assert (entrants.identity(measured,
                            [dearer]) == entrants.identity(measured, [_task()]))


@pytest.mark.parametrize('change', [{'searches': 2}, {'may_round': True}])
def test_a_run_with_other_options_is_another_run(tmp_path, change):
  """A run went on without its searches, or with other legal devices."""
  one, other = (entrants.identity(_options(tmp_path, **changes), [_task()])
                for changes in ({}, change))
  assert one != other


def test_a_folder_of_another_run_is_refused_before_anything_is_priced(tmp_path):
  checkpoints.claim(tmp_path, entrants.identity(_options(tmp_path), [_task()]))
  other = entrants.identity(_options(tmp_path), [_task('other')])
  with pytest.raises(errors.GdpError, match='another graph'):
    with entrants.opened(_options(tmp_path), other, []):
      raise AssertionError('It was opened.')

"""Tests of the checks of arguments."""

import math
import pathlib

import numpy as np
import pytest

import gdp_grappler
from gdp_grappler import errors
from gdp_grappler.api import arguments

_GRAPH = pathlib.Path(__file__).parents[1] / 'testdata/dense_train_step.pb'


@pytest.mark.parametrize('seed, seconds', [(0, None), (np.int64(3), 1), (7, .5),
                                           (7, np.float32(2))])
def test_numbers_are_taken(seed, seconds):
  arguments.check_search(seed, seconds, False)


@pytest.mark.parametrize('seed', ['x', -1, 1.5, None, True])
def test_a_wrong_seed_is_named(seed):
  with pytest.raises(errors.GdpError, match='seed is .*; give a whole number'):
    arguments.check_search(seed, None, False)


@pytest.mark.parametrize('seconds', ['big', 0, -1, math.inf, math.nan, True])
def test_a_wrong_budget_is_named(seconds):
  with pytest.raises(errors.GdpError, match='time_budget_s is .*; give a numb'):
    arguments.check_search(0, seconds, False)


def test_a_wrong_name_is_named():
  arguments.check_names(placer='gdp', policy=None, profile=pathlib.Path('p'))
  with pytest.raises(errors.GdpError, match='placer is 3; give a text'):
    arguments.check_names(placer=3)


def test_a_wrong_plan_is_named(tmp_path):
  path = tmp_path / 'map.json'
  path.write_text('{"a": "GPU:0"}')
  for plan in (str(path), path, {'a': 'GPU:0'}):
    arguments.check_plan(plan)
  for plan in (3, None):
    with pytest.raises(errors.GdpError, match=f'plan is {plan}; give a plan f'):
      arguments.check_plan(plan)


@pytest.mark.parametrize('text, said', [
    (None, 'Cannot read plan'),
    ('{"a": ', 'is not a plan'),
    ('["a"]', 'is neither a plan nor a map of layers'),
    ('{}', 'map of layers has 0 entries'),
    ('{"a": 3}', 'The device of "a" is 3'),
    ('{"a": "3"}', '"3"'),
    ('{"format": "gdp-plan"}', 'has version None'),
])
def test_a_wrong_plan_is_told_before_the_graph_is_read(tmp_path, text, said):
  path = tmp_path / 'plan.json'
  if text is not None:
    path.write_text(text)

  def never():
    pytest.fail('The graph was read first.')

  for run in (lambda: gdp_grappler.place(never, '2xP100', plan=path),
              lambda: gdp_grappler.load_plan(path, never, '2xP100')):
    with pytest.raises(errors.GdpError) as error:
      run()
    assert said in str(error.value) and str(path) in str(error.value)


@pytest.mark.parametrize('named', [True, False], ids=['named', 'environment'])
def test_a_wrong_policy_is_told_before_the_graph_is_read(
    tmp_path, monkeypatch, named):

  def never():
    pytest.fail('The graph was read first.')

  folder = str(tmp_path)
  if not named:
    monkeypatch.setenv('GDP_POLICY', folder)
  with pytest.raises(errors.PolicyMismatchError, match='is not a policy'):
    gdp_grappler.place(never, '2xP100', policy=folder if named else None)


def test_a_wrong_profile_is_told_before_the_graph_is_read(tmp_path):

  def never():
    pytest.fail('The graph was read first.')

  with pytest.raises(errors.GdpError, match=f'{tmp_path}/none'):
    gdp_grappler.place(never, '2xP100', profile=f'{tmp_path}/none')


# Once each of these values raised an error of Python, such as a TypeError.
@pytest.mark.parametrize('wrong', [{'time_budget_s':
    'big'}, {'time_budget_s': -1}, {'seed': 'x'}, {'seed': -1}, {'plan':
        3}, {'placer': 3}, {'policy': 3}, {'profile': 3}, {'max_memory': 3}])
def test_place_names_the_argument(wrong):
  key, = wrong
  with pytest.raises(errors.GdpError, match=f'^{key}\\b'):
    gdp_grappler.place(_GRAPH, '2xP100', **wrong)


@pytest.mark.parametrize('cluster', [3, None, ['2xP100']])
def test_place_names_a_wrong_cluster(cluster):
  with pytest.raises(errors.ClusterError, match='is no cluster. Give a preset'):
    gdp_grappler.place(_GRAPH, cluster)


def test_compare_names_the_argument():
  with pytest.raises(errors.GdpError, match='time_budget_s is'):
    gdp_grappler.compare(_GRAPH, '2xP100', ['m_etf'], time_budget_s='big')


@pytest.mark.parametrize('shape', [8, {'x': 8}, {'x': (0,)}, {1: (2,)}])
def test_a_wrong_shape_is_named(shape):
  arguments.check_shape({'x': (4, np.int64(8))})
  with pytest.raises(errors.GdpError, match='shape is .*; give the sizes'):
    arguments.check_shape(shape)


def test_a_shape_is_for_a_saved_model():
  with pytest.raises(errors.GdpError, match='shape is for the inputs of'):
    gdp_grappler.place(lambda: None, '2xP100', shape={'x': (4, 8)})

import dataclasses
import json
import os
import pathlib

import numpy as np
import pytest
import tensorflow as tf

import gdp_grappler
from gdp_grappler import errors
from gdp_grappler.api import applying

_GRAPH = pathlib.Path(__file__).parents[1] / 'testdata/dense_train_step.pb'


@pytest.fixture(scope='module')
def placed():
  return gdp_grappler.place(_GRAPH, '2xP100', placer='single_device')


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
  """The folder of plans in a cache that does not exist yet."""
  monkeypatch.setenv('GDP_CACHE_DIR', str(tmp_path / 'cache'))
  yield tmp_path / 'cache' / 'plans'
  _set(False)


def _set(option):
  tf.config.optimizer.set_experimental_options({'gdp_placement': option})


def _option():
  return tf.config.optimizer.get_experimental_options()['gdp_placement']


def _with_priorities(placed, first):
  priorities = first + np.arange(placed.graph.num_ops, dtype=float)
  return dataclasses.replace(
      placed, placement=dataclasses.replace(placed.placement,
                                            priorities=priorities))


def test_plans_in_the_cache_are_named_by_what_is_in_them(placed):
  """Once the memory address was the name, which a later plan may share."""
  path = placed.apply()
  assert dataclasses.replace(placed).apply() == path
  assert _with_priorities(placed, 0).apply() != path


def test_nobody_else_may_read_plans_in_the_cache(placed, folder):
  """Once everybody could read the cache folder, if `apply` made it."""
  path = pathlib.Path(placed.apply())
  assert path.parent == folder
  assert path.stat().st_mode & 0o777 == 0o600
  for each in (folder, folder.parent):
    assert each.stat().st_mode & 0o777 == 0o700


def test_a_plan_elsewhere_is_written_as_save_does(placed, tmp_path):
  path = tmp_path / 'plan.json'
  assert placed.apply(path) == _option()['plan'] == str(path)
  placed.save(tmp_path / 'saved.json')
  assert path.stat().st_mode == (tmp_path / 'saved.json').stat().st_mode


@pytest.mark.parametrize('before, others', [
    (False, {}),
    (True, {}),
    ({'may_round': True, 'plan': {'a': 'GPU:0'}}, {'may_round': True}),
])
def test_the_rest_of_the_option_stays(placed, before, others):
  """Once the other keys were lost."""
  _set(before)
  path = placed.apply()
  assert _option() == {**others, 'plan': path}


@pytest.mark.parametrize('path', [None, 'file/plan.json'])
def test_a_plan_that_cannot_be_written_is_an_error_of_ours(
    placed, tmp_path, monkeypatch, path):
  """Once this was a FileNotFoundError, and the option was lost."""
  (tmp_path / 'file').write_text('')
  monkeypatch.setenv('GDP_CACHE_DIR', str(tmp_path / 'file'))
  _set({'may_round': True})
  with pytest.raises(errors.GdpError, match='Cannot write'):
    placed.apply(path and tmp_path / path)
  assert _option() == {'may_round': True}


def test_the_oldest_plans_in_the_cache_go(placed, folder, monkeypatch):
  monkeypatch.setattr(applying, 'MOST_PLANS', 2)
  paths = []
  for i in range(3):
    paths.append(pathlib.Path(_with_priorities(placed, i).apply()))
    os.utime(paths[-1], (i + 1, i + 1))
  assert sorted(folder.iterdir()) == sorted(paths[1:])
  assert json.loads(paths[-1].read_text())['priorities']


def test_a_plan_beyond_all_bytes_stays_while_it_is_the_last(
    placed, monkeypatch):
  monkeypatch.setattr(applying, 'MOST_BYTES', 1)
  assert os.path.exists(placed.apply())

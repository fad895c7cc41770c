"""The examples in docstrings of public functions run as they are."""

import inspect
import pathlib
import re
import shutil
import textwrap

import keras
import pytest

import gdp_grappler

_GRAPH = pathlib.Path(__file__).parents[1] / 'testdata/dense_train_step.pb'


def _example(name):
  """The indented lines between the summary and the arguments."""
  text = inspect.getdoc(getattr(gdp_grappler, name))
  lines = re.search(r'\n\n((?: {2}.*\n)+)\n(?:Args|Raises)', text)[1]
  return textwrap.dedent(lines)


@pytest.mark.parametrize(
    'name',
    ['place', 'load_plan', 'simulate', 'compare', 'explain', 'diff', 'report'])
def test_it_runs(name, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  shutil.copy(_GRAPH, 'graph.pb')
  decoder = keras.Sequential(
      [keras.Input((4,)),
       keras.layers.Dense(8, name='decoder')])
  plan = gdp_grappler.place('graph.pb', '2xP100', placer='random')
  for path in ('old.json', 'plan.json'):
    plan.save(path)
  if name == 'explain':
    plan = gdp_grappler.place(decoder, '2xP100', placer='random')
  names = {
      'gdp_grappler': gdp_grappler, 'plan': plan,
      'model': decoder if name == 'place' else 'graph.pb'
  }
  exec(_example(name), names)

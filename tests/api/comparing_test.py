"""Tests of `compare`."""

import importlib.util
import json
import pathlib
import subprocess
import sys

import pytest

import gdp_grappler
from gdp_grappler import errors
from gdp_grappler.placers import registry

_GRAPH = pathlib.Path(__file__).parents[1] / 'testdata/dense_train_step.pb'


@pytest.fixture(scope='module')
def table():
  """Three placers. One of them cannot place this graph."""
  return gdp_grappler.compare(_GRAPH, '2xP100',
                              ['random', 'single_device', 'human_expert'])


def test_the_best_comes_first(table):
  steps = [placed.step_time_s for placed in table.placed.values()]
  assert steps == sorted(steps)
  assert table.best is next(iter(table.placed.values()))


def test_who_cannot_says_why(table, capsys):
  assert 'expert' in table.failures['human_expert']
  table.show()
  out = capsys.readouterr().out
  assert out.splitlines()[0].startswith('placer')
  assert 'human_expert: ' in out


def test_as_json_and_as_a_page(table):
  fields = json.loads(table.to_json())
  assert [row['placer'] for row in fields['placers']] == list(table.placed)
  assert '<td>random</td>' in table._repr_html_()
  assert repr(table).startswith('<Comparison ')
  assert '\n' not in repr(table)


def test_unknown_placers_are_refused_before_the_work():
  with pytest.raises(errors.GdpError, match='Unknown placer "x"'):
    gdp_grappler.compare('no_graph.pb', '2xP100', ['x'])
  for placers in ('metis', []):
    with pytest.raises(errors.GdpError, match='give a list of names'):
      gdp_grappler.compare('no_graph.pb', '2xP100', placers)
  with pytest.raises(errors.GdpError, match='Unknown order "x"'):
    gdp_grappler.compare('no_graph.pb', '2xP100', ['metis'], order='x')


@pytest.mark.skipif(
    importlib.util.find_spec('placer_model') is None,
    reason='the trainer is not installed')
def test_placers_of_keras_2_are_imported_first():
  """Once reading the graph loaded TensorFlow with Keras 3 first."""
  program = ('import gdp_grappler\n'
             f'table = gdp_grappler.compare({str(_GRAPH)!r}, "2xP100",\n'
             '    ["single_device", "gdp_policy", "coloc_rl"],\n'
             '    time_budget_s=1)\n'
             'assert not table.failures, table.failures\n')
  done = subprocess.run([sys.executable, '-c', program], capture_output=True,
                        text=True, check=False)
  assert done.returncode == 0, done.stderr


def test_who_cannot_be_imported_is_among_the_failures(monkeypatch):
  factory = registry.factory

  def refuse(name, policy=None):
    if name == 'random':
      raise errors.GdpError('No luck here.')
    return factory(name, policy)

  monkeypatch.setattr(registry, 'factory', refuse)
  table = gdp_grappler.compare(_GRAPH, '2xP100', ['random', 'single_device'])
  assert table.failures == {'random': 'No luck here.'}
  assert list(table.placed) == ['single_device']


def test_nobody_has_found_anything():
  table = gdp_grappler.compare(_GRAPH, '2xP100', ['human_expert'])
  with pytest.raises(errors.InfeasiblePlacementError, match='No placer'):
    print(table.best)


def test_a_mix_of_devices_is_no_single_device(tmp_path):
  """By its name, the row was taken for what speed-ups are against."""
  path = tmp_path / 'mix.json'
  kernel = {'seconds': {'CPU': 1, 'GPU': 1}, 'cpu': False}
  path.write_text(
      json.dumps({
          'nodes': [{'name': 'a', 'seconds': {'CPU': 1, 'GPU': 9}},
                    {'name': 'b',
                     'seconds': {'CPU': 1, 'GPU': 9}}, {'name': 'c', **kernel}]
      }))
  said = str(gdp_grappler.compare(path, '1xP100', ['single_device', 'random']))
  assert said.endswith('single_device: 2 ops on CPU:0, 1 op on GPU:0. '
                       'Speed-ups are against 3 ops on GPU:0.')

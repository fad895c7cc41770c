"""Tests of `compare`."""

import json
import pathlib

import pytest

import gdp_grappler
from gdp_grappler import errors

_GRAPH = pathlib.Path(__file__).parents[1] / 'testdata/dense_train_step.pb'


@pytest.fixture(scope='module')
def table():
  """Three placers, one of which cannot."""
  return gdp_grappler.compare(_GRAPH, '2xP100',
                              ['random', 'single_device', 'human_expert'])


def test_the_best_comes_first(table):
  steps = [placed.step_time_s for placed in table.placed.values()]
  assert steps == sorted(steps)
  assert table.best is table.placed['single_device']


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


def test_unknown_placers_are_refused_before_the_work():
  with pytest.raises(errors.GdpError, match='Unknown placer "x"'):
    gdp_grappler.compare('no_graph.pb', '2xP100', ['x'])


def test_nobody_has_found_anything():
  table = gdp_grappler.compare(_GRAPH, '2xP100', ['human_expert'])
  with pytest.raises(errors.InfeasiblePlacementError, match='No placer'):
    print(table.best)

"""`--may_round` of `gdp`: what it lets, and what is refused without it."""

import json
import pathlib

import pytest

from gdp_grappler.bin import gdp

_GRAPH = str(pathlib.Path(__file__).parents[1] / 'testdata/dense_train_step.pb')


@pytest.fixture(scope='module')
def rounding(tmp_path_factory):
  """A plan that may round, and the same without a word of it."""
  folder = tmp_path_factory.mktemp('plans')
  path, silent = folder / 'plan.json', folder / 'silent.json'
  assert gdp.run([
      'place', _GRAPH, '--cluster=2xP100', '--placer=random', '--may_round',
      f'--output={path}'
  ]) == 0
  fields = json.loads(path.read_text())
  assert fields.pop('may_round') is True
  del fields['digest']
  silent.write_text(json.dumps(fields))
  return path, silent


def test_what_to_type_next_has_the_flag(tmp_path, capsys):
  assert gdp.run([
      'place', _GRAPH, '--cluster=2xP100', '--placer=metis', '--may_round',
      f'--output={tmp_path}/plan.json'
  ]) == 0
  assert f'gdp report {_GRAPH} --may_round --plan=' in capsys.readouterr().out


def test_one_that_does_not_is_refused_with_the_way_out(rounding, capsys):
  assert gdp.run(['simulate', _GRAPH, f'--plan={rounding[1]}']) == 2
  assert 'or allow that by may_round' in capsys.readouterr().err
  assert gdp.run(['simulate', _GRAPH, f'--plan={rounding[1]}',
                  '--may_round']) == 0
  assert gdp.run(['simulate', _GRAPH, f'--plan={rounding[0]}']) == 0
  assert 'warning' not in capsys.readouterr().err


def test_both_can_be_explained_and_compared(rounding, tmp_path, capsys):
  exact = tmp_path / 'exact.json'
  assert gdp.run([
      'place', _GRAPH, '--cluster=2xP100', '--placer=metis', f'--output={exact}'
  ]) == 0
  assert gdp.run(['diff', _GRAPH, str(exact), str(rounding[0])]) == 0
  assert gdp.run(['explain', _GRAPH, f'--plan={exact}', '*MatMul*']) == 0
  assert 'may give other results' in ' '.join(capsys.readouterr().out.split())

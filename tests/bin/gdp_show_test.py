"""Tests of `gdp show`."""

import json
import pathlib
import shlex

import pytest

import gdp_grappler
from gdp_grappler.bin import gdp
from gdp_grappler.bin.commands import show
from gdp_grappler.cluster import presets
from gdp_grappler.cluster import resolve

_GRAPH = str(pathlib.Path(__file__).parents[1] / 'testdata/dense_train_step.pb')


@pytest.fixture(scope='module')
def layers(tmp_path_factory):
  """A map of layers."""
  path = tmp_path_factory.mktemp('maps') / 'map.json'
  path.write_text(json.dumps({'dense': 'GPU:1'}))
  return str(path)


def test_a_plan_by_layer(layers, tmp_path, capsys):
  written = tmp_path / 'layers.json'
  assert gdp.run([
      'show', _GRAPH, f'--plan={layers}', '--cluster=2xP100',
      f'--output={written}'
  ]) == 0
  out = capsys.readouterr().out
  assert 'parameters' in out and f'Next: edit {written}' in out
  found = json.loads(written.read_text())
  assert found['dense'] == 'GPU:1' and set(found.values()) == {'GPU:0', 'GPU:1'}


def test_what_was_written_is_a_plan(layers, tmp_path, capsys):
  written = tmp_path / 'layers.json'
  # The command for the edited map once followed the JSON.
  command = ['show', _GRAPH, '--cluster=2xP100', '--json']
  assert gdp.run([*command, f'--plan={layers}', f'--output={written}']) == 0
  first = json.loads(capsys.readouterr().out)
  assert gdp.run([*command, f'--plan={written}']) == 0
  assert json.loads(capsys.readouterr().out)['devices'] == first['devices']
  assert {row['name'] for row in first['layers']} >= {'dense'}


def test_every_layer_has_a_row(layers, capsys):
  command = ['show', _GRAPH, f'--plan={layers}', '--cluster=2xP100', '--quiet']
  assert gdp.run([*command, '--all']) == 0
  assert '\ndense ' in capsys.readouterr().out


def test_bad_input_gets_one_line(layers, capsys):
  assert gdp.run([
      'show', _GRAPH, f'--plan={layers}', '--cluster=2xP100',
      '--output=nowhere/x.json', '--quiet'
  ]) == 2
  error = capsys.readouterr().err
  assert 'its folder does not exist' in error and error.count('\n') == 1


def test_the_next_command_names_a_cluster_that_can_be_typed(tmp_path, capsys):
  """Of a plan for a cluster file it was that cluster's name."""
  lab, plan = tmp_path / 'my lab.json', tmp_path / 'plan.json'
  fields = json.loads(presets.preset('2xP100').to_json())
  lab.write_text(json.dumps({**fields, 'name': 'lab'}))
  gdp_grappler.place(_GRAPH, str(lab), placer='single_device').save(plan)
  assert gdp.run(
      ['show', _GRAPH, f'--plan={plan}', f'--output={tmp_path}/map.json']) == 0
  words = shlex.split(capsys.readouterr().out.partition('gdp place ')[2])
  typed = next(word for word in words if word.startswith('--cluster='))
  assert resolve.resolve(typed.partition('=')[2]) == resolve.resolve(str(lab))


def test_the_next_command_has_what_was_typed():
  typed = [
      'my graph.pb', '--trip_count=3', '--pins=ignore', '--cluster=my lab.json',
      '--max_memory=GPU:0=1GB'
  ]
  arguments = gdp.parser().parse_args(
      ['show', *typed, '--plan=plan.json', '--output=my map.json'])
  # What was typed has all that is needed of the plan.
  said = show._next_step(arguments, placed=None)
  assert shlex.split(said.partition('then gdp place ')[2]) == [
      *typed, '--plan=my map.json', '--output=FILE.json'
  ]

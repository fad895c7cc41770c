"""Tests of `gdp explain` and `gdp diff`."""

import json
import pathlib

import pytest

from gdp_grappler.bin import gdp

_GRAPH = str(pathlib.Path(__file__).parents[1] / 'testdata/dense_train_step.pb')


@pytest.fixture(scope='module')
def plans(tmp_path_factory):
  """Two plans of one graph."""
  folder = tmp_path_factory.mktemp('plans')
  made = []
  for placer in ('metis', 'random'):
    made.append(str(folder / f'{placer}.json'))
    assert gdp.run([
        'place', _GRAPH, '--cluster=2xP100', f'--placer={placer}',
        f'--output={made[-1]}'
    ]) == 0
  return made


def _devices(plan):
  return json.loads(pathlib.Path(plan).read_text())['devices']


def test_an_op_is_explained(plans, capsys):
  name, device = next((name, device)
                      for name, device in _devices(plans[0]).items()
                      if 'MatMul' in name)
  assert gdp.run(['explain', _GRAPH, f'--plan={plans[0]}', name]) == 0
  # A long name has a line of its own.
  out = ' '.join(capsys.readouterr().out.split())
  assert out.startswith(f'{name} (')
  assert f' on {device} ' in out[:len(name) + 40]
  assert 'critical chain' in out and ' with it elsewhere:' in out


def test_a_pattern_is_explained_as_json(plans, capsys):
  assert gdp.run([
      'explain', _GRAPH, f'--plan={plans[0]}', '--cluster=2xP100', '--json',
      '*MatMul*'
  ]) == 0
  fields = json.loads(capsys.readouterr().out)
  devices = _devices(plans[0])
  assert {op['name'] for op in fields['ops']
         } == {name for name in devices if 'MatMul' in name}
  assert all(devices[op['name']] == op['device'] for op in fields['ops'])


def test_two_plans_differ(plans, capsys):
  assert gdp.run(['diff', _GRAPH, *plans]) == 0
  assert ' ops moved; the simulated step changes by ' in capsys.readouterr().out
  assert gdp.run(['diff', _GRAPH, '--cluster=2xP100', '--json', *plans]) == 0
  fields = json.loads(capsys.readouterr().out)
  first, second = map(_devices, plans)
  assert {op['name'] for op in fields['moved']
         } == {name for name in first if first[name] != second[name]}
  assert fields['change_s'] > 0


@pytest.mark.parametrize('command, said', [
    (['explain', _GRAPH, '--plan={}', 'nobody'], 'is called "nobody"'),
    (['explain', _GRAPH, '--plan=none.json', 'x'], 'Cannot read plan none'),
    (['explain', 'none.pb', '--plan={}', 'x'], 'none.pb does not exist'),
    (['explain', _GRAPH, '--plan={}', '--cluster=2xP1', 'x'], '"2xP1"'),
    (['diff', _GRAPH, '{}', 'none.json'], 'Cannot read plan none.json'),
])
def test_bad_input_gets_one_line(plans, capsys, command, said):
  assert gdp.run([*(text.format(plans[0]) for text in command), '--quiet']) == 2
  error = capsys.readouterr().err
  assert said in error and error.count('\n') == 1


@pytest.fixture(scope='module')
def other_card(tmp_path_factory):
  """A plan for another cluster."""
  plan = str(tmp_path_factory.mktemp('other') / 'v100.json')
  assert gdp.run([
      'place', _GRAPH, '--cluster=2xV100', '--placer=metis', f'--output={plan}'
  ]) == 0
  return plan


def test_plans_for_two_clusters_need_one(plans, other_card, tmp_path, capsys):
  """The second plan was priced on the cluster of the first, without a word."""
  page = f'--output={tmp_path}/page.html'
  commands = (['diff', _GRAPH, plans[0], other_card], [
      'report', _GRAPH, f'--plan={plans[0]}', f'--plan={other_card}', page
  ])
  for command in commands:
    assert gdp.run(command) == 2
    assert 'are for different clusters: 2xP100 and 2xV100. ' in (
        capsys.readouterr().err)
    assert gdp.run([*command, '--cluster=2xP100']) == 0


def test_a_map_of_layers_is_for_each_cluster(plans, tmp_path):
  layers = tmp_path / 'map.json'
  layers.write_text('{"dense": "GPU:1"}')
  assert gdp.run(['diff', _GRAPH, plans[0], str(layers)]) == 0

"""`gdp place` and `gdp simulate` on graphs with costs of their own."""

import json
import pathlib
import re
import shlex

import numpy as np
import pytest
import tensorflow as tf

from gdp_grappler import deadlines
from gdp_grappler import errors
from gdp_grappler.api import placing
from gdp_grappler.api import subjects
from gdp_grappler.bin import gdp
from gdp_grappler.bin.commands import common
from gdp_grappler.graph import graph_def_io
from gdp_grappler.graph.sources import sources
from gdp_grappler.placers import registry
from gdp_grappler.placers.policy import move_folder
from gdp_grappler.placers.policy import shipped_policy
from gdp_grappler.placers.simple import random_placer
from helpers import fresh
from helpers import graph_defs
from helpers import profiles
from helpers import tensorboard_events

tf1 = tf.compat.v1
_ROOT = pathlib.Path(__file__).parents[2]
_GRAPH = str(_ROOT / 'tests/testdata/dense_train_step.pb')
_COSTS = ('node { name: "a" id: 1 output_info { size: 8 } compute_cost: 3000 } '
          'node { name: "b" id: 2 compute_cost: 4000 '
          'input_info { preceding_node: 1 } }')


@pytest.fixture(name='folder')
def _folder(tmp_path):
  """The example of the page, and a CostGraphDef."""
  page = (_ROOT / 'docs/graph_json.md').read_text()
  text = re.search(r'```json\n(.*?)```', page, re.DOTALL)[1]
  (tmp_path / 'towers.json').write_text(text)
  (tmp_path / 'costs.pbtxt').write_text(_COSTS)
  return tmp_path


def _run(*arguments):
  return gdp.run([*map(str, arguments), '--quiet'])


@pytest.mark.e2e
@pytest.mark.parametrize('name, step_ms', [('towers.json', 6.2),
                                           ('costs.pbtxt', 7)])
def test_places_and_simulates_without_tensorflow(folder, name, step_ms):
  done = fresh.run_code(f'''
import sys
from gdp_grappler.bin import gdp
graph, plan = {str(folder / name)!r}, {str(folder / 'plan.json')!r}
assert gdp.run(['place', graph, '--cluster=2xP100', '--placer=random',
                '--order=critical_path', '--output=' + plan]) == 0
# The move network needs no TensorFlow, unlike the policy.
for placer in 'gdp_policy', 'gdp_no_policy', 'single_device':
  assert gdp.run(['place', graph, '--cluster=2xP100', '--placer=' + placer,
                  '--output=' + plan]) == 0
assert not [m for m in sys.modules if m.split('.')[0] == 'tensorflow']
assert gdp.run(['simulate', graph, '--plan=' + plan, '--json',
                '--trace=' + plan + '.trace.json']) == 0
assert not [m for m in sys.modules if m.split('.')[0] == 'tensorflow']
''')
  assert done.results['step_time_s'] == pytest.approx(step_ms * 1e-3, rel=.05)
  assert done.results['valid']
  trace = json.loads((folder / 'plan.json.trace.json').read_text())
  assert trace['traceEvents']


def test_simulate_shows_a_graph_of_costs_in_other_viewers(folder, capsys):
  path, plan = folder / 'towers.json', folder / 'plan.json'
  assert _run('place', path, '--cluster=2xP100', '--placer=random', '--output',
              plan) == 0
  assert gdp.run([
      'simulate',
      str(path), f'--plan={plan}', f'--tensorboard={folder / "logs"}',
      f'--node_data={folder / "my nodes.json"}'
  ]) == 0
  out = capsys.readouterr().out
  # A shell takes the command as it is.
  assert shlex.split(out.partition('Next: ')[2].splitlines()[0]) == [
      'model-explorer',
      str(folder / 'my nodes.graph.json'),
      f'--node_data_paths={folder / "my nodes.json"}'
  ]
  nodes = json.loads((folder / 'my nodes.json').read_text())['results']
  [shown] = tensorboard_events.graphs(folder / 'logs')
  assert {name: node['value'] for name, node in nodes.items()} == {
      node.name: node.device.rpartition('device:')[2] for node in shown.node
  } == json.loads(plan.read_text())['devices']


def test_simulate_looks_for_the_folder_of_node_data_first(folder, capsys):
  assert _run('simulate', 'none', '--plan=none', '--node_data',
              folder / 'none' / 'n.json') == 2
  assert 'its folder does not exist' in capsys.readouterr().err


@pytest.mark.parametrize(
    'command, said',
    [([
        'place', 'towers.json', '--cluster=2xP100', '--placer=random',
        '--output=out.pb'
    ], 'has costs but no TensorFlow ops'),
     ([
         'place', 'costs.pbtxt', '--cluster=2xP100', '--placer=random',
         '--output=out.pbtxt'
     ], 'has costs but no TensorFlow ops'),
     ([
         'place', 'towers.json', '--cluster=2xP100', '--placer=random',
         '--output=out.json', '--profile=p.json'
     ], 'Leave out --profile'),
     ([
         'place', 'towers.json', '--cluster=cpu', '--placer=random',
         '--output=out.json'
     ], 'Op "join" is pinned to GPU:0'),
     (['profile', 'towers.json', '--output=out.json'
      ], 'is a graph of costs without TensorFlow ops'),
     (['profile', 'costs.pbtxt', '--output=out.json'
      ], 'is a graph of costs without TensorFlow ops')])
def test_what_cannot_be_done_gets_one_line(folder, monkeypatch, capsys, command,
                                           said):
  monkeypatch.chdir(folder)
  assert _run(*command) == 2
  error = capsys.readouterr().err
  assert said in error and error.count('\n') == 1
  assert not list(folder.glob('out.*'))


def test_a_plan_is_no_graph(folder, capsys):
  """The message said that `gdp place` and `gdp simulate` take the plan."""
  plan = folder / 'plan.json'
  assert _run('place', folder / 'towers.json', '--cluster=2xP100',
              '--placer=random', f'--output={plan}') == 0
  for command, flag in ('profile', 'output'), ('simulate', 'plan'):
    assert _run(command, plan, f'--{flag}={folder / flag}.json') == 2
    assert f'{plan} is a plan, not a graph' in capsys.readouterr().err


def test_a_plan_of_other_sizes_does_not_fit(folder, capsys):
  arguments = '--cluster=2xP100', '--placer=random', '--output'
  path, made = folder / 'towers.json', folder / 'plan.json'
  assert _run('place', path, *arguments, made) == 0
  path.write_text(path.read_text().replace('800000, 400', '800000, 401'))
  assert _run('simulate', path, '--plan', made) == 2
  assert 'was made for graph "two-towers"' in capsys.readouterr().err


def test_trip_count_is_told_and_counts(tmp_path, capsys):

  def make():
    limit = tf1.placeholder(tf.int32, [], name='limit')
    weight = tf.ones([64, 64])
    tf.identity(
        tf1.while_loop(lambda i, _: i < limit, lambda i, x: (i + 1, x @ weight),
                       [0, tf.ones([64, 64])])[1], name='result')

  (tmp_path / 'loop.pb').write_bytes(graph_defs.built(make).SerializeToString())
  steps = []
  for count in (5, 500):
    common = tmp_path / 'loop.pb', f'--trip_count={count}'
    assert _run('place', *common, '--cluster=1xP100', '--placer=single_device',
                '--output', tmp_path / 'plan.json') == 0
    _, told = capsys.readouterr()
    assert f'counted as {count} iterations;' in told
    assert len([l for l in told.splitlines() if l.startswith('gdp: ')]) == 1
    assert _run('simulate', *common, '--plan', tmp_path / 'plan.json',
                '--json') == 0
    steps.append(json.loads(capsys.readouterr().out)['step_time_s'])
  assert steps[1] > 20 * steps[0]


def test_simulate_takes_a_profile(tmp_path, capsys):
  graph = graph_def_io.read(sources.load(_GRAPH))
  made = tmp_path / 'plan.json'
  assert _run('place', _GRAPH, '--cluster=cpu', '--placer=single_device',
              '--output', made) == 0
  profiles.of_graph(graph, np.full(graph.num_ops,
                                   .25)).save(tmp_path / 'profile.json')
  prices = []
  for arguments in ([], ['--profile', tmp_path / 'profile.json']):
    capsys.readouterr()
    assert _run('simulate', _GRAPH, '--plan', made, '--json', *arguments) == 0
    out, told = capsys.readouterr()
    prices.append(json.loads(out))
  busy = [price['devices'][0]['busy_s'] for price in prices]
  assert busy[1] == pytest.approx(.25 * graph.num_ops, rel=1e-3)
  assert told == (f'gdp: Profile {tmp_path}/profile.json of '
                  f'"dense_train_step": CPU:0: {graph.num_ops} ops measured, 0 '
                  'interpolated by type and size, 0 on the scaled roofline.\n')
  assert _run('place', _GRAPH, '--cluster=2xP100', '--placer=single_device',
              '--output', tmp_path / 'other.json', '--profile',
              tmp_path / 'profile.json') == 0
  assert ('GPU:0, GPU:1: all ops on the roofline, as no such device was '
          'profiled.') in capsys.readouterr().err
  assert busy[0] < 1 and prices[1]['step_time_s'] > prices[0]['step_time_s']
  assert _run('simulate', _GRAPH, '--plan', made, '--profile=no/such') == 2
  assert 'no/such' in capsys.readouterr().err


def test_a_time_budget_is_for_the_search(folder, monkeypatch):
  """What was slow to read was left as it was."""
  now, seen = [0.], []
  monkeypatch.setattr(
      deadlines, 'within', lambda seconds, clock: deadlines.Deadline(
          now[0] + seconds, lambda: now[0]))

  def place(self, problem):
    seen.append(problem.time_budget_s)
    return registry.create('single_device').place(problem)

  def read(*arguments, _read=subjects.read):
    now[0] = 40.
    return _read(*arguments)

  monkeypatch.setattr(random_placer.RandomPlacer, 'place', place)
  monkeypatch.setattr(subjects, 'read', read)
  assert _run('place', folder / 'towers.json', '--cluster=2xP100',
              '--placer=random', '--time_budget_s=30', '--output',
              folder / 'plan.json') == 0
  assert 0 < seen[0] <= 30


@pytest.mark.parametrize('options, named, loads', [
    ((), '', False),
    (('--time_budget_s=59',), '', False),
    (('--time_budget_s=60',), '', True),
    (('--time_budget_s=60', '--placer=gdp_held_out'), '', False),
    ((), 'a policy', True),
    (('--placer=metis',), 'a policy', False),
    (('--policy=a policy',), '', True),
    ((), 'moves', False),
    (('--policy=moves',), '', False),
])
def test_tensorflow_is_loaded_before_a_search_that_may_need_it(
    folder, monkeypatch, options, named, loads):
  """The search loaded it, and its notes were shown in spite of --quiet.

  Later TensorFlow was also loaded for a move network, which does not need it.
  """
  calls = []

  def load():
    calls.append('load')

  def place(*unused_arguments, **unused_fields):
    calls.append('place')
    raise errors.GdpError('')

  monkeypatch.setattr(registry, 'factory', lambda *unused_arguments: None)
  monkeypatch.setattr(shipped_policy, 'has_policy', lambda: True)
  monkeypatch.setattr(common, 'load_tensorflow', load)
  monkeypatch.setattr(placing, 'place', place)
  monkeypatch.setattr(move_folder, 'is_here', lambda path: path == 'moves')
  monkeypatch.setenv('GDP_POLICY', named)
  _run('place', folder / 'towers.json', '--cluster=2xP100', *options,
       '--output', folder / 'plan.json')
  assert calls == ['load'] * loads + ['place']


def test_a_policy_goes_with_a_placer_that_uses_a_network(
    folder, monkeypatch, capsys):
  """The command refused --policy beside any --placer."""
  seen = {}

  def place(*unused_arguments, **fields):
    seen.update(fields)
    raise errors.GdpError('')

  arguments = ('place', folder / 'towers.json', '--cluster=2xP100',
               '--policy=p', '--output', folder / 'plan.json', '--placer')
  assert _run(*arguments, 'metis') == 2
  assert ('"metis" uses no network. Leave --policy out'
          in capsys.readouterr().err)
  monkeypatch.setattr(placing, 'place', place)
  _run(*arguments, 'gdp_policy')
  assert (seen['placer'], seen['policy']) == ('gdp_policy', 'p')


def test_one_op_is_not_several(tmp_path, capsys):
  """It was '1 ops'."""
  graph, plan = tmp_path / 'one.json', tmp_path / 'plan.json'
  graph.write_text('{"nodes": [{"name": "a", "seconds": 0.1}]}')
  assert _run('place', graph, '--cluster=2xP100', '--placer=single_device',
              '--output', plan) == 0
  for command in 'simulate', 'show':
    assert _run(command, graph, '--plan', plan) == 0
  assert capsys.readouterr().out.count('one: 1 op ') == 3


def test_a_placement_without_a_gain_says_so(folder, capsys):
  assert _run('place', folder / 'towers.json', '--cluster=2xP100',
              '--placer=single_device', '--output', folder / 'plan.json') == 0
  assert ' on one device: no gain -> ' in capsys.readouterr().out


def _place_large(tmp_path, capsys, *options):
  """What `gdp place` of 3 GB that must be on GPUs says: code, errors."""
  graph, output = tmp_path / 'large.json', tmp_path / 'plan.json'
  graph.write_text(
      json.dumps({
          'schema':
              'gdp-graph/1', 'name':
                  'large', 'defaults': {'cpu': False}, 'nodes': [{
                      'name': f'table{i}', 'op': 'VarHandleOp', 'seconds': 1e-3,
                      'memory': 10**9, 'outputs': 1
                  } for i in range(3)]
      }))
  code = gdp.run(
      ['place',
       str(graph), '--cluster=1xT4', f'--output={output}', *options])
  return code, capsys.readouterr().err, output.exists()


def test_what_cannot_fit_is_an_error_and_nothing_is_written(tmp_path, capsys):
  code, said, written = _place_large(tmp_path, capsys, '--max_memory=GPU:0=2GB')
  assert code == 2 and not written
  assert 'hold 3.0 GB for good' in said and 'table0' in said


def test_what_nearly_fills_a_memory_is_told(tmp_path, capsys):
  code, said, written = _place_large(tmp_path, capsys,
                                     '--max_memory=GPU:0=3.5GB')
  assert code == 0 and written and 'it nearly fills memories: GPU:0' in said


def test_a_wrong_limit_is_one_error(tmp_path, capsys):
  code, said, written = _place_large(tmp_path, capsys, '--max_memory=GPU:0')
  assert code == 2 and not written and said.count('error') == 1
  assert 'such as GPU:0=12GB' in said

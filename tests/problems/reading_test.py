"""Tests of the door: every kind of input, each file read once."""

import collections
import functools
import json
import pathlib
import sys

import numpy as np
import pytest

from gdp_grappler import errors
from gdp_grappler.bin import gdp
from gdp_grappler.cluster import device_figures
from gdp_grappler.cluster import presets
from gdp_grappler.cluster import resolve
from gdp_grappler.graph.sources import sources
from gdp_grappler.problems import reading
from gdp_grappler.problems import request as request_lib
from gdp_grappler.workloads import registry
from helpers import fresh
from helpers import graph_defs
from helpers import profiles

_DENSE = str(pathlib.Path(__file__).parents[1] / 'testdata/dense_train_step.pb')
_ON_P100S = functools.partial(resolve.resolve, '2xP100')
# Path -> how often it was opened; an audit hook cannot be taken back.
_OPENED: collections.Counter[str] = collections.Counter()


def _note(event, arguments, opened=_OPENED):
  """Keeps what it needs: at the end of Python the module's names are gone."""
  if event == 'open':
    opened[str(arguments[0])] += 1


sys.addaudithook(_note)


def _read(graph, where=_ON_P100S, tell=lambda line: None, **fields):
  return reading.read(request_lib.Request(str(graph), **fields), where, tell)


@pytest.fixture(name='towers')
def _towers(tmp_path):
  path = tmp_path / 'towers.json'
  path.write_text(
      json.dumps({
          'nodes':
              [{'name': name, 'seconds': 1, 'outputs': [8]} for name in 'ab'],
          'edges': [['a', 'b']]
      }))
  return path


@pytest.fixture(name='loop')
def _loop(tmp_path):
  """A GraphDef with a loop of unknown length and a variable nobody reads."""
  import tensorflow as tf

  def make():
    limit = tf.compat.v1.placeholder(tf.int32, [], name='limit')
    tf.compat.v1.get_variable('w', [3])
    tf.identity(
        tf.compat.v1.while_loop(lambda i: i < limit, lambda i: i + 1, [0]),
        name='result')

  path = tmp_path / 'loop.pb'
  path.write_bytes(graph_defs.built(make).SerializeToString())
  return path


@pytest.fixture(name='stand_in')
def _stand_in(monkeypatch):
  """Dense layers stand for every workload; as from another machine."""
  monkeypatch.setattr(
      registry, 'source',
      lambda name, tell, architecture: sources.load(_DENSE, name=name))


def test_costs_of_its_own(towers):
  step = _read(towers)
  assert step.graph.names == ('a', 'b') and step.source is None
  # One device: 1 s each, one after the other.
  prices = step.simulator().price(step.graph, np.ones((1, 2), int))
  host = device_figures.CARD_LAUNCH
  assert prices.seconds == pytest.approx(2 + host['dispatch_s'] + host['gap_s'])
  assert step.problem().expert_devices is None
  assert reading.workload(request_lib.Request(str(towers))) is None


def test_a_captured_graph():
  step = _read(_DENSE)
  assert step.graph.name == 'dense_train_step' and step.cost_model is None
  assert step.source.fetches and step.cluster == presets.preset('2xP100')


def test_a_workload_brings_its_expert(stand_in):
  step = _read('rnnlm-2@tiny')
  assert step.graph.name == 'rnnlm-2@tiny' and step.source.devices == ()
  # No op of the stand-in names a stage, so that all are of one.
  expert = step.problem().expert_devices
  assert set(expert.tolist()) == {step.cluster.accelerators[0]}
  request = request_lib.Request('rnnlm-2@tiny')
  assert reading.workload(request).num_devices == 2
  assert reading.whole(request, step) is step


def test_a_workload_is_meant_whatever_folders_there_are(stand_in, tmp_path,
                                                        monkeypatch):
  monkeypatch.chdir(tmp_path)
  (tmp_path / 'rnnlm-2').mkdir()
  assert _read('rnnlm-2').graph.name == 'rnnlm-2'


def test_batch_size_and_trip_count(loop):
  said = []
  steps = [_read(loop, trip_count=count, tell=said.append) for count in (3, 7)]
  assert [step.graph.executions.max() for step in steps] == [3 + 1, 7 + 1]
  assert len(said) == 2 and 'counted as 3 iterations' in said[0]


def test_a_profile_prices_and_is_told(tmp_path):
  graph = _read(_DENSE).graph
  profiles.of_graph(graph, np.full(graph.num_ops, .25),
                    visit_s=0.).save(tmp_path / 'p.json')
  said = []
  step = _read(_DENSE, profile=str(tmp_path / 'p.json'), tell=said.append)
  assert step.problem().op_seconds[:, 0].tolist() == [.25] * graph.num_ops
  assert f'CPU:0: {graph.num_ops} ops measured' in said[0]
  assert 'GPU:0, GPU:1: all ops on the roofline' in said[0]


def test_the_whole_graph_has_what_no_step_needs(loop):
  request = request_lib.Request(str(loop))
  step = reading.read(request, _ON_P100S)
  whole = reading.whole(request, step)
  assert set(step.graph.names) < set(whole.graph.names)
  assert 'w' in set(whole.graph.names) - set(step.graph.names)
  captured = _read(_DENSE)
  assert reading.whole(request_lib.Request(_DENSE), captured) is captured


def test_local_means_the_devices_of_a_captured_graph():
  asked = []

  def where(devices):
    asked.append(tuple(devices))
    return resolve.resolve('local', devices)

  step = _read(_DENSE, where)
  assert asked == [(), step.source.devices]
  assert len(step.cluster.devices) == len(step.source.devices)


def test_measuring_needs_ops_and_no_profile(towers):
  request = request_lib.Request(str(towers))
  with pytest.raises(errors.GdpError, match='cannot be measured'):
    reading.measurable(request, reading.read(request, _ON_P100S))
  step = _read(_DENSE)
  assert reading.measurable(request_lib.Request(_DENSE), step) is step.source
  with pytest.raises(errors.GdpError, match='Leave out profile'):
    reading.measurable(request_lib.Request(_DENSE, profile='p'), step)


@pytest.mark.parametrize('text, said', [
    ('rnnlm-3', 'Graph rnnlm-3 does not exist. Did you mean "rnnlm-'),
    ('none.pb', 'Graph none.pb does not exist. Give a captured graph.*workload')
])
def test_nothing_of_that_name(text, said):
  with pytest.raises(errors.InvalidGraphError, match=said):
    _read(text)


@pytest.mark.parametrize('task, said', [
    ('nothing.pb@2xP100', 'does not exist'),
    ('rnnlm-3@2xP100', 'Did you mean "rnnlm-'),
    ('rnnlm-2', 'names no cluster'),
    ('rnnlm-2@2xP10', 'Did you mean'),
    ('', 'names no cluster'),
])
def test_tasks_are_checked_without_reading_a_graph(task, said):
  with pytest.raises(errors.GdpError, match=said):
    reading.check_task(task)


def test_tasks_that_exist(towers, monkeypatch):
  monkeypatch.setattr(sources, 'read', None)
  monkeypatch.setattr(registry, 'source', None)
  for graph in ('rnnlm-2@tiny', towers, 'keras_applications:ResNet50'):
    reading.check_task(f'{graph}@2xP100')


def test_an_unknown_cluster_is_told_before_anything_is_read():
  with pytest.raises(errors.ClusterError, match='17xP100'):
    _read('none.pb', functools.partial(resolve.resolve, '17xP100'))


def test_costs_and_a_profile_contradict_each_other(towers):
  with pytest.raises(errors.GdpError, match='Leave out profile'):
    _read(towers, profile='p.json')


def test_a_graph_of_costs_has_no_tables(towers):
  """Named tables were silently ignored."""
  with pytest.raises(errors.GdpError, match='Leave out split_tables'):
    _read(towers, split_tables=(('words', 4),))
  assert _read(towers, split_tables='off').graph.num_ops == 2


def test_pins_of_a_graph_of_costs_can_be_ignored(tmp_path):
  """The nodes stayed on their devices in any case."""
  path = tmp_path / 'pinned.json'
  path.write_text(
      json.dumps({'nodes': [{'name': 'a', 'seconds': 1, 'device': 'GPU:1'}]}))
  assert _read(path).graph.pins == ('GPU:1',)
  free = _read(path, pins='ignore').graph
  assert free.pins == ('',) and not free.user_pins.any()


@pytest.mark.parametrize('output', ['plan.json', 'placed.pb'])
def test_place_reads_each_file_once_and_checks_the_profile_first(
    loop, tmp_path, output):
  """A GraphDef was read six times where a GraphDef was to be written."""
  graph = _read(loop).graph
  profile, cluster = tmp_path / 'profile.json', tmp_path / 'cluster.json'
  profiles.of_graph(graph, np.ones(graph.num_ops)).save(profile)
  cluster.write_text(presets.preset('1xP100').to_json())
  _OPENED.clear()
  assert gdp.run([
      'place',
      str(loop), f'--profile={profile}', f'--cluster={cluster}',
      '--placer=single_device', f'--output={tmp_path / output}'
  ]) == 0
  # The first bytes of the graph say that it is no archive. The profile is
  # checked before TensorFlow loads, and before the graph is read.
  assert [_OPENED[str(p)] for p in (loop, profile, cluster)] == [2, 3, 1]


def test_place_reads_costs_once(towers, tmp_path):
  _OPENED.clear()
  assert gdp.run([
      'place',
      str(towers), '--cluster=1xP100', '--placer=single_device',
      f'--output={tmp_path / "plan.json"}'
  ]) == 0
  assert _OPENED[str(towers)] == 2  # The first bytes, and then all.


def test_place_knows_the_experts_of_workloads(stand_in, tmp_path, capsys):
  """`gdp place --placer=human_expert` could never work."""
  arguments = '--cluster=2xP100', '--placer=human_expert'
  output = f'--output={tmp_path / "plan.json"}'
  assert gdp.run(['place', 'rnnlm-2@tiny', *arguments, output]) == 0
  assert gdp.run(
      ['simulate', 'rnnlm-2@tiny', f'--plan={tmp_path / "plan.json"}']) == 0
  capsys.readouterr()
  assert gdp.run(['place', _DENSE, *arguments, output]) == 2
  assert "There is no human expert's placement" in capsys.readouterr().err


@pytest.mark.e2e
def test_costs_need_no_tensorflow(towers):
  done = fresh.run_code(f'''
import json, sys
from gdp_grappler.cluster import resolve
from gdp_grappler.problems import reading
from gdp_grappler.problems import request
step = reading.read(request.Request({str(towers)!r}),
                    lambda devices: resolve.resolve('2xP100', devices))
step.problem().op_seconds
print(json.dumps('tensorflow' in sys.modules))
''')
  assert done.results is False


@pytest.mark.e2e
def test_missing_files_are_reported_before_tensorflow_loads(towers):
  done = fresh.run_code(f'''
import json, sys
from gdp_grappler.bin import gdp
codes = [gdp.run(["simulate", graph, "--plan=none.json", "--cluster=2xP100"])
         for graph in ("none.pb", {str(towers)!r})]
print(json.dumps([codes, "tensorflow" in sys.modules]))
''')
  assert done.results == [[2, 2], False]

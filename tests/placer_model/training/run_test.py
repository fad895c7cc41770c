"""gdp_train's journey in this process, on a graph of a few ops."""

import dataclasses
import io
import json
import pathlib

import numpy as np
import pytest
import rich.console
import tensorflow as tf

from gdp_grappler import errors
from gdp_grappler.cluster import plan
from gdp_grappler.graph import coarsening
from gdp_grappler.graph import graph_def_io
from gdp_grappler.graph.sources import sources
from helpers import eager
from helpers import small_training
from helpers import stopwatches
from helpers import tensorboard_events
from placer_model import export
from placer_model.training import interrupts
from placer_model.training import results
from placer_model.training import run as run_lib
from placer_model.training import task as task_lib

# Not with Bazel's unit tests.
pytestmark = pytest.mark.e2e

_SEED = 3
_PLACERS = ('single_device', 'random', 'metis', 'gdp_train')


@pytest.fixture(scope='module')
def graph_path(tmp_path_factory):
  return small_training.write_graph(tmp_path_factory.mktemp('graph') / 'net.pb')


@pytest.fixture
def no_export(monkeypatch):
  """Exporting starts a process; where the policy is not looked at, skip it."""
  monkeypatch.setattr(export, 'export_policy', lambda *unused: None)


def _options(graph_path, model_dir, **changes):
  options = dict(graph=graph_path, cluster='2xP100', reward='simulated',
                 model_dir=model_dir, iterations=2, rollouts=4, seed=_SEED)
  return task_lib.TrainOptions(**{**options, **changes})


def _train(options):
  tf.keras.utils.set_random_seed(options.seed)
  console = rich.console.Console(file=io.StringIO(), width=80)
  return run_lib.train([options], console), console.file.getvalue()


@pytest.fixture(autouse=True)
def _small(monkeypatch):
  small_training.patch(monkeypatch)


@pytest.fixture(name='eager')
def _eager():
  """A run of few steps is quicker op by op; `finished` is traced."""
  with eager.functions():
    yield


@pytest.fixture(name='finished', scope='module')
def _finished(graph_path, tmp_path_factory):
  """A run that is over: its folder, its record and what it printed."""
  model_dir = tmp_path_factory.mktemp('finished')
  with pytest.MonkeyPatch.context() as monkeypatch:
    small_training.patch(monkeypatch)
    return model_dir, *_train(_options(graph_path, model_dir))


@pytest.mark.usefixtures('eager')
def test_searches_are_a_placement_to_start_from(graph_path, tmp_path,
                                                no_export):
  # Without imitation, which takes many steps.
  options = _options(graph_path, tmp_path, iterations=0, config='paper')
  record, _ = _train(dataclasses.replace(options, searches=2))
  placers = record['graphs'][0]['placers']
  # Both search by the robust price, so their steps differ by chance.
  assert (placers['gdp_train']['step_time_s']
          <= 1.01 * placers['local_search']['step_time_s'])
  with pytest.raises(errors.GdpError, match='searches'):
    _train(dataclasses.replace(options, searches=1))


def test_model_dir_has_all_that_is_promised(graph_path, finished):
  model_dir, record, text = finished
  assert json.loads((model_dir / 'results.json').read_text()) == record
  assert (model_dir / 'config.json').exists()
  assert list((model_dir / 'checkpoints').glob('ckpt-2.index'))
  policy = json.loads((model_dir / 'policy' / 'policy.json').read_text())
  assert policy['units'] == 'coarse'
  graph = graph_def_io.read(sources.load(graph_path))
  placement = plan.load(str(model_dir / 'plans' / 'net.json'), graph)
  assert not placement.violations(graph)
  assert 'simulated' in text
  for name in _PLACERS:
    assert name in text
  assert record['graphs'][0]['verdict'] in ' '.join(text.split())


def test_tensorboard_shows_the_best_placement(finished):
  folder = finished[0] / 'tensorboard'
  plugins = tensorboard_events.plugins(folder)
  assert plugins['placement/timeline'] == 'images'
  assert plugins['reward'] == 'scalars'
  assert plugins['decisions'] == 'histograms'
  [first, last] = tensorboard_events.graphs(folder)
  saved = json.loads((finished[0] / 'plans' / 'net.json').read_text())
  assert {node.name: node.device.rpartition('device:')[2] for node in last.node
         } == saved['devices']
  assert len(first.node) == len(last.node)
  step, text = tensorboard_events.values(folder)['placement/summary']
  assert step == 2 and b'after iteration 2' in text[0]


def test_results_schema(finished):
  _, record, _ = finished
  assert record['schema'] == results.SCHEMA
  assert record['versions']['tensorflow'] == tf.__version__
  assert (record['config'], record['reward'],
          record['seed']) == ('default', 'simulated', _SEED)
  assert (record['network'], record['iterations'],
          record['time_budget_s']) == ('one_shot', 2, None)
  assert record['command'] == ''
  assert record['seconds'] > 0
  [graph] = record['graphs']
  assert graph['name'] == 'net'
  assert graph['cluster'] == {
      'name': '2xP100', 'devices': ['CPU:0', 'GPU:0', 'GPU:1']
  }
  assert len(graph['fingerprint']) == 16
  assert 0 < graph['num_units'] <= graph['num_groups'] <= graph['num_ops']
  assert tuple(graph['placers']) == _PLACERS
  for item in graph['placers'].values():
    assert item['step_time_s'] > 0
    assert item['valid'] is True
    assert item['simulated'] is True
    assert set(item['peak_bytes']) == {'CPU:0', 'GPU:0', 'GPU:1'}
    assert sum(item['ops'].values()) == graph['num_ops']
    assert item['evaluations'] >= 1
    assert 0 <= item['seconds'] <= record['seconds']
    assert item['seed'] == _SEED
  own = graph['placers']['gdp_train']
  assert own['iterations'] == 2
  assert sum(own['evaluations_by_origin'].values()) == own['evaluations']
  # What is minimised is a price that is no lower than the step.
  assert own['curve'][-1][1] >= own['step_time_s']
  assert own['policy_best_step_time_s'] > 0 and own['imitates']


def test_resumed_run_equals_an_uninterrupted_one(graph_path, finished, tmp_path,
                                                 no_export):
  _, whole, _ = finished
  _train(_options(graph_path, tmp_path, iterations=1))
  parts, text = _train(_options(graph_path, tmp_path))
  assert 'Resuming after iteration 1' in text
  assert small_training.without(parts, 'seconds') == small_training.without(
      whole, 'seconds')


@pytest.mark.usefixtures('eager')
def test_an_interrupted_export_tells_of_the_checkpoint(graph_path, tmp_path,
                                                       monkeypatch):

  def interrupt(*unused):
    raise KeyboardInterrupt

  monkeypatch.setattr(export, 'export_policy', interrupt)
  # Without imitation, which takes many steps.
  options = _options(graph_path, tmp_path, iterations=1, config='paper')
  with pytest.raises(interrupts.Interrupted, match='ckpt-1 is there'):
    _train(options)
  monkeypatch.setattr(export, 'export_policy', lambda *unused: None)
  assert 'Resuming after iteration 1' in _train(options)[1]


def _train_both(graph_path, model_dir, **changes):
  """One policy for the graph on two and on four GPUs, without imitation."""
  two = _options(graph_path, model_dir, config='paper', **changes)
  tf.keras.utils.set_random_seed(_SEED)
  console = rich.console.Console(file=io.StringIO(), width=120)
  record = run_lib.train([two, dataclasses.replace(two, cluster='4xP100')],
                         console)
  return record, console.file.getvalue()


@pytest.mark.usefixtures('eager')
def test_several_graphs_one_policy(graph_path, tmp_path, no_export):
  _train_both(graph_path, tmp_path, iterations=1)
  record, text = _train_both(graph_path, tmp_path)
  assert 'Resuming after iteration 2' in text
  assert [g['cluster']['name'] for g in record['graphs']
         ] == ['2xP100', '4xP100']
  for graph in record['graphs']:
    assert graph['placers']['gdp_train']['iterations'] == 2
  assert '2 graphs, one policy (simulated)' in text
  assert 'net@2xP100' in text and 'net@4xP100' in text
  for name in ('net_2xP100', 'net_4xP100'):
    assert (tmp_path / 'plans' / f'{name}.json').exists()
    assert list((tmp_path / 'tensorboard' / name).iterdir())
  with pytest.raises(errors.GdpError, match='another graph'):
    _train(_options(graph_path, tmp_path, config='paper'))


def test_time_budget_stops_early(graph_path, tmp_path, no_export):
  record, _ = _train(
      _options(graph_path, tmp_path, iterations=100000, time_budget_s=0.5))
  assert record['graphs'][0]['placers']['gdp_train']['iterations'] < 1000


def test_another_seed_in_the_same_directory_is_refused(graph_path, finished,
                                                       no_export):
  model_dir, *_ = finished
  before = _contents(model_dir)
  for changes, said in (({'seed': 1}, 'seed'), ({'config': 'paper'}, 'units'),
                        ({'cluster': '4xP100'}, 'cluster'), ({'units': 'fine'},
                                                             'units')):
    with pytest.raises(errors.GdpError, match=f'another {said}'):
      _train(_options(graph_path, model_dir, **changes))
  assert _contents(model_dir) == before


def test_another_graph_in_the_same_directory_is_refused(tmp_path, finished,
                                                        no_export):
  model_dir, *_ = finished
  before = _contents(model_dir)
  other = small_training.write_graph(tmp_path / 'net.pb', width=4)
  with pytest.raises(errors.GdpError, match='another graph'):
    _train(_options(other, model_dir))
  assert _contents(model_dir) == before


def test_starts_from_another_runs_weights(graph_path, tmp_path, finished,
                                          no_export):
  first, *_ = finished
  _train(_options(graph_path, tmp_path, seed=1, init_policy=first,
                  iterations=0))
  identity = json.loads((tmp_path / 'config.json').read_text())
  assert identity['init_policy'] == str(first)


@pytest.mark.usefixtures('eager')
def test_starts_from_a_policy_that_was_exported(graph_path, tmp_path, finished,
                                                no_export):
  """It had to be a run with the same config."""
  first, *_ = finished
  _train(
      _options(graph_path, tmp_path, config='paper', iterations=0,
               init_policy=first / 'policy'))
  there = json.loads((first / 'config.json').read_text())
  identity = json.loads((tmp_path / 'config.json').read_text())
  assert identity['placer'] == there['placer']
  assert identity['units'] == coarsening.NESTED != there['units']


@pytest.mark.usefixtures('eager')
def test_graph_that_fits_nowhere_is_an_error(graph_path, tmp_path, no_export):
  cluster = task_lib.resolve.resolve('2xP100')
  tiny = dataclasses.replace(
      cluster, name='tiny', devices=[
          dataclasses.replace(d, memory_bytes=100) for d in cluster.devices
      ])
  path = tmp_path / 'tiny.json'
  path.write_text(tiny.to_json())
  with pytest.raises(errors.GdpError, match='fits into memory'):
    _train(_options(graph_path, tmp_path / 'model', cluster=str(path)))
  assert list((tmp_path / 'model' / 'checkpoints').glob('ckpt-2.index'))


@pytest.fixture
def failing(monkeypatch):
  """Has a run measure steps that fail in the ways given."""

  def arm(alone, spread):
    monkeypatch.setattr(
        task_lib, '_runner',
        lambda options, request, step, deadline: stopwatches.Runner(
            step.simulator(), lambda devices: alone if len(
                set(devices.tolist()) - {step.cluster.host}) == 1 else spread))

  return arm


def test_steps_that_never_run_end_the_run_at_once(graph_path, tmp_path,
                                                  no_export, failing):
  failing('run', 'run')
  with pytest.raises(errors.MeasurementError,
                     match='fail in all 3 placements to start from: bad run. '):
    _train(_options(graph_path, tmp_path, reward='measured'))
  assert not (tmp_path / 'checkpoints').exists()


@pytest.mark.usefixtures('eager')
def test_steps_that_fail_are_no_want_of_memory(graph_path, tmp_path, no_export,
                                               failing):
  failing('memory', 'run')
  with pytest.raises(errors.GdpError, match='first failure: bad run') as caught:
    _train(_options(graph_path, tmp_path, reward='measured'))
  assert 'memory' not in str(caught.value).replace(str(tmp_path), '')


def _contents(directory: pathlib.Path):
  return {
      p.relative_to(directory): p.read_bytes()
      for p in sorted(directory.rglob('*')) if p.is_file()
  }


@pytest.mark.usefixtures('eager')
def test_paper_preset_has_no_levers(graph_path, tmp_path, no_export):
  record, _ = _train(_options(graph_path, tmp_path, config='paper'))
  counts = record['graphs'][0]['placers']['gdp_train']['evaluations_by_origin']
  assert counts == {'baseline': 3, 'policy': 2 * 4, 'search': 0, 'greedy': 1}


@pytest.mark.usefixtures('eager')
def test_a_run_that_learned_nothing_says_whose_placement_it_keeps(
    graph_path, tmp_path, no_export):
  """METIS' placement was reported as GDP's."""
  record, text = _train(
      _options(graph_path, tmp_path, iterations=0, config='paper'))
  own = record['graphs'][0]['placers']['gdp_train']
  assert own['found_by'] == 'metis'
  assert own['policy_best_step_time_s'] == own['policy_step_time_s']
  assert 'the best placement of the run, by metis' in ' '.join(text.split())


def test_best_is_never_worse_than_single_device(graph_path, tmp_path,
                                                no_export):
  record, _ = _train(_options(graph_path, tmp_path, iterations=0))
  placers = record['graphs'][0]['placers']
  assert (placers['gdp_train']['step_time_s']
          <= placers['single_device']['step_time_s'] + 1e-12)
  assert np.isfinite(placers['gdp_train']['policy_step_time_s'])

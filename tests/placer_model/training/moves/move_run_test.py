"""gdp_train's journey with the move network, on a graph of a few ops."""

import dataclasses
import io
import json
import types

import pytest
import rich.console
import tensorflow as tf

from gdp_grappler import deadlines
from gdp_grappler import errors
from gdp_grappler.cluster import plan
from gdp_grappler.graph import graph_def_io
from gdp_grappler.graph.sources import sources
from gdp_grappler.placers import registry
from gdp_grappler.placers.policy import move_folder
from gdp_grappler.placers.search.moves import shipped_moves
from helpers import small_training
from helpers import stopwatches
from helpers import tensorboard_events
from placer_model.training import network_kinds
from placer_model.training import task as task_lib
from placer_model.training.moves import move_run
from placer_model.training.moves import move_trainer

# Not with Bazel's unit tests.
pytestmark = pytest.mark.e2e

_PLACERS = ('single_device', 'random', 'metis', 'gdp', 'gdp_train')


@pytest.fixture(name='graph_path', scope='module')
def _graph_path(tmp_path_factory):
  return small_training.write_graph(tmp_path_factory.mktemp('graph') / 'net.pb')


@pytest.fixture(autouse=True)
def _small(monkeypatch):
  small_training.patch(monkeypatch)


def _options(graph_path, model_dir, **changes):
  options = dict(graph=graph_path, cluster='2xP100', reward='simulated',
                 model_dir=model_dir, iterations=2, seed=3,
                 network=network_kinds.MOVES)
  return task_lib.TrainOptions(**{**options, **changes})


def _train(*every, deadline=None):
  tf.keras.utils.set_random_seed(3)
  console = rich.console.Console(file=io.StringIO(), width=200)
  return move_run.train(every, console, deadline), console.file.getvalue()


@pytest.fixture(name='finished', scope='module')
def _finished(graph_path, tmp_path_factory):
  """A run that is over: its folder, its record and what it printed."""
  model_dir = tmp_path_factory.mktemp('finished')
  with pytest.MonkeyPatch.context() as monkeypatch:
    small_training.patch(monkeypatch)
    return model_dir, *_train(_options(graph_path, model_dir))


def _own(record):
  return record['graphs'][0]['placers']['gdp_train']


def test_model_dir_has_all_that_is_promised(graph_path, finished):
  model_dir, record, text = finished
  assert json.loads((model_dir / 'results.json').read_text()) == record
  assert list((model_dir / 'checkpoints').glob('ckpt-2*.index'))
  graph = graph_def_io.read(sources.load(graph_path))
  placement = plan.load(str(model_dir / 'plans' / 'net.json'), graph)
  assert not placement.violations(graph)
  policy = json.loads((model_dir / 'policy' / 'policy.json').read_text())
  assert policy['kind'] == move_folder.MOVES
  assert policy['graph_fingerprint'] == graph.fingerprint
  assert tuple(record['graphs'][0]['placers']) == _PLACERS
  for said in ('x one device', 'x the start', 'x gdp',
               record['graphs'][0]['learning']):
    assert said in text
  plugins = tensorboard_events.plugins(model_dir / 'tensorboard')
  assert plugins['gain_per_price'] == plugins['critic_loss'] == 'scalars'
  assert plugins['placement/timeline'] == 'images'


def test_no_plan_is_worse_than_that_of_gdp(finished):
  [graph] = finished[1]['graphs']
  best = min(e['step_time_s'] for e in graph['placers'].values())
  assert _own(finished[1])['step_time_s'] <= best * (1 + 1e-9)
  assert _own(finished[1])['iterations'] == 2


def test_the_search_leaves_time_for_control_edges(monkeypatch):
  """No run with a time budget had an ordered step of its result."""
  seconds = []
  monkeypatch.setattr(move_run.move_search, 'search_on',
                      lambda *args: seconds.append(args[-1]))
  run = types.SimpleNamespace(
      _judged=lambda _: types.SimpleNamespace(network=None),
      _learner=types.SimpleNamespace(network=lambda: None), _searches=True,
      _trainers=[None, None], _config=types.SimpleNamespace(search_trials=1),
      _deadline=deadlines.within(100., deadlines.still))
  move_run._Run.final_network(run)
  assert seconds == pytest.approx([47.5, 95.])


def test_the_placer_uses_what_was_exported(finished):
  network = move_folder.load(finished[0] / 'policy')
  before, after = finished[1]['gain_per_price']
  shipped = network.digest == shipped_moves.network().digest
  assert shipped == (after <= before)
  assert registry.create('gdp_policy', str(
      finished[0] / 'policy'))._network.digest == (network.digest)


def test_resumed_run_equals_an_uninterrupted_one(graph_path, finished, tmp_path,
                                                 monkeypatch):
  whole_dir, whole, _ = finished

  class Killed(Exception):
    pass

  def killed(self):
    raise Killed

  with monkeypatch.context() as patched:
    patched.setattr(move_run._Run, 'final_network', killed)
    with pytest.raises(Killed):
      _train(_options(graph_path, tmp_path, iterations=1))
  parts, text = _train(_options(graph_path, tmp_path))
  assert 'Resuming after iteration 1' in text
  assert small_training.without(parts, 'seconds',
                                'learning') == small_training.without(
                                    whole, 'seconds', 'learning')
  assert (move_folder.load(tmp_path / 'policy').digest == move_folder.load(
      whole_dir / 'policy').digest)


def test_a_folder_of_another_run_is_refused(graph_path, finished, tmp_path):
  model_dir, *_ = finished
  for changes, said in (({'seed': 1}, 'seed'), ({'cluster': '4xP100'},
                                                'cluster')):
    with pytest.raises(errors.GdpError, match=f'another {said}'):
      _train(_options(graph_path, model_dir, **changes))
  (tmp_path / 'config.json').write_text('{"graph": "of one shot"}')
  with pytest.raises(errors.GdpError, match='another network'):
    _train(_options(graph_path, tmp_path))


def test_one_policy_of_two_clusters_starts_from_another_run(
    graph_path, finished, tmp_path):
  two = _options(graph_path, tmp_path, init_policy=finished[0], iterations=1)
  record, text = _train(two, dataclasses.replace(two, cluster='4xP100'))
  assert '2 graphs, one policy (simulated)' in text
  assert {p.name for p in (tmp_path / 'plans').iterdir()
         } == {'net_2xP100.json', 'net_4xP100.json'}
  policy = json.loads((tmp_path / 'policy' / 'policy.json').read_text())
  start = move_folder.load(finished[0] / 'policy')
  assert policy['start'] == start.digest[:16]


def test_a_policy_of_one_shot_is_no_start(tmp_path):
  (tmp_path / 'policy.json').write_text('{"schema": "x"}')
  with pytest.raises(errors.GdpError, match='--network=one_shot'):
    move_run.first_network(tmp_path)


def test_the_clock_ends_the_training(graph_path, tmp_path, monkeypatch):
  """The test passed although the time was over before the first iteration."""
  step, now_s = move_trainer.MoveTrainer.step, [0.]

  def timed(self, deadline):
    report = step(self, deadline)
    now_s[0] += .2
    return report

  monkeypatch.setattr(move_trainer.MoveTrainer, 'step', timed)
  record, _ = _train(_options(graph_path, tmp_path, iterations=100),
                     deadline=deadlines.within(3., lambda: now_s[0]))
  # Writing files gets 2 s, and the training 0.4 s, or 0.7 s if it finds more.
  assert 2 <= _own(record)['iterations'] <= 4


@pytest.mark.parametrize('failure', ['', 'run'])
def test_steps_are_timed(graph_path, tmp_path, monkeypatch, failure):
  monkeypatch.setattr(
      task_lib, '_runner',
      lambda options, request, step, deadline: stopwatches.Runner(
          step.simulator(), lambda devices: failure))
  options = _options(graph_path, tmp_path, reward='measured', iterations=1)
  if failure:
    with pytest.raises(errors.MeasurementError, match='fail in all 3'):
      _train(options)
    return
  record, _ = _train(options)
  assert not _own(record)['simulated']
  assert _own(record)['evaluations_by_origin']['search'] == 0
  assert record['gain_per_price'] == [None, None]

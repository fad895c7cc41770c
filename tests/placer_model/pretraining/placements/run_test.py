"""Runs of a few small rounds."""

import placer_model  # isort: skip  # before TensorFlow  # noqa: F401

import dataclasses
import json
import pathlib

import pytest
import tensorflow as tf

from gdp_grappler import errors
from gdp_grappler.placers import step as step_lib
from gdp_grappler.placers.policy import learned
from gdp_grappler.workloads.synthetic import synthetic
from helpers import clusters
from helpers import eager
from helpers import graphs
from helpers import problems
from placer_model import config as placer_config
from placer_model import export
from placer_model.pretraining.placements import config as config_lib
from placer_model.pretraining.placements import run as run_lib
from placer_model.pretraining.placements import teacher

_CONFIG = config_lib.PlacementConfig(
    rounds=2, problems=1, steps=2, batch=1, warm=2,
    network=placer_config.TRANSFER.replace(hidden_units=8, graph_layers=1,
                                           transformer_layers=1, heads=2,
                                           head_units=4, feed_forward_units=8,
                                           type_buckets=8),
    teacher=teacher.TeacherConfig(
        drawn=synthetic.Config(ops=(100, 150), accelerators=(2, 3))))


@pytest.fixture(autouse=True, scope='module')
def _eager():
  with eager.functions():
    yield


def _pretrained(folder: pathlib.Path, seed: int = 0, config=_CONFIG, told=None,
                **options) -> run_lib.Curve:
  tf.keras.utils.set_random_seed(0)
  held_out = {
      'a/b@c':
          step_lib.Step(graphs.random_graph(1, 40), clusters.make_cluster(2))
  }
  return run_lib.pretrain(
      run_lib.PlacementOptions(folder, config, seed, **options), held_out,
      (told if told is not None else []).append)


class _Clock:
  """A second passes each time that somebody looks."""

  def __init__(self):
    self.now = 0.

  def __call__(self):
    self.now += 1.
    return self.now


@pytest.fixture(name='finished', scope='module')
def _finished(tmp_path_factory):
  """The folder of a run that did not stop, its curve, and what it said."""
  folder, told = tmp_path_factory.mktemp('whole'), []
  return folder, _pretrained(folder, told=told), told


def test_a_run_that_goes_on_is_the_one_that_did_not_stop(
    finished, tmp_path, monkeypatch):
  folder, whole, told = finished
  assert len(whole) == 2 and told[0].startswith('round 1 of 2, loss ')
  assert 'held out' in told[1]
  told, exported = [], []
  monkeypatch.setattr(export, 'export_policy',
                      lambda *args: exported.append(args))
  run_lib.pretrain(
      run_lib.PlacementOptions(tmp_path / 'parts', _CONFIG, time_budget_s=1.5),
      {}, told.append, _Clock())
  assert exported[0][1:] == (tmp_path / 'parts/policy', {
      'units': 'nested', 'seed': 0, 'examples': 1, 'rounds': 1
  })
  assert told[-1] == 'The time is up after 1 of 2 rounds.'
  parts = _pretrained(tmp_path / 'parts')
  assert [line['loss'] for line in parts] == [line['loss'] for line in whole]
  assert json.loads((tmp_path / 'parts/curves.json').read_text()) == parts
  whole_weights = export.load_network(folder / 'policy').get_weights()
  for one, other in zip(whole_weights, exported[1][0].get_weights(),
                        strict=True):
    assert (one == other).all()


def test_what_is_exported_places(finished):
  policy = finished[0] / 'policy'
  problem = problems.make(graphs.random_graph(2, 60))
  assert learned.metadata(policy)['units'] == 'nested'
  placement = learned.LearnedPlacer(str(policy)).place(problem)
  assert not placement.violations(problem.graph)


def test_a_run_of_the_version_before_is_gone_on_with(tmp_path, monkeypatch):
  """It was refused as a run of another config, for a field without effect."""
  monkeypatch.setattr(export, 'export_policy', lambda *_: None)
  config = dataclasses.replace(_CONFIG, rounds=0)
  _pretrained(tmp_path, config=config)
  path = tmp_path / 'examples.json'
  text = path.read_text()
  assert text.count('graph_layers=1, ') == 1
  for neighbors in (0, 4):
    path.write_text(
        text.replace('graph_layers=1, ',
                     f'graph_layers=1, max_neighbors={neighbors}, '))
    if not neighbors:
      assert not _pretrained(tmp_path, config=config)
  with pytest.raises(errors.GdpError, match='another seed'):
    _pretrained(tmp_path, config=config)


def test_a_policy_of_another_run_stays(tmp_path):
  (tmp_path / 'policy').mkdir()
  with pytest.raises(errors.GdpError, match='policy is from another run'):
    _pretrained(tmp_path, config=dataclasses.replace(_CONFIG, rounds=0))
  assert [path.name for path in tmp_path.iterdir()] == ['policy']


def test_another_run_is_not_gone_on_with(tmp_path, monkeypatch):
  monkeypatch.setattr(export, 'export_policy', lambda *_: None)
  config = dataclasses.replace(_CONFIG, rounds=0)
  _pretrained(tmp_path, config=config)
  with pytest.raises(errors.GdpError, match='another seed'):
    _pretrained(tmp_path, seed=1, config=config)
  with pytest.raises(errors.GdpError, match='number of rounds'):
    _pretrained(tmp_path)
  run_lib.restart(tmp_path)
  assert not any(tmp_path.iterdir())
  (tmp_path / 'examples').mkdir()
  (tmp_path / 'examples.json').write_text('{')
  with pytest.raises(errors.GdpError, match='Cannot go on'):
    _pretrained(tmp_path, config=config)
  # They may belong to another program.
  with pytest.raises(errors.GdpError, match='would remove examples.json, exa'):
    run_lib.restart(tmp_path)
  assert len(list(tmp_path.iterdir())) == 2

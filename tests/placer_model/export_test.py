"""Tests of the exported policy."""

import placer_model  # isort: skip  # before TensorFlow  # noqa: F401

import functools
import importlib.metadata
import json
import pathlib
import shutil

import numpy as np
import pytest
import tensorflow as tf

from gdp_grappler import environment
from gdp_grappler import errors
from gdp_grappler.features import schema
from gdp_grappler.placers.policy import policy_ops
from placer_model import config as config_lib
from placer_model import export
from placer_model import network as network_lib

SMALL = config_lib.PlacerConfig(type_buckets=32, type_units=4, hidden_units=16,
                                graph_layers=1, transformer_layers=1, heads=2,
                                head_units=4, feed_forward_units=12,
                                segment_length=8, device_units=8,
                                initial_logit_scale=1.0)


@pytest.fixture(autouse=True, scope='module')
def _traced_once():
  with pytest.MonkeyPatch.context() as patches:
    patches.setattr(export, 'Policy', functools.cache(export.Policy))
    yield


@pytest.fixture(name='network', scope='module')
def _network():
  return network_lib.PlacerNetwork(SMALL)


@pytest.fixture(name='policy', scope='module')
def _policy(network, tmp_path_factory):
  """Exported, which includes the comparison in a fresh process."""
  directory = tmp_path_factory.mktemp('models') / 'new' / 'policy'
  export.export_policy(network, directory, {'units': 'coarse'})
  return directory


def test_it_survives_and_serves_other_sizes(network, policy):
  loaded = tf.saved_model.load(str(policy))
  for size in ((1, 0, 1), (5, 4, 2), (70, 200, 9)):
    features = export.random_features(*size, seed=7)
    found = loaded.place(*features.values()).numpy()
    expected = network({k: tf.constant(v) for k, v in features.items()})
    assert export.close(found, expected.numpy(), features['allowed'])


def test_its_network_can_go_on_learning(network, policy):
  again = export.load_network(policy)
  assert again.config == SMALL
  for found, expected in zip(again.get_weights(), network.get_weights()):
    np.testing.assert_array_equal(found, expected)
  assert again.trainable_variables


@pytest.mark.parametrize('breakage, why', [
    (lambda folder: (folder / 'policy.json').write_text('{}'), 'not a policy'),
    (lambda folder: (folder / 'saved_model.pb').unlink(), 'cannot be read'),
    (lambda folder: next(folder.glob('variables/*.index')).write_bytes(b'x'),
     'damaged'),
])
def test_a_broken_one_does_not(old, breakage, why):
  breakage(old)
  with pytest.raises(errors.PolicyMismatchError, match=why):
    export.load_network(old)


def test_nor_does_one_that_says_another_shape(old):
  described = json.loads((old / 'policy.json').read_text())
  described['config']['hidden_units'] *= 2
  described = {
      key: value for key, value in described.items()
      if key not in policy_ops.SEALS
  }
  (old / 'policy.json').write_text(json.dumps(policy_ops.sealed(old,
                                                                described)))
  with pytest.raises(errors.PolicyMismatchError, match='cannot be read'):
    export.load_network(old)


def test_close_is_relative_to_allowed_logits():
  allowed = np.array([[True, False]])
  masked = network_lib.MASKED_LOGIT
  expected = np.array([[50.0, masked]])
  assert export.close(expected + [[4e-4, 0]], expected, allowed)
  assert not export.close(expected + [[6e-4, 0]], expected, allowed)
  assert not export.close(expected * [[np.nan, 1]], expected, allowed)


def test_the_description(policy):
  description = json.loads((policy / 'policy.json').read_text())
  assert description['schema'] == schema.fingerprint()
  assert description['units'] == 'coarse'
  assert config_lib.PlacerConfig(**description['config']) == SMALL
  assert description['versions']['tensorflow'] == importlib.metadata.version(
      'tensorflow')


def test_nothing_else_is_left_behind(policy):
  assert [p.name for p in policy.parent.iterdir()] == ['policy']


def test_there_is_no_keras_in_it(policy):
  content = (policy / 'saved_model.pb').read_bytes()
  assert b'keras_metadata' not in content
  assert not (policy / 'keras_metadata.pb').exists()


def test_a_default_policy_is_small(tmp_path):
  network = network_lib.PlacerNetwork(config_lib.preset('default'))
  export._write(export.Policy(network), tmp_path / 'policy', {})
  size = sum(
      p.stat().st_size for p in (tmp_path / 'policy').rglob('*') if p.is_file())
  assert size < 2_000_000


def test_what_the_paper_preset_adds_may_be_loaded(tmp_path):
  config = SMALL.replace(positions=3, graph_residual=True, centred_head=True)
  export.export_policy(network_lib.PlacerNetwork(config), tmp_path / 'policy',
                       {})
  assert (tmp_path / 'policy' / 'policy.json').exists()


@pytest.fixture(name='old')
def _old(policy, tmp_path):
  """A copy of it."""
  return shutil.copytree(policy, tmp_path / 'policy')


def test_it_replaces_a_policy_whatever_keras_a_user_chose(
    network, old, tmp_path, monkeypatch):
  # Once nobody could export who had set TF_USE_LEGACY_KERAS.
  monkeypatch.setattr(environment, '_USERS_KERAS', '1')
  export.export_policy(network, old, {'number': 2})
  description = json.loads((tmp_path / 'policy' / 'policy.json').read_text())
  assert description['number'] == 2
  assert [p.name for p in tmp_path.iterdir()] == ['policy']


def test_it_does_not_replace_anything_else(network, tmp_path):
  (tmp_path / 'thesis.tex').write_text('years of work')
  with pytest.raises(export.ExportError, match='is not a policy'):
    export.export_policy(network, tmp_path, {})
  assert (tmp_path / 'thesis.tex').exists()


def test_metadata_may_not_hide_ours(network, tmp_path):
  with pytest.raises(export.ExportError, match='schema'):
    export.export_policy(network, tmp_path / 'policy', {'schema': 'x'})


def test_metadata_must_be_json(network, tmp_path):
  with pytest.raises(export.ExportError, match='JSON'):
    export.export_policy(network, tmp_path / 'policy', {'x': object()})


def test_an_unwritable_place_is_one_error(network, tmp_path):
  (tmp_path / 'file').write_text('')
  with pytest.raises(export.ExportError, match='Cannot write policy'):
    export.export_policy(network, tmp_path / 'file' / 'policy', {})


def test_a_full_disk_leaves_the_old_policy(network, old, tmp_path, monkeypatch):

  def fail(*_, **__):
    raise tf.errors.ResourceExhaustedError(None, None, 'No space left')

  monkeypatch.setattr(tf.saved_model, 'save', fail)
  with pytest.raises(export.ExportError, match='No space left'):
    export.export_policy(network, old, {'units': 'fine'})
  assert [p.name for p in tmp_path.iterdir()] == ['policy']
  description = json.loads((old / 'policy.json').read_text())
  assert description['units'] == 'coarse'


def test_other_logits_are_noticed(network, tmp_path, monkeypatch):
  """A policy whose variables are not the network's must not get out."""
  write = export._write
  other = export.Policy(network_lib.PlacerNetwork(SMALL.replace(seed=5)))
  monkeypatch.setattr(export, '_write', lambda _, *args: write(other, *args))
  with pytest.raises(export.ExportError, match='other logits'):
    export.export_policy(network, tmp_path / 'policy', {})
  assert not list(tmp_path.iterdir())


def test_a_damaged_policy_is_noticed(network, tmp_path, monkeypatch):
  write = export._write

  def damage(policy, directory, description):
    write(policy, directory, description)
    next(pathlib.Path(directory).glob('variables/*.data*')).unlink()

  monkeypatch.setattr(export, '_write', damage)
  with pytest.raises(export.ExportError, match='does not load'):
    export.export_policy(network, tmp_path / 'policy', {})
  assert not list(tmp_path.iterdir())


def test_a_loader_that_imports_more_is_noticed(network, tmp_path, monkeypatch):
  monkeypatch.setattr(export, '_LOADER', 'helpers.child_functions:with_keras_2')
  with pytest.raises(export.ExportError, match='imported tf_keras'):
    export.export_policy(network, tmp_path / 'policy', {})


def test_it_is_held_against_optimized_graphs_whatever_this_process_does():
  option = 'disable_meta_optimizer'
  tf.config.optimizer.set_experimental_options({option: True})
  try:
    with export._optimizing():
      assert not tf.config.optimizer.get_experimental_options()[option]
    assert tf.config.optimizer.get_experimental_options()[option]
  finally:
    tf.config.optimizer.set_experimental_options({option: False})

"""Where a run's first weights come from."""

import dataclasses
import json
import pathlib
import shutil
import types

import numpy as np
import pytest

from gdp_grappler import errors
from gdp_grappler.graph import coarsening
from gdp_grappler.placers.policy import policy_ops
from placer_model import config as config_lib
from placer_model import export
from placer_model.training import initial_weights
from placer_model.training import task as task_lib

_SHIPPED = initial_weights.folder(initial_weights.SHIPPED)


def _options(**changes) -> task_lib.TrainOptions:
  return dataclasses.replace(
      task_lib.TrainOptions('net.pb', '2xP100', 'simulated',
                            pathlib.Path('model')), **changes)


def test_chance_makes_them_by_the_preset_and_the_seed():
  config = initial_weights.network(None, 'paper', 3).config
  assert config == config_lib.preset('paper').replace(seed=3)


def test_a_policy_brings_its_sizes_its_weights_and_its_units():
  found = initial_weights.network(_SHIPPED, 'default', 3)
  expected = export.load_network(_SHIPPED)
  assert found.config == expected.config
  assert found.config != config_lib.preset('default').replace(seed=3)
  assert len(found.get_weights()) == len(expected.get_weights()) > 0
  for one, other in zip(found.get_weights(), expected.get_weights()):
    np.testing.assert_array_equal(one, other)
  assert _options(init_policy=_SHIPPED).kind_of_units == coarsening.NESTED


def test_without_a_policy_units_are_those_of_the_config():
  assert _options().kind_of_units == coarsening.COARSE
  assert _options(config='paper').kind_of_units == coarsening.NESTED
  assert _options(init_policy=_SHIPPED,
                  units='fine').kind_of_units == coarsening.FINE


@pytest.fixture(name='copy')
def _copy(tmp_path):
  """The policy that is shipped, to be changed."""
  return shutil.copytree(_SHIPPED, tmp_path / 'policy')


def _say(folder, **changes):
  path = folder / 'policy.json'
  path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_a_policy_of_fine_units_decides_about_fine_ones(copy):
  _say(copy, units=coarsening.FINE)
  assert _options(init_policy=copy).kind_of_units == coarsening.FINE


def test_what_draws_for_nested_sets_has_them_whatever_the_policy(copy):
  _say(copy, units=coarsening.COARSE)
  options = _options(init_policy=copy)
  assert options.kind_of_units == coarsening.COARSE
  assert dataclasses.replace(options,
                             config='paper').kind_of_units == coarsening.NESTED


@pytest.mark.parametrize('ablation', sorted(config_lib.ABLATIONS))
def test_an_ablation_refuses_a_policy_with_the_part_that_it_leaves_out(
    ablation):
  """A run of an ablation trained the whole network of the shipped policy."""
  with pytest.raises(errors.GdpError, match=f'{ablation} is a network with'):
    initial_weights.network(_SHIPPED, ablation, 0)


@pytest.fixture(name='ablated')
def _ablated(monkeypatch):
  """The policy that is shipped, as one without attention."""
  network = types.SimpleNamespace(config=config_lib.TRANSFER.replace(
      attention=False))
  monkeypatch.setattr(export, 'load_network', lambda _: network)
  return network


def test_an_ablation_takes_a_policy_of_its_own(ablated):
  assert initial_weights.network(_SHIPPED, 'paper_no_attention', 0) is ablated


@pytest.mark.usefixtures('ablated')
def test_a_whole_network_refuses_a_policy_of_an_ablation():
  """A run of gdp_one trained a network without attention, and said nothing."""
  with pytest.raises(errors.GdpError, match='gdp_one is a network with'):
    initial_weights.network(_SHIPPED, 'gdp_one', 0)


@pytest.mark.parametrize('attention, preset', [(True, 'paper_no_attention'),
                                               (False, 'gdp_one')])
def test_a_run_of_other_parts_is_refused(tmp_path, attention, preset):
  """An ablation began with the weights of a run with the part."""
  (tmp_path / 'checkpoints').mkdir()
  (tmp_path / 'checkpoints' / 'ckpt-1.index').touch()
  (tmp_path / 'config.json').write_text(
      json.dumps({'placer': {'attention': attention}}))
  with pytest.raises(errors.GdpError,
                     match=f'{preset} is a network with attention'):
    initial_weights.network(tmp_path, preset, 0)


def test_a_policy_of_an_earlier_version_is_read(copy):
  """Policies were refused because of a field that later versions lack."""
  path = copy / 'policy.json'
  written = json.loads(path.read_text())

  def write(max_neighbors):
    config = written['config'] | {'max_neighbors': max_neighbors}
    path.write_text(
        json.dumps(policy_ops.sealed(copy, written | {'config': config})))

  write(0)
  expected = export.load_network(_SHIPPED)
  assert initial_weights.network(copy, 'default', 0).config == expected.config
  write(4)
  with pytest.raises(errors.PolicyMismatchError,
                     match='this version has no field max_neighbors = 4'):
    initial_weights.network(copy, 'default', 0)


@pytest.mark.parametrize('there', [True, False])
def test_neither_a_policy_nor_a_run_is_one_error(tmp_path, there):
  folder = tmp_path / 'somewhere'
  if there:
    (folder / 'checkpoints').mkdir(parents=True)
  with pytest.raises(errors.GdpError, match='neither a policy nor checkpoints'):
    initial_weights.network(folder, 'default', 0)


def test_a_policy_for_other_features_is_refused(copy):
  _say(copy, schema='other')
  with pytest.raises(errors.PolicyMismatchError, match='other features'):
    initial_weights.network(copy, 'default', 0)


def test_a_damaged_policy_is_refused(copy):
  assert initial_weights.network(copy, 'default', 0)
  weights = copy / 'variables' / 'variables.data-00000-of-00001'
  weights.write_bytes(weights.read_bytes()[:-100])
  with pytest.raises(errors.PolicyMismatchError):
    initial_weights.network(copy, 'default', 0)

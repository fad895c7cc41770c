import json
import pathlib

import pytest

from gdp_grappler import errors
from gdp_grappler.placers import registry
from gdp_grappler.placers.policy import learned
from gdp_grappler.placers.policy import move_folder
from gdp_grappler.placers.policy import named_policy
from gdp_grappler.placers.policy import shipped_policy
from gdp_grappler.placers.search.moves import shipped_moves


@pytest.fixture(name='moves')
def _moves(tmp_path):
  move_folder.save(tmp_path / 'moves', shipped_moves.network(), {})
  return tmp_path / 'moves'


@pytest.fixture(autouse=True)
def _nothing_loaded(monkeypatch):
  monkeypatch.delenv('GDP_POLICY', raising=False)
  monkeypatch.setattr(learned, '_load', pytest.fail)


def test_argument_and_variable_name_a_network(moves, monkeypatch):
  policy, digest = shipped_policy.shipped_policy(), shipped_moves.network(
  ).digest
  assert named_policy.read(None) is None
  assert named_policy.read(str(moves)).digest == digest
  assert named_policy.read(policy) is None  # Without loading the SavedModel.
  monkeypatch.setenv('GDP_POLICY', str(moves))
  assert named_policy.read(None).digest == digest
  assert named_policy.read(policy) is None


def test_a_folder_without_a_network_is_refused(tmp_path):
  with pytest.raises(errors.PolicyMismatchError, match='is not a policy'):
    named_policy.read(str(tmp_path / 'none'))
  (tmp_path / 'loop').symlink_to(tmp_path / 'loop')
  with pytest.raises(errors.PolicyMismatchError, match='is not a policy'):
    named_policy.read(str(tmp_path / 'loop'))


def _damage(moves):
  path = pathlib.Path(moves, 'policy.json')
  path.write_text(json.dumps(json.loads(path.read_text()) | {'schema': 'x'}))


def test_a_damaged_move_network_is_refused(moves):
  _damage(moves)
  with pytest.raises(errors.PolicyMismatchError, match='is damaged'):
    named_policy.read(str(moves))


def test_the_variable_of_the_environment_is_checked_and_named(
    tmp_path, moves, monkeypatch):
  monkeypatch.setenv('GDP_POLICY', str(tmp_path))
  with pytest.raises(errors.PolicyMismatchError, match='^GDP_POLICY=.*not a '):
    named_policy.read(None)
  named_policy.read(str(moves))  # The argument overrides the variable.


@pytest.mark.parametrize('name', ['gdp', 'gdp_policy'])
def test_placers_name_the_variable_of_a_damaged_network(moves, monkeypatch,
                                                        name):
  """The error once did not say that GDP_POLICY names the folder."""
  _damage(moves)
  monkeypatch.setenv('GDP_POLICY', str(moves))
  with pytest.raises(errors.PolicyMismatchError,
                     match=r'^GDP_POLICY=.*is damaged'):
    registry.create(name)

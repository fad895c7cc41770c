import json
import pathlib

import pytest

from gdp_grappler import errors
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


def test_networks_of_both_kinds_pass_without_loading_a_model(moves):
  named_policy.check(None)
  named_policy.check(str(shipped_policy.shipped_policy()))
  named_policy.check(str(moves))


def test_a_folder_without_a_network_is_refused(tmp_path):
  with pytest.raises(errors.PolicyMismatchError, match='is not a policy'):
    named_policy.check(str(tmp_path / 'none'))


def test_a_damaged_move_network_is_refused(moves):
  path = pathlib.Path(moves, 'policy.json')
  path.write_text(json.dumps(json.loads(path.read_text()) | {'schema': 'x'}))
  with pytest.raises(errors.PolicyMismatchError, match='is damaged'):
    named_policy.check(str(moves))


def test_the_variable_of_the_environment_is_checked_and_named(
    tmp_path, moves, monkeypatch):
  monkeypatch.setenv('GDP_POLICY', str(tmp_path))
  with pytest.raises(errors.PolicyMismatchError, match='^GDP_POLICY=.*not a '):
    named_policy.check(None)
  named_policy.check(str(moves))  # A named folder goes before the variable.

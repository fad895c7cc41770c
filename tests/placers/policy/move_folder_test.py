import json

import numpy as np
import pytest

from gdp_grappler import errors
from gdp_grappler.placers import registry
from gdp_grappler.placers.policy import learned
from gdp_grappler.placers.policy import move_folder
from gdp_grappler.placers.policy import move_policy
from gdp_grappler.placers.policy import policy_config
from gdp_grappler.placers.search import search_time
from gdp_grappler.placers.search.moves import move_network
from gdp_grappler.placers.search.moves import shipped_moves
from helpers import graphs
from helpers import problems


@pytest.fixture(name='network', scope='module')
def _network():
  return move_network.untrained(shipped_moves.network(),
                                np.random.default_rng(5))


@pytest.fixture(name='folder')
def _folder(network, tmp_path):
  move_folder.save(tmp_path / 'policy', network, {'graph': 'net'})
  return tmp_path / 'policy'


def test_what_is_saved_is_loaded(folder, network):
  assert move_folder.is_here(folder)
  assert move_folder.load(folder).digest == network.digest
  description = json.loads((folder / 'policy.json').read_text())
  assert description['kind'] == move_folder.MOVES
  assert description['graph'] == 'net'
  assert description['schema'] == move_folder.fingerprint(network)


@pytest.mark.parametrize('name', ['gdp_policy', 'gdp'])
def test_placers_ask_the_network_of_the_folder(folder, network, name,
                                               monkeypatch):
  monkeypatch.setattr(search_time, 'evaluations_for', lambda problem: 500)
  asked = []
  predict = type(network).predict
  monkeypatch.setattr(
      type(network), 'predict', lambda self, features:
      (asked.append(self.digest), predict(self, features))[1])
  problem = problems.make(graphs.random_graph(3, 200), seed=3)
  registry.create(name, str(folder)).place(problem)
  assert {*asked} == {network.digest}
  asked.clear()
  registry.create(name).place(problem)
  assert {*asked} == {shipped_moves.network().digest}
  asked.clear()
  monkeypatch.setenv('GDP_POLICY', str(folder))
  registry.create(name).place(problem)
  assert {*asked} == {network.digest}


def _with(folder, **changes):
  path = folder / 'policy.json'
  fields = json.loads(path.read_text()) | changes
  path.write_text(json.dumps(fields))


def _with_other_weights(folder):
  other = move_network.untrained(shipped_moves.network(),
                                 np.random.default_rng(6))
  move_folder.save(folder / 'other', other, {})
  (folder / 'other' / 'weights.npz').rename(folder / 'weights.npz')


def _pickled(folder):
  np.savez(folder / 'weights.npz', features=np.array([{}], object))


def _of_other_features(folder):
  network = shipped_moves.network()
  names = ('another', *network.features[1:])
  move_folder.save(folder,
                   type(network)(**{**vars(network), 'features': names}), {})


@pytest.mark.parametrize(
    'harm', [
        lambda folder: _with(folder, graph='other'),
        _with_other_weights,
        lambda folder: (folder / 'weights.npz').write_bytes(b'PK'),
        lambda folder: (folder / 'weights.npz').unlink(),
        _pickled,
        _of_other_features,
    ],
    ids=['description', 'weights', 'archive', 'no_weights', 'pickle', 'schema'])
@pytest.mark.parametrize('name', ['gdp_policy', 'gdp'])
def test_bad_folders_are_one_clear_error(folder, harm, name):
  harm(folder)
  with pytest.raises(errors.PolicyMismatchError, match='gdp_train'):
    registry.create(name, str(folder))


@pytest.mark.parametrize('text', ['', '[]', '{', '{"kind": 3}'])
def test_what_is_no_description_is_no_policy(folder, text):
  (folder / 'policy.json').write_text(text)
  assert not move_folder.is_here(folder)
  with pytest.raises(errors.PolicyMismatchError, match='is not a policy'):
    registry.create('gdp', str(folder))


def test_no_policy_of_one_forward_pass(folder):
  with pytest.raises(errors.PolicyMismatchError, match='--network=one_shot'):
    learned.LearnedPlacer(str(folder))


def test_prices_are_as_many_with_any_network(folder):
  problem = problems.make(graphs.random_graph(3, 200))
  placer = move_policy.MovePolicyPlacer(
      str(folder), config=policy_config.PolicyConfig(prices=9))
  assert len(placer.search(problem).prices) == 9

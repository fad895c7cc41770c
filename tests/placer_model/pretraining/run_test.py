"""Runs of a few small rounds."""

from __future__ import annotations

import json
import pathlib
import shutil

import numpy as np
import pytest

from gdp_grappler import errors
from gdp_grappler.placers import step as step_lib
from gdp_grappler.placers.policy import move_folder
from gdp_grappler.placers.policy import named_policy
from gdp_grappler.processes import local_team
from gdp_grappler.workloads.synthetic import synthetic
from helpers import clusters
from helpers import graphs
from placer_model.pretraining import pretrain_config
from placer_model.pretraining import run as run_lib

_CONFIG = pretrain_config.PretrainConfig(
    rounds=3, problems=1, priced_ops=20_000, fewest=50, most=100, memory=2,
    drawn=synthetic.Config(ops=(100, 200), accelerators=(2, 3)), held_out=60)


def _pretrained(folder: pathlib.Path, rounds: int | None = None, seed: int = 0,
                told: list[str] | None = None, machines=None,
                **options) -> run_lib.Curve:
  held_out = {
      'a/b@c':
          step_lib.Step(graphs.random_graph(1, 40), clusters.make_cluster(2))
  }
  return run_lib.pretrain(
      run_lib.PretrainOptions(folder, _CONFIG, seed, rounds, **options),
      held_out, (told if told is not None else []).append, machines=machines)


def _weights(folder: pathlib.Path) -> str:
  return move_folder.load(folder / 'policy').digest


@pytest.fixture(name='parts', scope='module')
def _parts(tmp_path_factory):
  """Copies of a run's folder after each round; their curves, what was told."""
  top, curves, told = tmp_path_factory.mktemp('parts'), {}, []
  for rounds in (1, 2, 3):
    curves[rounds] = _pretrained(top / 'run', rounds, told=told)
    shutil.copytree(top / 'run', top / str(rounds))
  return top, curves, told


def _copy(parts, rounds: int, folder: pathlib.Path) -> pathlib.Path:
  return shutil.copytree(parts[0] / str(rounds), folder / 'run')


def test_a_run_that_goes_on_is_the_one_that_did_not_stop(parts, tmp_path):
  whole = _pretrained(tmp_path)
  top, curves, _ = parts
  assert curves[3] == whole and len(whole) == 3
  assert _weights(tmp_path) == _weights(top / '3') != _weights(top / '2')
  assert json.loads((top / '3/curves.json').read_text()) == whole
  # Nothing is left of what is not learned from any more.
  assert len(list((tmp_path / 'logs').iterdir())) == 1


def test_an_interrupted_round_is_done_again(parts, tmp_path):
  folder = _copy(parts, 1, tmp_path)
  # The log of the next round is there, its end is not.
  shutil.copy(parts[0] / '2/logs/round_00001.npz', folder / 'logs')
  _pretrained(folder, 2)
  assert _weights(folder) == _weights(parts[0] / '2')


def test_how_many_search_changes_nothing(parts, tmp_path):
  found = _pretrained(tmp_path, 2, machines=local_team.Here(2))
  assert found == parts[1][2]
  assert _weights(tmp_path) == _weights(parts[0] / '2')


def test_each_round_is_told(parts):
  _, curves, told = parts
  assert told[0].startswith('round 1 of 1, ') and 'held out' in told[0]
  test = curves[1][0]['held_out']['a/b@c']
  assert 0 <= test['auc'] <= 1 and test['moves'] > 30


def test_placers_take_the_network(parts, tmp_path):
  """The weights of a run could not be given to --policy."""
  folder = _copy(parts, 1, tmp_path)
  network = named_policy.read(str(folder / 'policy'))
  assert network is not None and network.digest == _weights(folder)
  assert f"--policy={folder / 'policy'}" in run_lib.next_steps(folder)


def test_a_policy_of_another_run_stays(tmp_path):
  """A run replaced the policy of half an hour without a word."""
  (tmp_path / 'policy').mkdir()
  (tmp_path / 'policy/policy.json').write_text('{}')
  with pytest.raises(errors.GdpError, match='policy is from another run'):
    _pretrained(tmp_path, 1)
  assert (tmp_path / 'policy/policy.json').read_text() == '{}'


def test_a_run_without_its_policy_makes_it_again(parts, tmp_path):
  """A run of an earlier version, with all rounds done, got no policy."""
  folder = _copy(parts, 1, tmp_path)
  shutil.rmtree(folder / 'policy')
  _pretrained(folder, 1)
  assert _weights(folder) == _weights(parts[0] / '1')


def test_without_a_round_there_is_no_network_yet(tmp_path):
  assert '--policy' not in run_lib.next_steps(tmp_path)


def test_another_seed_is_another_run(parts, tmp_path):
  folder = _copy(parts, 1, tmp_path)
  with pytest.raises(errors.GdpError, match='another seed'):
    _pretrained(folder, 2, seed=1)
  run_lib.restart(folder)
  assert len(_pretrained(folder, 1, seed=1)) == 1


@pytest.mark.parametrize('state', [None, b'', b'no archive'])
def test_files_of_another_program_stay(tmp_path, state):
  """--restart removed a `curves.json` that no run had written."""
  (tmp_path / 'curves.json').touch()
  if state is not None:
    (tmp_path / 'state.npz').write_bytes(state)
  with pytest.raises(errors.GdpError, match='would remove .*curves.json'):
    run_lib.restart(tmp_path)
  assert (tmp_path / 'curves.json').exists()


def test_files_of_the_user_in_folders_of_a_run_stay(tmp_path):
  """A run in a project's folder removed the project's own logs."""
  users = [tmp_path / name for name in ('logs/app.log', 'held_out/set.npz')]
  own = [
      tmp_path / name
      for name in ('logs/round_00000.npz', 'held_out/a_b_c_0123abcd.npz')
  ]
  for path in users + own:
    path.parent.mkdir(exist_ok=True)
    path.touch()
  _pretrained(tmp_path, time_budget_s=0.)
  assert users[0].exists() and not own[0].exists()
  run_lib.restart(tmp_path)
  assert all(path.exists() for path in users)
  assert not any(path.exists() for path in own)
  for path in users:
    path.unlink()
  run_lib.restart(tmp_path)
  assert not (tmp_path / 'logs').exists()


def test_a_held_out_problem_that_changed_is_searched_again(parts, tmp_path):
  """The log of a file's former graph went on as the test."""
  folder = _copy(parts, 1, tmp_path)
  before = {*(folder / 'held_out').iterdir()}
  changed = {
      'a/b@c':
          step_lib.Step(graphs.random_graph(2, 40), clusters.make_cluster(2))
  }
  run_lib.pretrain(run_lib.PretrainOptions(folder, _CONFIG, rounds=1), changed,
                   print)
  assert len({*(folder / 'held_out').iterdir()} - before) == 1


def test_a_held_out_problem_without_a_choice_is_refused(tmp_path):
  """The program ended with a traceback."""
  alone = {
      'a@cpu':
          step_lib.Step(graphs.random_graph(1, 40), clusters.make_cluster(0))
  }
  with pytest.raises(errors.GdpError, match='cannot be held out'):
    run_lib.pretrain(run_lib.PretrainOptions(tmp_path, _CONFIG), alone, print)


def test_no_round_begins_when_the_time_is_up(tmp_path):
  told = []
  assert not _pretrained(tmp_path, told=told, time_budget_s=0.)
  assert told == ['The time is up after 0 of 3 rounds.']


@pytest.mark.parametrize('data', [b'', b'PK', b'{}'])
def test_a_damaged_state_is_told(parts, tmp_path, data):
  folder = _copy(parts, 1, tmp_path)
  (folder / 'state.npz').write_bytes(data)
  with pytest.raises(errors.GdpError, match='Cannot go on'):
    _pretrained(folder, 2)


def test_configs_have_names():
  assert pretrain_config.named('small').evaluations(1000) == 2000
  with pytest.raises(errors.GdpError, match='full'):
    pretrain_config.named('ful')


def test_every_network_is_of_finite_numbers(parts):
  network = move_folder.load(parts[0] / '2/policy')
  assert np.isfinite(network.hidden_weights).all()

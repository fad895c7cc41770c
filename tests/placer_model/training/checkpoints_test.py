"""Checkpoints, full disks and directories of other runs."""

import contextlib
import os
import pathlib
import resource

import numpy as np
import pytest
import tensorflow as tf

from gdp_grappler import errors
from gdp_grappler import files
from placer_model.training import checkpoints
from placer_model.training import json_files

_IDENTITY = {
    'graph': [], 'cluster': [], 'reward': 'simulated', 'seed': 0,
    'train': {'rollouts': 4, 'epochs': 2}
}


@contextlib.contextmanager
def _files_no_larger_than(size_bytes):
  """What a full disk does to whoever writes."""
  soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
  resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
  try:
    yield
  finally:
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def _store(directory, value=0.0):
  # Noise, so that compression does not make it small.
  variable = tf.Variable(tf.random.stateless_uniform([20000], [1, 2]) + value)
  return variable, checkpoints.Checkpoints(
      directory, tf.train.Checkpoint(variable=variable))


def _save_two(directory):
  """Saves two checkpoints, filled with 1 and with 2."""
  variable, store = _store(directory)
  for iteration in (1, 2):
    variable.assign(tf.fill([20000], float(iteration)))
    store.save(iteration)


def test_restores_the_newest(tmp_path):
  variable, store = _store(tmp_path)
  assert not store.restore(print)
  for iteration in (3, 7):
    variable.assign(tf.fill([20000], float(iteration)))
    store.save(iteration)
  found, again = _store(tmp_path)
  assert again.restore(print)
  assert found[0] == 7.0


def test_full_disk_keeps_the_previous_checkpoint(tmp_path):
  variable, store = _store(tmp_path)
  variable.assign(tf.fill([20000], 1.0))
  store.save(1)
  before = {p.name for p in tmp_path.iterdir()}
  variable.assign_add(tf.ones([20000]))
  with _files_no_larger_than(10_000):
    with pytest.raises(errors.GdpError, match='iteration 1 is intact') as info:
      store.save(2)
  assert '\n' not in str(info.value)
  assert {p.name for p in tmp_path.iterdir()} == before
  found, again = _store(tmp_path)
  assert again.restore(print)
  assert found[0] == 1.0


def _damage(directory, name):
  data = next(directory.glob(f'{name}.data*'))
  data.write_bytes(data.read_bytes()[:100])


def test_an_index_that_tells_of_too_many_bytes_is_a_damaged_one(tmp_path):
  _save_two(tmp_path)
  path = tmp_path / 'ckpt-2.index'
  data = bytearray(path.read_bytes())
  # The footer of such a table: offsets and sizes of two blocks, in varints.
  data[-48:-36] = b'\0\0\0' + b'\xff' * 8 + b'\x3f'
  path.write_bytes(data)
  found, again = _store(tmp_path)
  told = []
  assert again.restore(told.append)
  assert found[0] == 1. and 'larger than the memory' in told[0]


@pytest.mark.parametrize('seed', range(8))
@pytest.mark.parametrize('suffix', ['index', 'data-00000-of-00001'])
def test_a_flipped_bit_makes_the_older_one_be_loaded(tmp_path, seed, suffix):
  _save_two(tmp_path)
  path = tmp_path / f'ckpt-2.{suffix}'
  data = bytearray(path.read_bytes())
  rng = np.random.default_rng(seed)
  data[rng.integers(len(data))] ^= 1 << int(rng.integers(8))
  path.write_bytes(data)
  found, again = _store(tmp_path)
  assert again.restore(print)
  assert set(found.numpy().tolist()) <= {1.} or (found.numpy() == 2.).all()


@pytest.mark.parametrize('suffix', ['index', 'data-00000-of-00001'])
def test_a_pipe_is_no_checkpoint(tmp_path, suffix):
  _save_two(tmp_path)
  path = tmp_path / f'ckpt-2.{suffix}'
  path.unlink()
  os.mkfifo(path)
  found, again = _store(tmp_path)
  assert again.restore(print)
  assert found[0] == 1.


@pytest.mark.parametrize('text', ['[]', '3', '"seed"', 'null'])
def test_a_garbled_identity_is_told(tmp_path, text):
  (tmp_path / 'config.json').write_text(text)
  if text == 'null':
    (tmp_path / 'checkpoints').mkdir()
  with pytest.raises(errors.GdpError, match='whose'):
    checkpoints.claim(tmp_path, _IDENTITY)


@pytest.mark.parametrize(
    'name, text, said',
    [('config.json', '{"seed": ', 'Restore it, or give another'),
     ('results.json', '{}', 'has results.json but no config')])
def test_a_file_that_is_of_no_run_is_told(tmp_path, name, text, said):
  """A run replaced a `results.json` that no run had written."""
  (tmp_path / name).write_text(text)
  with pytest.raises(errors.GdpError, match=said):
    checkpoints.claim(tmp_path, _IDENTITY)


@pytest.mark.parametrize('text', ['{"name": "a web page"}', '[]', '{', None])
def test_files_of_another_program_stay(tmp_path, text):
  """--restart removed `config.json` and `checkpoints/` of a user's project."""
  (tmp_path / 'checkpoints').mkdir()
  (tmp_path / 'checkpoints' / 'epoch-3').touch()
  if text is not None:
    (tmp_path / 'config.json').write_text(text)
  before = set(tmp_path.rglob('*'))
  with pytest.raises(errors.GdpError, match='would remove checkpoints'):
    checkpoints.discard(tmp_path)
  with pytest.raises(errors.GdpError, match='another --model_dir'):
    checkpoints.claim(tmp_path, _IDENTITY)
  assert set(tmp_path.rglob('*')) == before


def test_the_newest_sound_one_is_loaded(tmp_path):
  _save_two(tmp_path)
  _damage(tmp_path, 'ckpt-2')
  told = []
  found, again = _store(tmp_path)
  assert again.restore(told.append)
  assert (found.numpy() == 1.).all()
  line, = told
  assert 'ckpt-2 cannot be loaded' in line


@pytest.mark.parametrize('state', [None, b'', b'garbled \xff'])
def test_no_other_file_is_needed(tmp_path, state):
  _, store = _store(tmp_path)
  store.save(3)
  if state is not None:
    (tmp_path / 'checkpoint').write_bytes(state)
  assert _store(tmp_path)[1].restore(print)


def test_damaged_ones_take_no_place_of_sound_ones(tmp_path):
  _, store = _store(tmp_path)
  store.save(1)
  store.save(9)
  _damage(tmp_path, 'ckpt-9')
  _, again = _store(tmp_path)
  assert again.restore(lambda _: None)
  again.save(2)
  again.save(3)
  assert [p.name for p in checkpoints.newest_first(tmp_path)
         ] == ['ckpt-3', 'ckpt-2']


def test_several_of_one_iteration(tmp_path):
  variable, store = _store(tmp_path)
  for value in range(4):
    variable.assign(tf.fill([20000], float(value)))
    store.save(0)
  assert [p.name for p in checkpoints.newest_first(tmp_path)
         ] == ['ckpt-0-3', 'ckpt-0-2']
  found, again = _store(tmp_path)
  assert again.restore(print) and found[0] == 3.


def test_what_a_killed_run_left_is_removed(tmp_path):
  _, store = _store(tmp_path)
  (tmp_path / 'ckpt-9_temp').mkdir()
  (tmp_path / 'ckpt-8.data-00000-of-00001').write_bytes(b'half')
  store.save(1)
  assert {p.name.split('.')[0] for p in tmp_path.iterdir()} == {'ckpt-1'}


def test_only_damaged_ones_are_an_error(tmp_path):
  _, store = _store(tmp_path)
  store.save(1)
  _damage(tmp_path, 'ckpt-1')
  before = sorted(tmp_path.iterdir())
  with pytest.raises(errors.GdpError, match='Give --restart'):
    _store(tmp_path)[1].restore(print)
  (tmp_path / 'ckpt-1.index').unlink()
  with pytest.raises(errors.GdpError, match='none in .* is complete'):
    _store(tmp_path)[1].restore(print)
  assert len(before) == 2  # Nothing else was lost.


def test_checkpoint_of_another_network_is_an_error(tmp_path):
  _, store = _store(tmp_path)
  store.save(1)
  other = tf.train.Checkpoint(another=tf.Variable(1.0))
  with pytest.raises(errors.GdpError, match='cannot be loaded'):
    checkpoints.Checkpoints(tmp_path, other).restore(print)


@pytest.mark.parametrize('restart', [False, True])
def test_what_a_killed_run_left_goes_and_hidden_files_of_users_stay(
    tmp_path, restart, monkeypatch):
  """Hidden JSON files of users went, and unfinished files of runs stayed."""
  monkeypatch.chdir(tmp_path)
  pathlib.Path('.eslintrc.json').write_text('{}')
  pathlib.Path('.gdp_notes').write_text('a file of the user')
  checkpoints.claim(pathlib.Path('.'), _IDENTITY)
  for folder in ('.policy.abcdefgh', 'plans', 'policy'):
    pathlib.Path(folder).mkdir()
  for folder in ('', 'plans/', 'policy/'):
    _left_while_writing(pathlib.Path(f'{folder}results.json'))
  if restart:
    checkpoints.discard(pathlib.Path('.'))
  checkpoints.claim(pathlib.Path('.'), _IDENTITY)
  assert {path.name for path in tmp_path.rglob('*')} == {
      '.eslintrc.json', '.gdp_notes', 'config.json', 'plans', 'policy'
  }


def _left_while_writing(path):
  """Leaves the file that a killed process leaves while it writes another."""
  with pytest.MonkeyPatch.context() as patch:
    for name in ('replace', 'unlink'):
      patch.setattr(os, name, lambda *_: None)
    files.write_atomically(path, 'half')
  assert list(path.parent.glob('.gdp????????'))


def test_a_folder_without_a_run_loses_nothing(tmp_path):
  """A first run removed what looked like its own files."""
  (tmp_path / '.gdpabcdefgh').write_text('a file of the user')
  checkpoints.discard(tmp_path)
  checkpoints.claim(tmp_path, _IDENTITY)
  assert (tmp_path / '.gdpabcdefgh').exists()


def test_another_may_round_is_another_run_unless_unknown(tmp_path):
  """A run went on with other legal devices, and nobody was told."""
  checkpoints.claim(tmp_path, _IDENTITY)  # As runs of before the options.
  now = _IDENTITY | {'searches': 0, 'may_round': True}
  checkpoints.claim(tmp_path, now)
  with pytest.raises(errors.GdpError, match=r'searches \(0 there, 2 here\)'):
    checkpoints.claim(tmp_path, now | {'searches': 2})
  other = tmp_path / 'other'
  checkpoints.claim(other, now | {'searches': 2})
  with pytest.raises(errors.GdpError, match=r'searches \(2 there, 0 here\)'):
    checkpoints.claim(other, now)
  with pytest.raises(errors.GdpError, match=r'may_round \(True there, False'):
    checkpoints.claim(other, now | {'searches': 2, 'may_round': False})


def test_a_run_of_an_earlier_version_goes_on(tmp_path):
  """A former field of the network made it another run."""
  now = _IDENTITY | {'placer': {'heads': 4}}
  for value in (0, 4):
    (tmp_path / str(value)).mkdir()
    json_files.write_json(
        tmp_path / str(value) / 'config.json',
        now | {'placer': {'heads': 4, 'max_neighbors': value}})
  checkpoints.claim(tmp_path / '0', now)
  with pytest.raises(errors.GdpError,
                     match=r'placer max_neighbors \(4 there, None here\)'):
    checkpoints.claim(tmp_path / '4', now)


def test_a_restart_forgets_what_was_learned(tmp_path):
  checkpoints.claim(tmp_path, _IDENTITY)
  _store(tmp_path / 'checkpoints')[1].save(1)
  (tmp_path / 'policy').mkdir()
  checkpoints.discard(tmp_path)
  assert [p.name for p in tmp_path.iterdir()] == ['policy']


def test_claim_is_written_once_and_recognised(tmp_path):
  checkpoints.claim(tmp_path / 'model', _IDENTITY)
  checkpoints.claim(tmp_path / 'model', _IDENTITY)
  assert json_files.read_json(tmp_path / 'model' / 'config.json') == _IDENTITY


@pytest.mark.parametrize('change, said',
                         [({'seed': 1}, 'seed (0 there, 1 here)'),
                          ({'train': {'rollouts': 5, 'epochs': 2}
                           }, 'train rollouts (4 there, 5 here)')])
def test_another_run_is_refused(tmp_path, change, said):
  checkpoints.claim(tmp_path, _IDENTITY)
  with pytest.raises(errors.GdpError) as info:
    checkpoints.claim(tmp_path, {**_IDENTITY, **change})
  assert said in str(info.value)
  assert json_files.read_json(tmp_path / 'config.json') == _IDENTITY


def test_checkpoints_of_nobody_are_refused(tmp_path):
  (tmp_path / 'checkpoints').mkdir()
  with pytest.raises(errors.GdpError, match='no config.json'):
    checkpoints.claim(tmp_path, _IDENTITY)
  assert not (tmp_path / 'config.json').exists()


def test_weights_for_another_run(tmp_path):
  layer = tf.keras.layers.Dense(2)
  layer.build((None, 3))
  checkpoints.Checkpoints(tmp_path,
                          tf.train.Checkpoint(placer=layer,
                                              other=layer)).save(1)
  other = tf.keras.layers.Dense(2)
  other.build((None, 3))
  checkpoints.load_placer(tmp_path, other)
  assert (other.kernel.numpy() == layer.kernel.numpy()).all()


@pytest.mark.parametrize('name', ['index', 'data-00000-of-00001'])
def test_weights_of_an_older_checkpoint_where_the_newest_is_damaged(
    tmp_path, name):
  layer, other = (tf.keras.layers.Dense(2) for _ in range(2))
  for each in (layer, other):
    each.build((None, 3))
  store = checkpoints.Checkpoints(tmp_path, tf.train.Checkpoint(placer=layer))
  store.save(1)
  store.save(2)
  (tmp_path / f'ckpt-2.{name}').write_bytes(b'damaged')
  said = []
  checkpoints.load_placer(tmp_path, other, said.append)
  assert (other.kernel.numpy() == layer.kernel.numpy()).all()
  assert len(said) == 1 and 'ckpt-2' in said[0] and 'ckpt-1 is' in said[0]
  (tmp_path / f'ckpt-1.{name}').write_bytes(b'damaged')
  with pytest.raises(errors.GdpError, match='No weights .* fit'):
    checkpoints.load_placer(tmp_path, other, said.append)
  assert len(said) == 1


def test_no_weights_for_another_run(tmp_path):
  with pytest.raises(errors.GdpError, match='no checkpoint'):
    checkpoints.load_placer(tmp_path, tf.keras.layers.Dense(2))

"""The console program in processes of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

from gdp_grappler.placers.policy import learned
from helpers import forked
from helpers import fresh

pytestmark = pytest.mark.e2e

_PROGRAM = [
    sys.executable, '-c',
    'from placer_model.bin import gdp_pretrain; gdp_pretrain.run()'
]


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
  return subprocess.run([*_PROGRAM, *arguments],
                        env=fresh.environment_with_path(), capture_output=True,
                        text=True, check=False, timeout=200)


@pytest.fixture(name='run', scope='module')
def _run_of_fork(tmp_path_factory):
  """Of command lines that need no process of their own from the start."""
  with forked.Program('helpers.small_pretraining:run',
                      ['placer_model.pretraining.run'],
                      folder=tmp_path_factory.mktemp('pretrain')) as program:
    yield program.run


def test_a_run_leaves_its_files_and_goes_on(tmp_path):
  arguments = (f'--model_dir={tmp_path}', '--time_budget_s=0')
  done = _run(*arguments)
  assert done.returncode == 0, done.stderr
  said, following = done.stdout.splitlines()
  assert said == 'The time is up after 0 of 12 rounds.'
  assert following.startswith('Next: ')
  assert done.stderr.startswith('gdp_pretrain: learning on drawn graphs')


def test_the_placer_network_learns_and_is_exported(run, tmp_path):
  done = run('--network=placer', f'--model_dir={tmp_path}', '--rounds=1',
             '--time_budget_s=0', '--quiet')
  assert done.code == 0, done.stderr
  said, following = done.stdout.splitlines()
  assert said == 'The time is up after 0 of 1 rounds.'
  assert f'{tmp_path}/policy' in following
  assert learned.metadata(tmp_path / 'policy')['units'] == 'nested'
  other = run('--network=placer', f'--model_dir={tmp_path}', '--seed=1')
  assert other.code == 2 and 'another seed' in other.stderr


def test_a_command_that_cannot_be_obeyed_discards_nothing(tmp_path):
  learned = tmp_path / 'curves.json'
  learned.write_bytes(b'')
  done = _run(f'--model_dir={tmp_path}', '--restart', '--held_out=rnnlm-2')
  assert done.returncode == 2 and 'names no cluster' in done.stderr
  assert learned.exists()


_WRONG = {
    '--model_dir must be given': (),
    'names no cluster': ('--model_dir=x', '--held_out=rnnlm-2'),
    'Unknown cluster': ('--model_dir=x', '--held_out=rnnlm-2@2xP1000'),
    'config': ('--model_dir=x', '--config=huge'),
    'time_budget_s=nan': ('--model_dir=x', '--time_budget_s=nan'),
    'seed=4294967296': ('--model_dir=x', '--seed=4294967296'),
    'rounds': ('--model_dir=x', '--rounds=0'),
    'network': ('--model_dir=x', '--network=huge'),
    '--batch_size has no effect on gdp_pretrain':
        ('--model_dir=x', '--batch_size=32'),
    '--may_round has no effect on gdp_pretrain':
        ('--model_dir=x', '--nomay_round'),
    'Unknown config "huge"':
        ('--model_dir=x', '--network=placer', '--config=huge'),
}


@pytest.mark.parametrize('message', _WRONG)
def test_wrong_flags_are_one_line(run, message):
  done = run(*_WRONG[message], '--quiet')
  assert message in fresh.error_line(done, 'gdp_pretrain')


def test_a_folder_that_cannot_be_made_is_told_before_the_work(run, tmp_path):
  (tmp_path / 'file').touch()
  done = run('--quiet', f'--model_dir={tmp_path}/file/x',
             '--held_out=none@2xP100')
  assert f'Cannot write {tmp_path}/file/x' in fresh.error_line(
      done, 'gdp_pretrain')

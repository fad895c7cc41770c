"""Tests of placer_model.run_folder."""

import os
import subprocess
import sys

import pytest

from gdp_grappler import errors
from helpers import fresh
from placer_model import run_folder

_HOLDER = """
import pathlib, sys, time
from placer_model import run_folder
with run_folder.held(pathlib.Path(sys.argv[1]), '--model_dir'):
  print('held', flush=True)
  time.sleep(1000)
"""


def test_one_run_at_a_time(tmp_path):
  folder = tmp_path / 'new' / 'model'
  with run_folder.held(folder, '--model_dir'):
    with pytest.raises(errors.GdpError,
                       match='Another run is at work.*another --model_dir'):
      with run_folder.held(folder, '--model_dir'):
        pass
  with run_folder.held(folder, '--model_dir'):
    pass


def test_a_hold_ends_with_its_process(tmp_path):
  with subprocess.Popen([sys.executable, '-c', _HOLDER,
                         str(tmp_path)],
                        env=fresh.environment(PYTHONPATH=os.pathsep.join(
                            p for p in sys.path if p)), stdout=subprocess.PIPE,
                        text=True) as holder:
    assert holder.stdout.readline() == 'held\n'
    with pytest.raises(errors.GdpError, match='Another run'):
      with run_folder.held(tmp_path, '--out_dir'):
        pass
    holder.kill()
  with run_folder.held(tmp_path, '--out_dir'):
    pass


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
  (tmp_path / 'file').touch()
  with pytest.raises(errors.GdpError, match='Cannot write to .*--out_dir'):
    with run_folder.held(tmp_path / 'file' / 'folder', '--out_dir'):
      pass


def test_what_lies_in_place_of_the_lock_is_neither_opened_nor_emptied(tmp_path):
  """A link there emptied what it led to, and a pipe was waited for."""
  mine, folder = tmp_path / 'mine', tmp_path / 'theirs'
  mine.write_text('worth keeping')
  folder.mkdir()
  (folder / '.lock').symlink_to(mine)
  with pytest.raises(errors.GdpError, match='Cannot write to'):
    with run_folder.held(folder, '--model_dir'):
      pass
  assert mine.read_text() == 'worth keeping'
  (folder / '.lock').unlink()
  os.mkfifo(folder / '.lock')
  with run_folder.held(folder, '--model_dir'):
    pass


def test_files_and_folders_are_removed_and_some_may_be_gone(tmp_path):
  (tmp_path / 'a').write_text('')
  (tmp_path / 'b/c').mkdir(parents=True)
  (tmp_path / 'other').write_text('')
  run_folder.remove(tmp_path / name for name in ('a', 'b', 'nowhere'))
  assert [path.name for path in tmp_path.iterdir()] == ['other']

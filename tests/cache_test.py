import os
import time

import pytest

from gdp_grappler import cache


def test_what_is_kept_is_for_one_user(tmp_path):
  place = cache.path('a', 'b', folder=tmp_path / 'cache')
  assert cache.kept(place, pytest.fail) is None
  cache.keep(place, 'text', pytest.fail)
  assert cache.kept(place, pytest.fail) == b'text'
  assert place.stat().st_mode & 0o777 == 0o600
  for folder in (place.parent, tmp_path / 'cache'):
    assert folder.stat().st_mode & 0o777 == 0o700


def test_the_folder_is_the_environment_s(monkeypatch, tmp_path):
  monkeypatch.setenv('GDP_CACHE_DIR', str(tmp_path))
  assert cache.path('profiles', 'x.json') == tmp_path / 'profiles' / 'x.json'


@pytest.mark.parametrize('obstacle', ['file', 'folder'])
def test_what_cannot_be_kept_costs_one_line(tmp_path, obstacle):
  told = []
  place = cache.path('a', 'b', folder=tmp_path / 'cache')
  if obstacle == 'file':
    (tmp_path / 'cache').write_text('')
  else:
    place.mkdir(parents=True)
    assert cache.kept(place, told.append) is None
    assert 'Made anew' in told.pop()
  cache.keep(place, 'text', told.append)
  line, = told
  assert 'Not kept' in line and 'GDP_CACHE_DIR' in line


def test_the_line_of_a_folder_is_the_same_for_all_its_files(tmp_path):
  """Once each file had its own, and so each graph was a warning."""
  told = set()
  (tmp_path / 'cache').write_text('')
  for name in 'bc':
    cache.keep(cache.path('a', name, folder=tmp_path / 'cache'), '', told.add)
  line, = told
  assert str(tmp_path / 'cache' / 'a') in line


def test_what_a_broken_folder_hides_costs_one_line(tmp_path):
  """Once each file had its own, and so each graph was a warning."""
  told = set()
  (tmp_path / 'cache').symlink_to(tmp_path / 'cache')
  for name in 'bc':
    place = cache.path('a', name, folder=tmp_path / 'cache')
    assert cache.kept(place, told.add) is None
  line, = told
  assert line.startswith(f'Cannot read {tmp_path / "cache" / "a"}: Too many')


def test_the_line_of_a_shared_folder_is_the_same_for_all_its_files(tmp_path):
  told = set()
  for name in 'bc':
    place = cache.path('a', name, folder=tmp_path)
    place.parent.mkdir(exist_ok=True)
    place.parent.chmod(0o777)
    assert cache.kept(place, told.add) is None
  line, = told
  assert f'{tmp_path / "a"} can be written by other users' in line


@pytest.mark.parametrize('mode', [0o620, 0o602, 0o666])
@pytest.mark.parametrize('which', ['file', 'folder'])
def test_what_others_may_write_is_not_read(tmp_path, which, mode):
  told = []
  place = cache.path('a', 'b', folder=tmp_path / 'cache')
  cache.keep(place, 'text', pytest.fail)
  shared = place if which == 'file' else place.parent
  shared.chmod(mode | 0o100)
  assert cache.kept(place, told.append) is None
  line, = told
  assert f'{shared} can be written by other users' in line
  assert 'GDP_CACHE_DIR' in line
  shared.chmod(mode & 0o700 | 0o144)  # All may read it.
  assert cache.kept(place, pytest.fail) == b'text'


def test_nothing_is_kept_where_others_may_write(tmp_path):
  told = []
  place = cache.path('a', 'b', folder=tmp_path / 'cache')
  place.parent.mkdir(parents=True)
  place.parent.chmod(0o777)
  cache.keep(place, 'text', told.append)
  line, = told
  assert f'{place.parent} can be written by other users' in line
  assert 'GDP_CACHE_DIR' in line
  assert not place.exists()


@pytest.mark.parametrize('which', ['file', 'folder'])
def test_what_belongs_to_others_is_not_read(tmp_path, monkeypatch, which):
  told = []
  place = cache.path('a', 'b', folder=tmp_path / 'cache')
  cache.keep(place, 'text', pytest.fail)
  shared = place if which == 'file' else place.parent
  if os.geteuid():
    monkeypatch.setattr(os, 'geteuid', lambda: 12345)
    shared = place.parent  # All of it is somebody else's now.
  else:
    os.chown(shared, 12345, -1)
  assert cache.kept(place, told.append) is None
  line, = told
  assert f'{shared} belongs to another user' in line


def test_what_root_has_written_is_read(tmp_path, monkeypatch):
  place = cache.path('a', 'b', folder=tmp_path / 'cache')
  cache.keep(place, 'text', pytest.fail)
  if not os.geteuid():
    monkeypatch.setattr(os, 'geteuid', lambda: 12345)
  assert cache.kept(place, pytest.fail) == b'text'


def test_half_written_files_of_killed_processes_go_after_a_day(
    tmp_path, monkeypatch):
  """Once they stayed for ever."""

  def killed(source, target):
    raise KeyboardInterrupt

  place = cache.path('a', 'b.json', folder=tmp_path)
  with monkeypatch.context() as patch:
    patch.setattr(os, 'replace', killed)
    patch.setattr(os, 'unlink', lambda path: None)
    for _ in range(2):
      with pytest.raises(KeyboardInterrupt):
        cache.keep(place, '{}', pytest.fail)
  cache.keep(place, '{}', pytest.fail)
  old, new = sorted(place.parent.glob('.*'))
  for path in (old, place):
    os.utime(path, (time.time() - 25 * 60 * 60,) * 2)
  (place.parent / 'folder.json').mkdir()
  cache.make_room(place.parent, 1, 1)
  assert sorted(place.parent.iterdir()) == sorted(
      (new, place, place.parent / 'folder.json'))


def test_a_folder_that_is_not_there_has_room(tmp_path):
  cache.make_room(tmp_path / 'a', 1, 1)

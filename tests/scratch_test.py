import os
import signal
import subprocess
import sys

from gdp_grappler import scratch

_HOLDING = ('import sys; from gdp_grappler import scratch; '
            'folder = scratch.Folder("gdp_x", sys.argv[1]); '
            'print(folder.name, flush=True); sys.stdin.read()')


def test_is_for_one_user_and_goes(tmp_path):
  with scratch.Folder('gdp_x', str(tmp_path)) as folder:
    assert os.stat(folder.name).st_mode & 0o777 == 0o700
    (inside,) = tmp_path.iterdir()
    (inside / 'below').mkdir()
    (inside / 'below' / 'file').write_text('text')
    assert inside.name.startswith('gdp_x')
  assert not list(tmp_path.iterdir())


def test_what_is_written_afterwards_goes_too(tmp_path):
  folder = scratch.Folder('gdp_x', str(tmp_path))
  folder.cleanup()
  os.mkdir(folder.name)
  folder.cleanup()
  assert not list(tmp_path.iterdir())


def test_of_the_killed_are_removed_and_of_the_living_kept(tmp_path):
  holders = [
      subprocess.Popen([sys.executable, '-P', '-c', _HOLDING,
                        str(tmp_path)], text=True, stdin=subprocess.PIPE,
                       stdout=subprocess.PIPE) for _ in range(2)
  ]
  killed, living = holders
  try:
    names = [holder.stdout.readline().strip() for holder in holders]
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    scratch.Folder('gdp_x', str(tmp_path)).cleanup()
    assert all(map(os.path.isdir, names))  # Perhaps not locked yet.
    for name in names:
      os.utime(os.path.join(name, '.held'), (0, 0))
    (tmp_path / 'gdp_x_of_others').mkdir()  # Without a lock.
    (tmp_path / 'gdp_x_link').symlink_to(names[0])
    with scratch.Folder('gdp_y', str(tmp_path)):
      assert all(map(os.path.isdir, names))  # Of another kind.
    with scratch.Folder('gdp_x', str(tmp_path)):
      assert [os.path.isdir(name) for name in names] == [False, True]
    assert (tmp_path / 'gdp_x_of_others').is_dir()
    assert (tmp_path / 'gdp_x_link').is_symlink()
  finally:
    for holder in holders:
      holder.kill()
      holder.communicate()


def test_a_link_to_a_folder_is_not_followed(tmp_path):
  other, place = tmp_path / 'other', tmp_path / 'place'
  other.mkdir()
  place.mkdir()
  (other / '.held').write_text('')
  os.utime(other / '.held', (0, 0))
  (place / 'gdp_x_link').symlink_to(other)
  scratch.Folder('gdp_x', str(place)).cleanup()
  assert (other / '.held').exists()

"""Tests of gdp_grappler.files."""

import gzip
import os

import pytest

from gdp_grappler import errors
from gdp_grappler import files


def test_compressed_json_comes_back_and_equals_are_equal(tmp_path):
  value = {'ä': [1, 2.5, None], 'b': {}}
  paths = tmp_path / 'one.json.gz', tmp_path / 'other.json.gz'
  for path in paths:
    files.write_compressed_json(path, value)
  assert files.read_compressed_json(paths[0]) == value
  assert paths[0].read_bytes() == paths[1].read_bytes()


@pytest.mark.parametrize(
    'data', [
        b'{}', b'',
        gzip.compress(b'{'),
        gzip.compress(b'[1]')[:-9],
        gzip.compress(b'[1]')[:12] + b'damaged'
    ], ids=['plain', 'empty', 'no_json', 'cut_off', 'damaged'])
def test_damaged_compressed_json(tmp_path, data):
  path = tmp_path / 'damaged.json.gz'
  path.write_bytes(data)
  with pytest.raises(errors.GdpError, match='Cannot read .*damaged.json.gz'):
    files.read_compressed_json(path)


def test_a_pipe_that_nobody_writes_to_is_no_file(tmp_path):
  os.mkfifo(tmp_path / 'pipe')
  with pytest.raises(OSError, match='it is no regular file'):
    files.read(tmp_path / 'pipe')


@pytest.mark.parametrize('path', ['/dev/zero', '/dev/tty', '/'])
def test_what_is_no_file_is_not_read(path):
  with pytest.raises(OSError):
    files.read(path)


def test_a_link_to_itself_is_not_followed_for_ever(tmp_path):
  (tmp_path / 'loop').symlink_to('loop')
  with pytest.raises(OSError, match='symbolic link'):
    files.read(tmp_path / 'loop')


def test_a_file_that_is_too_large_is_not_read(tmp_path):
  path = tmp_path / 'zeros'
  with path.open('wb') as file:
    file.truncate(1 << 40)
  with pytest.raises(OSError, match='more than 268435456 bytes'):
    files.read(path)
  path.write_bytes(b'12345')
  assert files.read(path, 5) == b'12345'
  with pytest.raises(OSError, match='more than 4 bytes'):
    files.read(path, 4)


def test_a_small_file_that_unpacks_to_any_size_is_refused(
    tmp_path, monkeypatch):
  monkeypatch.setattr(files, 'MOST_TEXT_BYTES', 1000)
  path = tmp_path / 'bomb.json.gz'
  path.write_bytes(gzip.compress(b' ' * 100_000))
  with pytest.raises(errors.GdpError, match='more than 1000 bytes'):
    files.read_compressed_json(path)


@pytest.mark.parametrize('data', ['[' * 200_000, b'{"a":' * 200_000])
def test_deep_nesting_is_a_wrong_value(data):
  with pytest.raises(ValueError, match='nested too deeply'):
    files.parse_json(data)


def test_a_name_that_appears_twice_in_an_object():
  with pytest.raises(ValueError, match='"a" appears twice in one object'):
    files.parse_json('{"b": [{"a": 1, "c": 2, "a": 1}]}', files.unique)
  assert files.parse_json('{"b": {"b": 1}}', files.unique) == {'b': {'b': 1}}


def test_json_may_begin_with_a_mark():
  assert files.parse_json(b'\xef\xbb\xbf{"a": 1}') == {'a': 1}


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path):
  path = tmp_path / 'pipe'
  os.mkfifo(path)
  reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
  try:
    files.write_atomically(path, '{}')
    assert path.is_fifo()
    assert os.read(reader, 10) == b'{}'
  finally:
    os.close(reader)


def test_a_pipe_that_nobody_reads_becomes_a_file(tmp_path):
  """Once `gdp_bench` waited for ever where a plan had become a pipe."""
  path = tmp_path / 'pipe'
  os.mkfifo(path)
  files.write_atomically(path, '{}')
  assert path.read_text() == '{}'


def test_a_link_is_followed_and_stays_a_link(tmp_path):
  target, link = tmp_path / 'folder' / 'target', tmp_path / 'link'
  link.symlink_to(target)
  files.write_atomically(link, 'made', make_folder=True)
  files.write_atomically(link, 'replaced')
  assert link.is_symlink()
  assert target.read_text() == 'replaced'


def test_a_name_may_be_as_long_as_names_can_be(tmp_path):
  path = tmp_path / ('x' * 255)
  files.write_atomically(path, 'long')
  assert [each.name for each in tmp_path.iterdir()] == [path.name]
  assert path.read_text() == 'long'


def test_a_text_may_have_names_of_files_that_are_no_text(tmp_path):
  """Once `gdp report` ended with a traceback for such a model."""
  name = os.fsdecode(b'caf\xe9 \xc3\xa4.keras')
  path = tmp_path / os.fsdecode(b'caf\xe9.html')
  files.write_atomically(path, f'<title>{name}</title>')
  assert path.read_text('utf-8') == '<title>caf\\udce9 ä.keras</title>'


@pytest.mark.parametrize('mode', [0o600, 0o640, 0o755])
def test_a_replaced_file_keeps_its_mode(tmp_path, mode):
  path = tmp_path / 'plan.json'
  path.write_text('old')
  path.chmod(mode)
  files.write_atomically(path, 'new')
  assert path.read_text() == 'new'
  assert path.stat().st_mode & 0o777 == mode


def test_a_file_that_is_read_only_is_not_replaced(tmp_path):
  path = tmp_path / 'plan.json'
  path.write_text('old')
  path.chmod(0o400)
  link = tmp_path / 'link'
  link.symlink_to('plan.json')
  for each in (path, link):
    with pytest.raises(errors.GdpError, match='it is read-only'):
      files.check_writable(each)
    with pytest.raises(errors.GdpError, match='it is read-only'):
      files.write_atomically(each, 'new')
  assert path.read_text() == 'old'
  assert path.stat().st_mode & 0o777 == 0o400


def test_a_new_file_has_the_mode_that_the_umask_leaves(tmp_path, monkeypatch):
  before = os.umask(0o027)
  try:
    # Another thread would make files for everybody while the umask is 0.
    with monkeypatch.context() as patch:
      patch.delattr(os, 'umask')
      files.write_atomically(tmp_path / 'plan.json', '{}')
  finally:
    os.umask(before)
  assert (tmp_path / 'plan.json').stat().st_mode & 0o777 == 0o640


def test_a_path_that_takes_a_file_passes_and_nothing_is_left(tmp_path):
  (tmp_path / 'old').write_text('old')
  (tmp_path / 'link').symlink_to('old')
  for name in ('new', 'old', 'link'):
    files.check_writable(tmp_path / name)
  for folder in (tmp_path, tmp_path / 'a/b'):
    files.check_folder(folder)
  files.check_writable('/dev/null')
  assert {path.name for path in tmp_path.iterdir()} == {'old', 'link'}
  assert (tmp_path / 'old').read_text() == 'old'


# Root may write everywhere but here.
_TAKES_NO_FILES = '/proc/self'


@pytest.mark.parametrize('name, said', [
    ('folder', 'it is a folder'),
    ('none/x.json', 'its folder does not exist'),
    ('file/x.json', 'a part of its folder is a file'),
    ('x' * 300, 'no file can be made there .File name too long'),
    (f'{_TAKES_NO_FILES}/x.json', 'no file can be made there'),
])
def test_a_path_that_takes_no_file_is_told(tmp_path, name, said):
  (tmp_path / 'folder').mkdir()
  (tmp_path / 'file').touch()
  with pytest.raises(errors.GdpError, match=f'Cannot write .*: {said}'):
    files.check_writable(tmp_path / name)


@pytest.mark.parametrize('name, said', [
    ('file', 'a part of it, .*/file, is a file'),
    ('file/a/b', 'a part of it, .*/file, is a file'),
    (f'{_TAKES_NO_FILES}/a/b', 'no file can be made in .*proc/'),
    ('x' * 300, 'no file can be made in'),
])
def test_a_folder_that_takes_no_files_is_told(tmp_path, name, said):
  (tmp_path / 'file').touch()
  with pytest.raises(errors.GdpError, match=f'Cannot write .*: {said}'):
    files.check_folder(tmp_path / name)

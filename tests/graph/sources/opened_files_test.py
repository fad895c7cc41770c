"""Files that a function reads."""

import json
import pathlib
import sysconfig

import pytest

from gdp_grappler.graph.sources import opened_files
from helpers import fresh

_WATCHED = '''
import json, sys
sys.path.insert(0, '.')
from gdp_grappler.graph.sources import opened_files
watch = opened_files.Watch()
import mine
print(json.dumps(watch.stamps()))
'''
_MINE = '''
import wave, json, tempfile
import beside
with open('sizes.json') as file:
  json.load(file)
with tempfile.NamedTemporaryFile('w+') as file, open(file.name):
  pass
try:
  open('missing')
except FileNotFoundError:
  pass
'''


def test_modules_and_files_of_ones_own_are_heard_of(tmp_path):
  (tmp_path / 'mine.py').write_text(_MINE)
  (tmp_path / 'beside.py').write_text('')
  (tmp_path / 'sizes.json').write_text('[1]')
  (tmp_path / 'unread').write_text('')
  own = str(pathlib.Path(__file__).parents[3])
  for _ in range(2):  # From the compiled modules as well.
    found = fresh.run_code(_WATCHED, folder=tmp_path, PYTHONPATH=own).results
    names = {pathlib.Path(name).name for name, _, _ in found}
    assert names == {'mine.py', 'beside.py', 'sizes.json', 'missing'}
    assert [size for name, size, _ in found if 'sizes' in name] == [3]


def test_a_change_after_the_file_was_read_shows(tmp_path):
  """Stamps were taken at the end, so they had such a change already."""
  (tmp_path / 'mine.py').write_text("open('sizes').read()\nimport pathlib\n"
                                    "pathlib.Path('log').open('a').write('1')\n"
                                    'import os; os.utime("sizes", ns=(1, 1))')
  (tmp_path / 'sizes').write_text('1')
  own = str(pathlib.Path(__file__).parents[3])
  found = fresh.run_code(_WATCHED, folder=tmp_path, PYTHONPATH=own).results
  changed = [seen[0] for seen in found if opened_files.has_changed(tuple(seen))]
  assert changed == [str(tmp_path / 'sizes')]


@pytest.mark.parametrize('package, is_strange', [('tensorflow', True),
                                                 ('my_models', False)])
def test_installed_packages_are_read_except_tensorflow(package, is_strange):
  """A change of an installed package went unnoticed."""
  folder = pathlib.Path(sysconfig.get_paths()['purelib'])
  assert opened_files._is_strange(folder / package / 'a.py') == is_strange


def test_a_change_shows(tmp_path):
  path = tmp_path / 'file'
  assert opened_files.stamp(path) is None
  assert opened_files.stamp(tmp_path) is None
  path.write_text('a')
  before = opened_files.stamp(path)
  assert json.loads(json.dumps(before)) == list(before)
  path.write_text('ab')
  assert opened_files.stamp(path) != before


def test_a_file_that_was_missing_shows_once_it_is_there(tmp_path):
  (tmp_path / 'mine.py').write_text(_MINE)
  (tmp_path / 'beside.py').write_text('')
  (tmp_path / 'sizes.json').write_text('[1]')
  own = str(pathlib.Path(__file__).parents[3])
  found = fresh.run_code(_WATCHED, folder=tmp_path, PYTHONPATH=own).results
  missing = next(tuple(seen) for seen in found if seen[0].endswith('/missing'))
  assert not any(opened_files.has_changed(tuple(seen)) for seen in found)
  (tmp_path / 'missing').write_text('')
  assert opened_files.has_changed(missing)

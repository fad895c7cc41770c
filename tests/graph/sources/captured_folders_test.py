"""Folders of captured graphs."""

import pathlib
import shutil

import pytest

from gdp_grappler import errors
from gdp_grappler.graph.sources import captured_folders
from gdp_grappler.graph.sources import sources

_TESTDATA = pathlib.Path(__file__).parents[2] / "testdata"

_DENSE = _TESTDATA / 'dense_train_step.pb'
_LSTM = _TESTDATA / 'lstm_train_step.pb'


@pytest.fixture(name='folder')
def _folder(tmp_path):
  """As a program leaves it: its step, and small graphs that nobody means."""
  folder = tmp_path / 'graphs'
  folder.mkdir()
  for name, ops in (('initial', 7), ('one_step_on_data', 192), ('gather', 12)):
    shutil.copy(_DENSE,
                folder / captured_folders.file_name(name, ops, '0f3a9c12'))
  (folder / 'notes_9999_0f3a9c.txt').write_text('no graph')
  return folder


def test_names_of_files_tell_name_ops_and_fingerprint():
  assert captured_folders.file_name('a b/c', 12,
                                    '0f3a9c12') == ('a_b_c_12_0f3a9c.pb')


def test_a_folder_means_its_largest_graph_and_the_rest_is_listed(folder):
  said = []
  source = sources.load(str(folder), tell=said.append)
  assert len(source.graph_def.node) > 100
  assert said == [
      f'{folder} has 3 graphs: taking one_step_on_data_192_0f3a9c.pb, the one '
      'with the most ops. Name the file for another one: gather_12_0f3a9c.pb, '
      'initial_7_0f3a9c.pb.'
  ]


def test_few_of_many_are_listed(folder):
  for ops in range(20, 30):
    shutil.copy(_LSTM, folder / captured_folders.file_name('f', ops, 'abcdef'))
  said = []
  captured_folders.largest(folder, said.append)
  assert said[0].endswith('f_25_abcdef.pb and 7 more.')


def test_a_folder_without_graphs_says_what_is_wanted(tmp_path):
  with pytest.raises(errors.InvalidGraphError, match='nor captured graphs'):
    sources.load(str(tmp_path))

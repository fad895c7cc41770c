"""Tests of what a user calls a graph."""

import pytest

from gdp_grappler import errors
from gdp_grappler.graph.sources import origin


def test_a_file_is_read_once(tmp_path):
  path = tmp_path / 'graph.pb'
  path.write_bytes(b'first')
  found = origin.Origin(str(path))
  assert found.data == b'first'
  path.write_bytes(b'second')
  assert found.data == b'first'


@pytest.mark.parametrize('text, expected', [('models.net:make', True),
                                            ('keras_applications:VGG16', True),
                                            ('models/net.py:make', False),
                                            ('net', False), ('a:b:c', False)])
def test_functions(text, expected):
  assert origin.Origin(text).names_function == expected


def test_what_exists_is_no_function(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  (tmp_path / 'a:b').write_bytes(b'')
  assert origin.is_function('a:b')
  assert not origin.Origin('a:b').names_function


def test_an_empty_name_is_not_the_current_folder():
  """A script whose variable was not set got the graph of another folder."""
  with pytest.raises(errors.InvalidGraphError, match='No graph is given'):
    origin.Origin('')


def test_missing_and_unreadable(tmp_path):
  with pytest.raises(errors.InvalidGraphError,
                     match='Graph none.pb does not exist. Give a captured'):
    _ = origin.Origin('none.pb').data
  with pytest.raises(errors.InvalidGraphError, match='no regular file'):
    _ = origin.Origin(str(tmp_path)).data


@pytest.mark.parametrize('text', ['none.pb', 'none/graph', './none'])
def test_a_path_that_is_missing(text):
  with pytest.raises(errors.InvalidGraphError,
                     match=f'Graph {text} does not exist.*or the name of a'):
    origin.Origin(text).check_path()


@pytest.mark.parametrize('text', ['rnnlm-2', 'models.net:make', '.'])
def test_what_may_be_no_missing_path(text):
  origin.Origin(text).check_path()


@pytest.mark.parametrize('ask', ['exists', 'is_file', 'is_folder', 'data'])
def test_a_name_that_is_too_long_is_no_graph(ask):
  with pytest.raises(errors.InvalidGraphError, match='File name too long'):
    getattr(origin.Origin('x' * 300), ask)


def test_what_is_there(tmp_path):
  (tmp_path / 'file').write_bytes(b'')
  kinds = {
      name: (found.exists, found.is_file, found.is_folder)
      for name in ('file', '.', 'none', 'file/none', 'a\0b')
      for found in [origin.Origin(f'{tmp_path}/{name}')]
  }
  assert kinds == {
      'file': (True, True, False), '.': (True, False, True),
      'none': (False,) * 3, 'file/none': (False,) * 3, 'a\0b': (False,) * 3
  }

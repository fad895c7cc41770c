"""Calls of functions in processes of their own."""

import os

import numpy as np
import pytest

from gdp_grappler.processes import calls
from helpers import processes

_HERE = 'helpers.child_functions'


def _call(name, *arguments, timeout_s=60., **options):
  return calls.call(f'{_HERE}:{name}', *arguments, timeout_s=timeout_s,
                    **options)


def test_returns_what_the_function_does(capfd):
  array = np.arange(3)
  number, text, same = _call('echo', 1, 'ü', array)
  assert (number, text) == (1, 'ü')
  np.testing.assert_array_equal(same, array)
  assert capfd.readouterr() == ('', '')


@pytest.mark.parametrize('name, reason', [
    ('refuse', 'ValueError: two lines'),
    ('die', 'the process ended with exit code 3: last words'),
    ('unheard', "AttributeError: module 'helpers.child_functions' has no "
     "attribute 'unheard'"),
])
def test_failures_are_one_line(name, reason):
  with pytest.raises(calls.CallError) as caught:
    _call(name)
  assert str(caught.value) == reason


def test_a_function_that_hangs_is_ended():
  before = processes.children(os.getpid())
  with pytest.raises(calls.CallError, match='no answer within 0.1 s'):
    _call('hang', timeout_s=.1)
  assert processes.children(os.getpid()) == before


def test_variables_of_the_caller(monkeypatch):
  monkeypatch.setenv('GDP_POLICY', 'mine')
  variables, _ = _call('environment', environment={'GDP_CACHE_DIR': '/x'})
  assert variables['GDP_POLICY'] == 'mine'
  assert variables['GDP_CACHE_DIR'] == '/x'


def test_a_random_py_in_the_current_folder_is_not_executed(
    tmp_path, monkeypatch):
  """It was, by every child: Python looks into the current folder first."""
  (tmp_path / 'random.py').write_text('raise RuntimeError("not the real one")')
  monkeypatch.chdir(tmp_path)
  assert _call('draw') == (0, '')
  _, path = _call('environment')
  assert not {'', '.', str(tmp_path)} & set(path)

"""Found by use: what a placement or the option must not leave behind."""

import pytest

from helpers import fresh

pytestmark = pytest.mark.e2e


@pytest.fixture(scope='module')
def finished():
  return fresh.run('leftovers.py')


def test_a_seeded_stream_of_a_session_goes_on_whatever_runs(finished):
  # A kernel of a session serves all its graphs; on another device the stream
  # began anew.
  for placed in finished.results['placed']:
    assert placed == finished.results['stock']


def test_a_saved_model_does_not_remember_the_option(finished):
  assert finished.results['saved'] is False


def test_an_empty_dict_switches_on(finished):
  assert finished.results['shown'] == {}
  assert any(line.startswith('[gdp] work: ') for line in finished.notices)

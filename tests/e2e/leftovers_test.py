"""Effects that a placement or the option must not have later."""

import pytest

from helpers import fresh

pytestmark = pytest.mark.e2e


@pytest.fixture(scope='module')
def finished():
  return fresh.run('leftovers.py')


def test_a_seeded_stream_of_a_session_goes_on_whatever_runs(finished):
  # All graphs of a session share the kernel of a random op. On another device,
  # the op once got a new kernel, and its random stream began anew.
  for placed in finished.results['placed']:
    assert placed == finished.results['stock']


def test_a_saved_model_does_not_remember_the_option(finished):
  assert finished.results['saved'] is False


def test_an_empty_dict_switches_on(finished):
  assert finished.results['shown'] == {}
  assert any(line.startswith('[gdp] work: ') for line in finished.notices)

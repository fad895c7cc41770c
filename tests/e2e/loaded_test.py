"""SavedModels of v1 under TensorFlow 2."""

import pytest

from helpers import programs

pytestmark = pytest.mark.e2e

results = programs.results('loaded.py')


def test_loading_says_nothing(results):
  assert results['at_load'] == []


def test_serving_is_one_line_and_the_same_numbers(results):
  line, = results['at_call']
  assert 'placed by round_robin' in line
  assert results['same']

"""Replicas of a distribution strategy, which the plugin leaves alone."""

import pytest

from helpers import fresh

pytestmark = pytest.mark.e2e


def test_replicas_train_as_without_us():
  finished = fresh.run('mirrored.py')
  assert len(finished.results['on']) == 2
  assert finished.results['on'] == finished.results['off']
  assert any('replicas of a distribution strategy' in line
             for line in finished.notices)
  assert not any('placed by' in line for line in finished.notices)

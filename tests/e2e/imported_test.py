"""A program imports a graph that was placed before, and runs it placed."""

import pytest

from helpers import fresh

pytestmark = pytest.mark.e2e


def test_the_order_of_starts_of_an_earlier_placement_is_gone():
  """Once its ops stayed beside the new ones, and were placed like others."""
  results = fresh.run('imported.py').results
  result, triggers, devices = results['stock']
  assert (result, devices) == (640., 2) and triggers > 2
  result, triggers, devices = results['placed']
  assert (result, devices) == (640., 3) and triggers == 0

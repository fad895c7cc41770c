"""A model whose graph lacks the batch size, in a fresh interpreter."""

import re

import pytest

from helpers import fresh

pytestmark = pytest.mark.e2e


def test_images_that_are_enlarged_train():
  """Ten unknown dimensions once counted as batches, and the process died."""
  program = fresh.run('open_batch.py')
  assert len(program.results['loss']) == 1
  step, = re.findall(r'predicted step ([\d.]+)', program.stderr)
  assert float(step) < 1000

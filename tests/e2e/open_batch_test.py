"""A model whose batch size no graph knows, in a fresh interpreter."""

import re

import pytest

from helpers import fresh

pytestmark = pytest.mark.e2e


def test_images_that_are_enlarged_train():
  """Ten dimensions were each as large as a batch, and the process was gone."""
  program = fresh.run('open_batch.py')
  assert len(program.results['loss']) == 1
  step, = re.findall(r'predicted step ([\d.]+)', program.stderr)
  assert float(step) < 1000

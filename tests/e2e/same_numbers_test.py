"""With oneDNN on, placing changes no bit of the numbers."""

import pytest

from helpers import programs

pytestmark = pytest.mark.e2e

results = programs.results('same_numbers.py', TF_ENABLE_ONEDNN_OPTS='1')


@pytest.mark.parametrize('net', ['mixed_bfloat16', 'nasnet_cells'])
def test_losses_and_weights_are_the_same(results, net):
  stock, *placed = results[net]['losses']
  assert len(stock) == 4 and len(set(stock)) == 4
  assert placed == [stock] * len(placed)
  assert results[net]['differences'] == [0.] * len(placed)
  assert results[net]['devices'] == [1] + [2] * len(placed)

"""Tests of what `make demo` says of its runs."""

import importlib.util
import math
import pathlib

import pytest

_PROGRAM = pathlib.Path(__file__).parents[2] / 'demo/inception.py'


@pytest.fixture(name='demo')
def _demo():
  spec = importlib.util.spec_from_file_location('inception', _PROGRAM)
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  return module


@pytest.mark.parametrize('losses, code, said', [
    ([2., 1.], 0, 'Losses agree: 0.0e+00 apart'),
    ([2., 1.1], 1, 'Losses DIFFER: 1.0e-01 apart'),
    ([2., math.nan], 1, 'Losses DIFFER: nan apart'),
])
def test_losses_agree_if_all_do(demo, losses, code, said, capsys):
  """Losses that became NaN after the first agreed."""
  ops = {'CPU:0': 2, 'CPU:1': 2}
  plain, placed = ({'ops': ops, 'losses': l} for l in ([2., 1.], losses))
  assert demo._report(plain, placed, 1.) == code
  assert said in capsys.readouterr().out

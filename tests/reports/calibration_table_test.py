import dataclasses

from gdp_grappler.reports import calibration_table
from helpers import calibrations


def test_figures_kernels_and_what_was_left_out():
  text = calibration_table.text(calibrations.make())
  assert 'NVIDIA H100 80GB HBM3, driver 580.1, TensorFlow 2.21.0' in text
  assert '(measured)' in text and 'launching_op_s' in text and '5 us' in text
  assert '1.3 TB/s' in text
  # 2e9 FLOPs in 100 us.
  assert 'MatMul' in text and '20 TFLOP/s' in text
  assert 'Left out: MatMul, finer: no time left.' in text
  assert all(len(line) <= 80 for line in text.splitlines())


def test_short_and_with_nothing_left_out():
  made = dataclasses.replace(calibrations.make(), left_out=())
  text = calibration_table.text(made, counts_only=True)
  assert 'launching_op_s' not in text and 'Left out' not in text


def test_many_that_were_left_out_are_counted():
  many = tuple(f'a{i}: no time left' for i in range(9))
  made = dataclasses.replace(calibrations.make(), left_out=many)
  assert 'and 4 more' in calibration_table.text(made)

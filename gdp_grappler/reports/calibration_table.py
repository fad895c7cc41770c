"""Text of a calibration: times of the host, and rates of kernels."""

from __future__ import annotations

import numpy as np

from gdp_grappler.cluster import calibration as calibration_lib
from gdp_grappler.reports import tables
from gdp_grappler.reports import units

_MOST_LEFT_OUT = 5  # Reasons that the table shows. The rest is counted.
_RATE = '_bytes_per_s'
_COUNT = 'side_by_side_devices'


def text(found: calibration_lib.Calibration, counts_only: bool = False) -> str:
  """Returns two tables, and a line about op types that were left out.

  Args:
    found: The calibration.
    counts_only: Whether to return only the numbers of measurements.
  """
  driver = f', driver {found.driver}' if found.driver else ''
  head = (f'{found.card}{driver}, TensorFlow {found.tensorflow}: '
          f'{units.count(len(found.kernels), "kernel")} and '
          f'{units.count(len(found.figures), "figure")} of the host (measured)')
  parts = [tables.wrapped(head)]
  if not counts_only:
    parts += [table for table in (_figures(found), _kernels(found)) if table]
  if found.left_out:
    parts.append(_left_out(found))
  return '\n\n'.join(parts) + '\n'


def _figures(found: calibration_lib.Calibration) -> str:
  rows = [('what', 'measured', 'meaning')]
  for name, what in calibration_lib.FIGURES.items():
    value = found.figure(name)
    if value is not None:
      rows.append((name, _value(name, value), what))
  return tables.text(rows) if len(rows) > 1 else ''


def _value(name: str, value: float) -> str:
  if name.endswith(_RATE):
    return units.amount(value, 'B/s')
  return f'{value:.0f}' if name == _COUNT else f'{value * 1e6:.3g} us'


def _kernels(found: calibration_lib.Calibration) -> str:
  """Returns a table with the smallest and the largest size of op types."""
  rows = [('op type', 'count', 'least', 'most', 'FLOP/s', 'bytes/s')]
  for op_type, columns in found.columns.items():
    flops, io_bytes, seconds = columns[np.argsort(columns[:, 2])].T
    rows.append((op_type, str(len(seconds)), f'{seconds[0] * 1e6:.3g} us',
                 f'{seconds[-1] * 1e6:.3g} us',
                 units.amount(float((flops / seconds).max()), 'FLOP/s'),
                 units.amount(float((io_bytes / seconds).max()), 'B/s')))
  return tables.text(rows) if len(rows) > 1 else ''


def _left_out(found: calibration_lib.Calibration) -> str:
  shown = '; '.join(found.left_out[:_MOST_LEFT_OUT])
  more = len(found.left_out) - _MOST_LEFT_OUT
  return tables.wrapped(f'Left out: {shown}'
                        + (f'; and {more} more' if more > 0 else '') + '.')

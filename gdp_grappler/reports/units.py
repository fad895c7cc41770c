"""Texts of numbers and units."""

from __future__ import annotations

import math

# Factors of SI prefixes, the largest first.
_PREFIXES = ((1e15, 'P'), (1e12, 'T'), (1e9, 'G'), (1e6, 'M'), (1e3, 'k'), (1,
                                                                            ''))


def amount(value: float, unit: str) -> str:
  """Returns three digits and a prefix: '12.3 MB' for 12345678 and 'B'."""
  scale, prefix = next(
      p for p in _PREFIXES if value > 0.9995 * p[0] or p[0] == 1)
  return f'{value / scale:.3g} {prefix}{unit}'


def count(number: int, noun: str) -> str:
  """Returns '1 tensor' or '2 tensors' for a number and 'tensor'."""
  return f'{number} {noun}{"" if number == 1 else "s"}'


def digits(value: float, significant: int = 3) -> str:
  """Returns '12.3' for 12.34, and '1235' for 1234.6 in place of an exponent.

  Args:
    value: A number of at least 0.0001.
    significant: Significant digits, unless more digits are before the point.
  """
  text = f'{value:.{significant}g}'
  return f'{value:.0f}' if 'e+' in text else text


def ms(seconds: float, significant: int = 4) -> str:
  """Returns '12.34 ms' for 0.01234; `significant` is that of `digits`."""
  return f'{digits(seconds * 1e3, significant)} ms'


def clock(seconds: float) -> str:
  """Returns '3:07' for 187 seconds; '?' for NaN or infinity."""
  if not math.isfinite(seconds):
    return '?'
  minutes, rest = divmod(int(round(seconds)), 60)
  return f'{minutes}:{rest:02d}'

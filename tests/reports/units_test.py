"""Tests of gdp_grappler.reports.units."""

import pytest

from gdp_grappler.reports import units


@pytest.mark.parametrize('value, text', [(0, '0 B'), (999, '999 B'),
                                         (1234, '1.23 kB'), (999_900, '1 MB'),
                                         (12_345_678, '12.3 MB'),
                                         (16e9, '16 GB'), (3e15, '3 PB')])
def test_amount(value, text):
  assert units.amount(value, 'B') == text


def test_a_card_of_today_has_petaflops():
  """A table of GB200 had '1.25e+03 TFLOP/s'."""
  assert units.amount(1250e12, 'FLOP/s') == '1.25 PFLOP/s'


def test_one_is_no_plural():
  assert [units.count(n, 'tensor') for n in (0, 1, 2)
         ] == ['0 tensors', '1 tensor', '2 tensors']


def test_milliseconds():
  assert units.ms(.0123456) == '12.35 ms'
  assert units.ms(.0123456, 3) == '12.3 ms'


@pytest.mark.parametrize('value, text', [(12.345, '12.3'), (999.7, '1000'),
                                         (1234.5, '1234'), (98765.4, '98765')])
def test_long_times_have_no_exponent(value, text):
  """Once a line said '2.75e+03 ms spent on moving variables'."""
  assert units.digits(value) == text


@pytest.mark.parametrize('seconds, text', [(0., '0:00'), (59.6, '1:00'),
                                           (187.2, '3:07'), (3661., '61:01'),
                                           (float('nan'), '?'),
                                           (float('inf'), '?')])
def test_clocks(seconds, text):
  assert units.clock(seconds) == text

import dataclasses

import pytest

from gdp_grappler.cluster import device_figures
from gdp_grappler.cluster import presets
from gdp_grappler.cluster import type_rates


def _gpu(name, **fields):
  return dataclasses.replace(presets.preset(f'1x{name}').devices[1], **fields)


@pytest.mark.parametrize('name', device_figures.CARDS)
def test_every_card_of_the_table_states_its_rates(name):
  half = type_rates.rate(_gpu(name), 'float16')
  double = type_rates.rate(_gpu(name), 'float64')
  assert 1 <= half <= 8 and 1 / 128 <= double <= 1
  assert len(type_rates.of_card(name)) == 4


def test_units_for_matrices_count():
  """float16 had the rate of float32 on every card."""
  assert type_rates.rate(_gpu('V100'), 'float16') == 8
  assert type_rates.rate(_gpu('V100'), 'bfloat16') == 1
  assert type_rates.rate(_gpu('RTX4090'), 'float64') == 1 / 64


def test_rates_that_a_device_does_not_state():
  gpu = _gpu('V100', float16_rate=None, float64_rate=None)
  assert type_rates.rate(gpu, 'float16') == 2
  assert type_rates.rate(gpu, 'float64') == 1 / 32
  cpu = presets.preset('1xV100').devices[0]
  assert type_rates.rate(cpu, 'bfloat16') == 1
  assert type_rates.rate(cpu, 'float64') == 1 / 3


@pytest.mark.parametrize('capability, half, double', [
    ((3, 7), 1, 1 / 3),
    ((6, 0), 1, 1 / 2),
    ((6, 2), 1, 1 / 32),
    ((8, 0), 16, 1),
    ((8, 9), 2, 1 / 64),
    ((9, 0), 989 / 67, 1),
])
def test_rates_of_a_peak_that_follows_from_clocks(capability, half, double):
  fields = type_rates.of_capability(capability)
  assert (fields['float16_rate'], fields['float64_rate']) == (half, double)


@pytest.mark.parametrize('name, capability, flops', [
    ('A100', (8, 0), 19.5e12),
    ('V100', (7, 0), 15.7e12),
    ('H100', (9, 0), 67e12),
    ('B200', (10, 0), 75e12),
    ('RTX4090', (8, 9), 82.6e12),
])
def test_both_tables_give_the_same_peaks(name, capability, flops):
  clocked = type_rates.of_capability(capability)
  stated = type_rates.of_card(name)
  assert stated.pop('winograd_rate') == clocked['winograd_rate']
  for field, rate in stated.items():
    peak = device_figures.CARDS[name].peak_flops * rate
    assert clocked[field] * flops == pytest.approx(peak, rel=.01)


@pytest.mark.parametrize('capability, rate', [
    ((3, 7), 1),
    ((5, 2), type_rates.WINOGRAD_RATE),
    ((7, 5), type_rates.WINOGRAD_RATE),
    ((8, 0), 1),
    ((12, 0), 1),
])
def test_cards_with_tf32_do_not_need_winograd(capability, rate):
  """VGG16 was priced three times too long on P100, V100 and T4."""
  assert type_rates.of_capability(capability)['winograd_rate'] == rate
  assert type_rates.rate(_gpu('V100', winograd_rate=None),
                         type_rates.WINOGRAD) == 1


def test_a_capability_without_rates():
  assert not type_rates.of_capability(None)
  assert not type_rates.of_capability((2, 0))


def test_a_device_may_state_its_own():
  assert type_rates.rate(_gpu('V100', float64_rate=.25), 'float64') == .25


def test_all_other_types_are_as_fast_as_float32():
  assert type_rates.rate(_gpu('V100'), 'float32') == 1
  assert type_rates.rate(_gpu('V100'), 'int8') == 1
  assert not type_rates.of_card('Voodoo2')

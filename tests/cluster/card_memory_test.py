import pytest

from gdp_grappler.cluster import card_memory
from gdp_grappler.cluster import device_figures

_MIB = 1 << 20


@pytest.mark.parametrize(
    'title, total_mib, capability, found_mib',
    [
        ('Tesla P100-PCIE-16GB', 16_280, 6, 15_401),
        ('Tesla T4', 15_109, 7, 13_757),
        ('NVIDIA H100 80GB HBM3', 81_559, 9, 78_763),
        # Twice the memory of the one in the table; logs say 31,134.
        ('Tesla V100-SXM2-32GB', 32_510, 7, 30_948),
        ('An unknown card', 8192, 12, 8192 - 1800 - 512),
        ('An old card', 2000, 3, 988),
        ('A small card', 100, 8, 0),
    ])
def test_what_tensorflow_allocates(title, total_mib, capability, found_mib):
  found = card_memory.allocatable_bytes(total_mib * _MIB, title, capability)
  assert found == found_mib * _MIB


def test_no_more_than_there_is():
  assert card_memory.allocatable_bytes(15_000 * _MIB, 'Tesla P100-PCIE-16GB',
                                       6) == 15_000 * _MIB


def test_logged_figures_are_within_a_tenth_of_the_rule():
  """Of the driver's totals of some cards, from the same logs."""
  for name, total_mib, capability in (('V100', 16_160, 7), ('A100', 40_536, 8),
                                      ('RTX3090', 24_268, 8), ('A6000', 48_677,
                                                               8),
                                      ('L4', 23_034, 8), ('H100', 81_559, 9)):
    known = device_figures.CARDS[name].memory_bytes
    ruled = card_memory.allocatable_bytes(total_mib * _MIB, '', capability)
    assert known == pytest.approx(ruled, rel=.03), name

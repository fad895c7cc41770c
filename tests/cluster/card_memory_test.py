import pytest

from gdp_grappler.cluster import card_memory
from gdp_grappler.cluster import device_figures

_MIB = 1 << 20


@pytest.mark.parametrize('name, mib', [('T4', 13_757), ('V100', 14_824),
                                       ('K40', 10_610), ('P100', 15_403)])
def test_cards_have_what_tensorflow_printed(name, mib):
  card = device_figures.CARDS[name]
  assert card_memory.of_card(name, card.memory_bytes) == mib * _MIB


def test_the_v100_of_a_dgx2_has_twice_as_much():
  card = device_figures.V100_OF_DGX2
  assert card_memory.of_card(card.name, card.memory_bytes) == 30_995 * _MIB


@pytest.mark.parametrize('capability, reserve_mib', [((3, 5), 500),
                                                     ((6, 1), 500),
                                                     ((7, 5), 1050),
                                                     ((8, 9), 1536),
                                                     ((9, 0), 1800),
                                                     ((12, 0), 1800),
                                                     (None, 1800)])
def test_the_reserve_grows_with_the_capability(capability, reserve_mib):
  total = 24 << 30
  left = card_memory.of_total(total, capability)
  assert left == total - (reserve_mib + 750) * _MIB


def test_small_cards_have_a_small_reserve():
  assert card_memory.of_total(1 << 30, (7, 5)) == (1024 - 225) * _MIB
  # Nothing is left below zero.
  assert card_memory.of_total(100 * _MIB, (7, 5)) == 50 * _MIB


def test_a_card_with_another_memory_is_told_apart():
  assert card_memory.is_nominal(16_281 * _MIB, 16 << 30)
  # Error correction takes a sixteenth of GDDR6.
  assert card_memory.is_nominal(23_028 * _MIB, 24 << 30)
  assert not card_memory.is_nominal(80 << 30, 40 << 30)
  assert not card_memory.is_nominal(12 << 30, 16 << 30)

from gdp_grappler.cluster import device_figures
from gdp_grappler.cluster import multiprocessors


def test_every_card_of_the_table_is_known():
  assert all(
      multiprocessors.resident_threads(name) for name in device_figures.CARDS)
  assert multiprocessors.resident_threads('H100') == 270_336


def test_other_cards_are_not():
  assert multiprocessors.resident_threads('Voodoo2') == 0

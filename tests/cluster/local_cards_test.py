import pytest

from gdp_grappler.cluster import device_figures
from gdp_grappler.cluster import local_cards
from gdp_grappler.cluster import nvml


def _made(title, **facts):
  """The figures of a card with known PCIe, and the notes."""
  notes = []
  card = local_cards.figures(
      'GPU:0', nvml.CardFacts(title, pcie_generation=4, pcie_lanes=16, **facts),
      None, notes)
  return card, notes


@pytest.mark.parametrize('title, share, memory_bytes', [
    ('NVIDIA A100-SXM4-40GB MIG 1g.5gb', 1 / 7, 5e9),
    ('NVIDIA A100-SXM4-40GB MIG 3g.20gb', 3 / 7, 20e9),
    ('NVIDIA A100-SXM4-40GB MIG 1c.3g.20gb', 1 / 7, 20e9),
    ('NVIDIA A100-SXM4-80GB MIG 1g.10gb+me', 1 / 7, 10e9),
])
def test_a_slice_has_its_share_of_the_card(title, share, memory_bytes):
  """It had the rates and the memory of the whole card, without a note."""
  facts = local_cards.facts_of(
      {'device_name': title, 'compute_capability': (8, 0)})
  notes = []
  whole = device_figures.CARDS['A100']
  card = local_cards.figures('GPU:0', facts, None, notes)
  assert card.peak_flops == pytest.approx(whole.peak_flops * share)
  assert card.bandwidth_bytes_per_s == pytest.approx(whole.bandwidth_bytes_per_s
                                                     * share)
  assert card.resident_threads == int(108 * 2048 * share)
  assert f'{share:.0%} of the rates' in ' '.join(notes)
  allocatable = local_cards.memory_bytes('GPU:0', facts, notes)
  assert memory_bytes / 2 < allocatable < memory_bytes


def test_a_slice_of_an_unknown_card():
  card, notes = _made('NVIDIA A9 MIG 2g.5gb', capability=(8, 0))
  assert card.peak_flops == pytest.approx(
      device_figures.CARDS['A100'].peak_flops * 2 / 7)
  assert 'NVIDIA A9 is not in the table' in notes[0] and len(notes) == 2


@pytest.mark.parametrize('title, bus_bits, megahertz, rate', [
    ('NVIDIA H100 PCIe', 5120, 1593, 2039e9),
    ('NVIDIA A100-SXM4-80GB', 5120, 1593, 2039e9),
    ('NVIDIA A100 80GB PCIe', 5120, 1512, 1935e9),
])
def test_a_variant_with_another_memory(title, bus_bits, megahertz, rate):
  """It had the bandwidth of the card in the table, without a note."""
  card, notes = _made(title, memory_bus_bits=bus_bits,
                      memory_clock_hertz=megahertz * 1e6)
  assert card.bandwidth_bytes_per_s == pytest.approx(rate, rel=.001)
  note, = notes
  assert f'has {rate / 1e9:,.0f} GB/s' in note


@pytest.mark.parametrize('title, bus_bits, megahertz', [
    ('NVIDIA H100 80GB HBM3', 5120, 2619),
    ('NVIDIA H200', 6144, 3201),
    ('Tesla T4', 256, 5001),
])
def test_rounded_clocks_do_not_replace_a_data_sheet(title, bus_bits, megahertz):
  card, notes = _made(title, memory_bus_bits=bus_bits,
                      memory_clock_hertz=megahertz * 1e6)
  known = device_figures.card_of(title)
  assert card.bandwidth_bytes_per_s == known.bandwidth_bytes_per_s
  assert not notes

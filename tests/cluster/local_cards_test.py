import pytest

from gdp_grappler.cluster import device_figures
from gdp_grappler.cluster import local_cards
from gdp_grappler.cluster import nvml
from gdp_grappler.cluster import type_rates


def _made(title, **facts):
  """The figures of a card with known PCIe, and the notes."""
  notes = []
  card = local_cards.figures(
      'GPU:0', nvml.CardFacts(title, pcie_generation=4, pcie_lanes=16, **facts),
      None, notes)
  return card, notes


@pytest.mark.parametrize('title, share, memory_share, memory_bytes', [
    ('NVIDIA A100-SXM4-40GB MIG 1g.5gb', 1 / 7, 1 / 8, 5e9),
    ('NVIDIA A100-SXM4-40GB MIG 3g.20gb', 3 / 7, 1 / 2, 20e9),
    ('NVIDIA A100-SXM4-40GB MIG 1c.3g.20gb', 1 / 7, 1 / 2, 20e9),
    ('NVIDIA A100-SXM4-80GB MIG 1g.10gb+me', 1 / 7, 1 / 8, 10e9),
])
def test_a_slice_has_its_share_of_the_card(title, share, memory_share,
                                           memory_bytes):
  """The share of units was also taken for the bandwidth of the memory."""
  facts = local_cards.facts_of(
      {'device_name': title, 'compute_capability': (8, 0)})
  notes = []
  whole = device_figures.CARDS['A100']
  card = local_cards.figures('GPU:0', facts, None, notes)
  assert card.peak_flops == pytest.approx(whole.peak_flops * share)
  assert card.bandwidth_bytes_per_s == pytest.approx(whole.bandwidth_bytes_per_s
                                                     * memory_share)
  assert card.resident_threads == int(108 * 2048 * share)
  said = ' '.join(notes)
  assert f'{share:.0%} of the FLOP/s' in said
  assert f'{memory_share:.0%} of its bandwidth' in said
  allocatable = local_cards.memory_bytes('GPU:0', facts, notes)
  assert memory_bytes / 2 < allocatable < memory_bytes


@pytest.mark.parametrize('title, share', [
    ('NVIDIA A30 MIG 4g.24gb', 1),
    ('NVIDIA A30 MIG 1g.6gb', 1 / 4),
])
def test_a_card_with_four_slices(title, share):
  """The slice that is the whole card had four sevenths of the rates."""
  like = device_figures.CARDS['A100']
  card, _ = _made(title, capability=(8, 0))
  assert card.peak_flops == pytest.approx(like.peak_flops * share)
  assert card.bandwidth_bytes_per_s == pytest.approx(like.bandwidth_bytes_per_s
                                                     * share)


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


@pytest.mark.parametrize('title, capability, half, double', [
    ('NVIDIA GeForce GTX 1080 Ti', (6, 1), 1, 1 / 32),
    ('NVIDIA GeForce RTX 2080 Ti', (7, 5), 4, 1 / 32),
    ('NVIDIA GeForce RTX 3080', (8, 6), 2, 1 / 64),
])
def test_a_card_with_a_peak_by_clocks_has_rates_by_capability(
    title, capability, half, double):
  """It had the rates of a server card, which refer to another peak."""
  card, _ = _made(title, capability=capability, lanes=1000, clock_hertz=1e9,
                  memory_bus_bits=256, memory_clock_hertz=1e9)
  assert card.peak_flops == 2e12
  assert card.type_rates['float16_rate'] == half
  assert card.type_rates['float64_rate'] == double


def test_a_card_with_assumed_figures_has_the_rates_of_the_same_card():
  card, _ = _made('NVIDIA A9', capability=(8, 0))
  assert card.peak_flops == device_figures.CARDS['A100'].peak_flops
  assert card.type_rates == type_rates.of_card('A100')


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

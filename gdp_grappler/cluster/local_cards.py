"""Figures of the cards of this machine.

Rates are those of the card's data sheet (`device_figures`). Cards of one name
may differ in the bandwidth of their memory, so NVML's figure (`nvml`) replaces
a bandwidth that is far from it. If the table lacks the card, rates are computed
from NVML's figures. Without NVML the rates are those of a card of the same
compute capability in the table. Notes say what was assumed.

MIG divides a card into slices. A program sees a slice as a card of its own,
whose title gives its share. NVML's figures are those of the whole card.
"""

from __future__ import annotations

import dataclasses
import math
import re
from typing import Any

from gdp_grappler.cluster import card_memory
from gdp_grappler.cluster import device_figures
from gdp_grappler.cluster import multiprocessors
from gdp_grappler.cluster import nvml
from gdp_grappler.cluster import type_rates

# Rate of large copies over a lane of PCIe 1. Each generation doubles the rate.
_PCIE1_LANE_BYTES_PER_S = device_figures.PCIE3_BYTES_PER_S / 64
# A card that the table of cards lacks gets the figures of one of these cards:
# of the one with the same major compute capability.
_OF_CAPABILITY = {
    3: 'K40', 6: 'P100', 7: 'V100', 8: 'A100', 9: 'H100', 10: 'B200',
    12: 'RTX5090'
}
# Share by which NVML's bandwidth may differ from the table.
_BANDWIDTH_TOLERANCE = .1
# The end of a slice's title: 'MIG 2g.10gb' has two slices of the card's units
# and 10 GB, and 'MIG 1c.2g.10gb' one of these two.
_SLICE = re.compile(r' MIG (?:(\d)c\.)?(\d)g\.(\d+)gb')
_SLICES_OF_CARD = 7
_SLICES_OF_A30 = 4
# The memory in the title of a card.
_SIZE = re.compile(r'\b(\d+)GB\b')


@dataclasses.dataclass(frozen=True)
class Card:
  """A physical card, or a slice of one.

  Attributes:
    name: Name of TensorFlow's physical device.
    facts: What NVML or TensorFlow says of the card.
    index: Index of the card in NVML's list; None if it is unknown.
    peak_flops: See `device_figures.Card`, as for the next two.
    efficiency: Share of the peak.
    bandwidth_bytes_per_s: Bandwidth of the memory.
    pcie_bytes_per_s: Rate of large copies from and to pinned host memory.
    brick_bytes_per_s: Rate of large copies over one NVLink.
    through_host: Whether copies from card to card over PCIe go through the
      host.
    resident_threads: Number of threads that the card holds at a time.
    type_rates: Fields of `cluster.Device` with the rates of other types than
      float32.
  """

  name: str
  facts: nvml.CardFacts
  index: int | None
  peak_flops: float
  efficiency: float
  bandwidth_bytes_per_s: float
  pcie_bytes_per_s: float
  brick_bytes_per_s: float
  through_host: bool
  resident_threads: int
  type_rates: dict[str, Any]


def facts_of(details: dict[str, Any]) -> nvml.CardFacts:
  """Returns the facts that TensorFlow knows without NVML.

  Args:
    details: TensorFlow's details of the physical device.
  """
  title = details.get('device_name', '')
  part = _SLICE.search(title)
  return nvml.CardFacts(title,
                        memory_bytes=int(part[3]) * 10**9 if part else None,
                        capability=details.get('compute_capability'))


def memory_bytes(name: str, facts: nvml.CardFacts, notes: list[str]) -> int:
  """Returns the bytes that TensorFlow can allocate on a whole card or slice.

  Args:
    name: Name of the card in the notes.
    facts: What is known of the card.
    notes: Gets a note if the memory is assumed.
  """
  card = device_figures.card_of(facts.title)
  total = facts.memory_bytes
  # Cards of one name are sold with memories of different sizes.
  if total and not (card and card_memory.is_nominal(total, card.memory_bytes)):
    return card_memory.of_total(total, facts.capability)
  size = card_memory.of_card(card.name, card.memory_bytes) if card else 16 << 30
  if total:
    return min(size, total)
  notes.append(f'{name}: memory of {size / 2**30:.4g} GiB is assumed; NVML '
               'does not report it.')
  return size


def figures(name: str, facts: nvml.CardFacts, index: int | None,
            notes: list[str]) -> Card:
  """Returns the figures of a card.

  Args:
    name: Name of TensorFlow's physical device.
    facts: What is known of the card.
    index: Index of the card in NVML's list; None if it is unknown.
    notes: Gets a note for each assumption.
  """
  part = _SLICE.search(facts.title)
  whole = facts.title[:part.start()] if part else facts.title
  share, memory_share = _shares(part, whole) if part else (1., 1.)
  known = _rates(name, dataclasses.replace(facts, title=whole), notes)
  if part:
    notes.append(f'{name}: {facts.title} is a part of a card; {share:.0%} of '
                 f'the FLOP/s of the whole card and {memory_share:.0%} of its '
                 'bandwidth of memory are assumed.')
  pcie = known.pcie_bytes_per_s
  if facts.pcie_generation and facts.pcie_lanes:
    pcie = _PCIE1_LANE_BYTES_PER_S * facts.pcie_lanes * 2**(
        facts.pcie_generation - 1)
  else:
    notes.append(f'{name}: PCIe of {pcie / 1e9:g} GB/s is assumed; NVML does '
                 'not report it.')
  brick = (known.peers.brick_bytes_per_s
           if known.peers else device_figures.NVLINK_BYTES_PER_S)
  threads = multiprocessors.resident_threads(known.name)
  # `of_card` has multiples of the peak in the table. For another peak, which
  # follows from clocks, `of_capability` has the multiples.
  if known.peak_flops == device_figures.CARDS[known.name].peak_flops:
    rates = type_rates.of_card(known.name)
  else:
    rates = type_rates.of_capability(facts.capability)
  return Card(name, facts, index, known.peak_flops * share, known.efficiency,
              known.bandwidth_bytes_per_s * memory_share, pcie, brick,
              known.through_host, int(threads * share), rates)


def _shares(part: re.Match[str], whole: str) -> tuple[float, float]:
  """Returns the shares of a card's units and of its memory that a slice has.

  Most cards have seven slices of units, but eight of memory.

  Args:
    part: Match of `_SLICE`.
    whole: Title of the whole card.
  """
  is_a30 = 'A30' in whole.split()
  units = int(part[1] or
              part[2]) / (_SLICES_OF_A30 if is_a30 else _SLICES_OF_CARD)
  card = device_figures.card_of(whole)
  if card is None:
    return units, units
  size = _SIZE.search(whole)
  total_bytes = int(size[1]) << 30 if size else card.memory_bytes
  return units, min((int(part[3]) << 30) / total_bytes, 1.)


def _rates(name: str, facts: nvml.CardFacts,
           notes: list[str]) -> device_figures.Card:
  """A card of the table, with rates by NVML if the table has no such card."""
  card = device_figures.card_of(facts.title)
  title = facts.title or 'an unknown card'
  bandwidth = facts.bandwidth_bytes_per_s
  if card is None:
    # Without a known capability, an old card is assumed.
    major = facts.capability[0] if facts.capability else 6
    like = device_figures.CARDS[_OF_CAPABILITY.get(major, 'P100')]
    if facts.flops and bandwidth:
      notes.append(f'{name}: {title} is not in the table of cards; FLOP/s and '
                   'bandwidth of memory follow from its clocks (NVML).')
      return dataclasses.replace(like, peak_flops=facts.flops,
                                 efficiency=device_figures.GPU_EFFICIENCY,
                                 bandwidth_bytes_per_s=bandwidth)
    notes.append(f'{name}: {title} is not in the table of cards and NVML '
                 'does not report its clocks; the figures of '
                 f'{like.name} are assumed.')
    return like
  if bandwidth and not math.isclose(bandwidth, card.bandwidth_bytes_per_s,
                                    rel_tol=_BANDWIDTH_TOLERANCE):
    notes.append(f'{name}: the memory of {title} has '
                 f'{bandwidth / 1e9:,.0f} GB/s by its clocks (NVML), and '
                 f'{card.bandwidth_bytes_per_s / 1e9:,.0f} in the table of '
                 "cards; NVML's figure counts.")
    return dataclasses.replace(card, bandwidth_bytes_per_s=bandwidth)
  return card

"""How the devices of one host are joined: which wires a transfer occupies.

* PCIe: each card has one x16 connection, which carries both directions at once.
  In a host with three cards or more, each two cards share a switch and the
  switch's connection to the processor, as in servers of the K40 and P100 years,
  DGX-1, DGX A100 and HGX H100. With two sockets and more than four cards, each
  socket has half of the switches, and cards of different sockets share the link
  between sockets.
  A card uses the host memory of its own socket.
* NVLink-C2C: a card of a Grace processor has its own link to the processor.
* DGX-1: V100s joined by one or two bricks of NVLink as `nvidia-smi topo -m`
  shows them there; pairs without a brick go over PCIe and host memory.
* NVSwitch: every pair at the full rate of a card. Transfers from one sender
  take turns, and so do transfers to one receiver.
* Bridges: NVLink joins cards in pairs. Other cards use PCIe.
* Infinity Fabric: every pair has a link of its own.

TensorFlow copies between cards in one stream of the sender. So a card sends to
one card at a time, even if it has several links.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import Mapping, Sequence

from gdp_grappler.cluster import device_figures
from gdp_grappler.cluster import multiprocessors

# Bricks of NVLink between the cards of a DGX-1 with V100 (NVIDIA DGX-1 with
# Tesla V100 system architecture whitepaper, 2017, figure 4).
DGX1_BRICKS = (
    (0, 1, 1, 2, 2, 0, 0, 0),
    (1, 0, 2, 1, 0, 2, 0, 0),
    (1, 2, 0, 2, 0, 0, 1, 0),
    (2, 1, 2, 0, 0, 0, 0, 1),
    (2, 0, 0, 0, 0, 1, 1, 2),
    (0, 2, 0, 0, 1, 0, 2, 1),
    (0, 0, 1, 0, 1, 2, 0, 2),
    (0, 0, 0, 1, 2, 1, 2, 0),
)
# Cards behind one switch of PCIe.
_CARDS_PER_SWITCH = 2
# Largest number of cards of a host without switches.
_CARDS_WITHOUT_SWITCH = 2
# Largest number of cards that are all on the first socket.
_CARDS_PER_SOCKET = 4


@dataclasses.dataclass(frozen=True)
class Path:
  """Time and channels of a transfer within a host; see `cluster.Link`."""

  latency_s: float
  bandwidth_bytes_per_s: float
  channels: tuple[str, ...]


def host_paths(cards: Sequence[device_figures.Card],
               sockets: int = 1) -> dict[tuple[int, int], Path]:
  """Returns all paths of a host.

  Args:
    cards: Cards of the host, by the number of their device.
    sockets: Number of processors: 1, or 2 that share the cards.

  Returns:
    Paths by pairs of card numbers. -1 is the host's processor.
  """
  return {
      (source, target):
          _peers(cards, source, target) or _pcie(cards, sockets, source, target)
      for source, target in itertools.permutations(range(-1, len(cards)), 2)
  }


def parts_paths(
    cards: Sequence[device_figures.Card], card_of: Sequence[int],
    paths: Mapping[tuple[int, int], Path]) -> dict[tuple[int, int], Path]:
  """Returns paths between the GPUs of a host. Some may be parts of a card.

  Args:
    cards: Cards of the host.
    card_of: The card of each GPU.
    paths: `host_paths` of the cards.

  Returns:
    Paths by pairs of numbers of GPUs. -1 is the host's processor.
  """
  cards_of = [-1, *card_of]
  result = {}
  for source, target in itertools.permutations(range(-1, len(card_of)), 2):
    ends = cards_of[source + 1], cards_of[target + 1]
    if ends[0] == ends[1]:
      rate = multiprocessors.within_card_bytes_per_s(
          cards[ends[0]].bandwidth_bytes_per_s)
      result[source, target] = Path(device_figures.COPY_LATENCY_S, rate,
                                    (f'GPU:{ends[0]} copies',))
    else:
      result[source, target] = paths[ends]
  return result


def _peers(cards: Sequence[device_figures.Card], source: int,
           target: int) -> Path | None:
  """The path over NVLink or Infinity Fabric; None if neither joins the ends."""
  if source < 0 or target < 0 or cards[source] != cards[target]:
    return None
  peers = cards[source].peers
  if peers is None:
    return None
  equal_cards = [i for i, card in enumerate(cards) if card == cards[source]]
  bricks = _bricks(peers, equal_cards.index(source), equal_cards.index(target))
  if not bricks:
    return None
  into = (f'GPU:{target} peer in'
          if peers.kind == 'switch' else f'GPU:{source} > GPU:{target} peers')
  return Path(device_figures.COPY_LATENCY_S, bricks * peers.brick_bytes_per_s,
              (f'GPU:{source} peer out', into))


def _bricks(peers: device_figures.Peers, source: int, target: int) -> int:
  """Bricks between two cards, given by their numbers among equal cards."""
  if peers.kind == 'cube':
    return DGX1_BRICKS[source][target]
  if peers.kind == 'bridge' and source // 2 != target // 2:
    return 0
  return peers.bricks


def _pcie(cards: Sequence[device_figures.Card], sockets: int, source: int,
          target: int) -> Path:
  """The path over PCIe."""
  ends = [cards[end] for end in (source, target) if end >= 0]
  switches = (len(cards) > _CARDS_WITHOUT_SWITCH and
              not any(card.own_way for card in ends))
  from_switch, to_switch = (
      end // _CARDS_PER_SWITCH if end >= 0 else -1 for end in (source, target))
  crosses = sockets > 1 and len(ends) == 2 and (_socket(source, len(cards))
                                                != _socket(target, len(cards)))
  channels = []
  if source >= 0:
    channels.append(f'GPU:{source} out')
  if switches and from_switch != to_switch:
    if source >= 0:
      channels.append(f'PCIe switch {from_switch} up')
    if crosses:
      channels.append(f'sockets {"up" if source < target else "down"}')
    if target >= 0:
      channels.append(f'PCIe switch {to_switch} down')
  if target >= 0:
    channels.append(f'GPU:{target} in')
  latency_s = device_figures.COPY_LATENCY_S
  if len(ends) == 2 and any(card.peers or card.through_host for card in ends):
    # Without peer access the driver copies to the host and on.
    latency_s *= 2
    if ends[0].peers:
      channels.insert(0, f'GPU:{source} peer out')
  return Path(latency_s, min(card.pcie_bytes_per_s for card in ends),
              tuple(channels))


def _socket(card: int, num_cards: int) -> int:
  if num_cards <= _CARDS_PER_SOCKET:
    return 0
  num_switches = -(-num_cards // _CARDS_PER_SWITCH)
  return int(card // _CARDS_PER_SWITCH >= -(-num_switches // 2))

"""Clusters by name: the machines of the papers and of later years.

    2xP100            one host with two P100
    1xK40 .. 16xH100  1 to 16 of one kind of card in one host
    2xP100+2xK40      one host with different cards
    cpu               one host with a Broadwell and no card
    haswell+2xP100    a named processor, such as haswell, skylake2 or genoa2
                      (2: two sockets); `device_figures.CPUS` has them all
    1xH100:2          a card that is cut into two logical GPUs, 2 to 4
    2x8xV100-ib       two hosts of eight V100 each, joined by InfiniBand
    4xcpu-eth10       four hosts without cards, joined by 10 Gbit/s Ethernet

Networks are eth10, eth25, eth100, ib, ib200 and ib400, with one adapter per
host; up to 16 hosts. Without a named processor a host has the one that its
first card was sold with. GDP (section 4.1) uses 2, 4 or 8 P100 and a Broadwell,
HDP 2 to 8 K40 and a Haswell. Up to eight V100 are a DGX-1, more are a DGX-2;
A100 and H100 are behind NVSwitch, 16 A100 as in an HGX A100 with two boards.
Up to two GB200 have one Grace processor, four are a tray of a GB200 NVL72.
More than eight K40 or P100 in a host, or 9 to 16 H100, are rarely built: they
continue the same pattern. Figures and sources: `device_figures`; wires:
`topologies`.
"""

from __future__ import annotations

import functools
import itertools
import re
from typing import Mapping, Sequence

from gdp_grappler import errors
from gdp_grappler import suggestions
from gdp_grappler.cluster import card_memory
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import device_figures
from gdp_grappler.cluster import multiprocessors
from gdp_grappler.cluster import preset_grammar
from gdp_grappler.cluster import topologies
from gdp_grappler.cluster import type_rates

_CARDS = tuple(device_figures.CARDS)
_TPU = re.compile(r'tpu|^(\d+x)?v\d[ep]?-\d+$', re.IGNORECASE)
# Cards of hosts that have more cards than the given number.
_LARGER_HOSTS = {
    device_figures.V100_OF_DGX2: 8, device_figures.GB200_OF_TRAY: 2
}
# All presets of one host with one kind of card. The list leaves out several
# hosts, different cards and named processors.
NAMES = ('cpu', *(f'{count}x{card}' for card in _CARDS
                  for count in range(1, preset_grammar.MOST_CARDS + 1)))
_EXAMPLES = NAMES + tuple(f'{hosts}x{count}x{card}-{network}'
                          for hosts in (2, 4, 8) for count in (1, 2, 4, 8)
                          for card in _CARDS
                          for network in device_figures.NETWORKS)


@functools.lru_cache(maxsize=64)
def preset(name: str) -> cluster_lib.Cluster:
  """The cluster of a name; see the top of this module.

  Raises:
    ClusterError: the name means none.
  """
  body, dash, network_name = name.partition('-')
  if dash and network_name not in device_figures.NETWORKS:
    raise _unknown(
        name, f'"{network_name}" is not a network; networks are '
        + ', '.join(device_figures.NETWORKS))
  hosts, body = _hosts(name, body)
  cpu, cards, card_of = _host(name, body)
  if hosts > 1 and not dash:
    raise _unknown(
        name, f'{hosts} hosts need a network; write for example '
        f'{name}-eth10')
  if dash and hosts == 1:
    raise _unknown(
        name, 'a network joins hosts, but there is one; write for '
        f'example {_with_hosts(body, network_name)}')
  return _build(name, hosts, cpu, cards, card_of,
                device_figures.NETWORKS.get(network_name))


def is_preset(name: str) -> bool:
  """Whether `preset` knows the name."""
  try:
    preset(name)
  except errors.ClusterError:
    return False
  return True


def has_name_of(cluster: cluster_lib.Cluster) -> bool:
  """Whether the cluster's name, typed as a preset, means this cluster."""
  return is_preset(cluster.name) and preset(cluster.name) == cluster


def _with_hosts(body: str, network_name: str) -> str:
  """The nearest preset of several hosts with this network, which must exist."""
  return next(name for name in (f'2x{body}-{network_name}',
                                f'2x1x{body}-{network_name}',
                                f'2x8xV100-{network_name}') if is_preset(name))


def _hosts(name: str, body: str) -> tuple[int, str]:
  """Number of hosts, and each host: (2, '8xV100') for '2x8xV100'."""
  host = rf'[1-9]\d*x.*|{"|".join(preset_grammar.CPUS)}'
  match = re.fullmatch(rf'([1-9]\d{{0,8}})x({host})', body)
  if not match:
    return 1, body
  hosts = int(match[1])
  if hosts > preset_grammar.MOST_HOSTS:
    raise _unknown(
        name, f'it has {hosts} hosts, and presets have 1 to '
        f'{preset_grammar.MOST_HOSTS}; describe more in a cluster file')
  if '+' in match[2]:
    raise _unknown(
        name, 'several hosts are equal and of one kind of card; '
        'describe others in a cluster file')
  return hosts, match[2]


def _host(
    name: str, body: str
) -> tuple[device_figures.Cpu, list[device_figures.Card], list[int]]:
  """The processors, the cards of one host, and the card of each of its GPUs."""
  cpu, cards, card_of = None, list[device_figures.Card](), list[int]()
  for part in body.split('+'):
    match = re.fullmatch(r'(?:([1-9]\d{0,8})x)?(\w+)(?::(\d+))?', part)
    if part in preset_grammar.CPUS and cpu is None:
      cpu = preset_grammar.CPUS[part]
    elif match and match[2] in _CARDS:
      count = min(int(match[1] or 1), preset_grammar.MOST_CARDS + 1)
      parts = _parts(name, match[3])
      for _ in range(count):
        card_of += [len(cards)] * parts
        cards.append(device_figures.CARDS[match[2]])
    else:
      raise _unknown(name, near=_corrected(name, part),
                     lacking=match[2] if match else '')
  if len(card_of) > preset_grammar.MOST_CARDS:
    raise _unknown(
        name, f'a host has at most {preset_grammar.MOST_CARDS} cards, or '
        'logical GPUs of cards')
  for larger, most in _LARGER_HOSTS.items():
    own = device_figures.CARDS[larger.name]
    if cards.count(own) > most:
      cards = [larger if card == own else card for card in cards]
  return device_figures.CPUS[cpu or cards[0].cpu], cards, card_of


def _parts(name: str, text: str | None) -> int:
  """Returns the number of logical GPUs that a card is cut into.

  Raises:
    ClusterError: the number is 0 or too large.
  """
  parts = int(text or 1)
  if not 1 <= parts <= preset_grammar.MOST_PARTS:
    raise _unknown(
        name, f'a card is cut into 2 to {preset_grammar.MOST_PARTS} logical '
        f'GPUs, not {parts}')
  return parts


def _corrected(name: str, part: str) -> str:
  """The preset that was meant if one part is misspelt; '' if none is near."""
  for near in suggestions.nearest(name, _EXAMPLES, similarity=.9):
    return near
  known = (*_CARDS, *preset_grammar.CPUS)
  for word in re.findall(r'[^\W\d]\w*', part.partition('x')[2] or part):
    for near in suggestions.nearest(word, known):
      candidate = name.replace(part, part.replace(word, near, 1), 1)
      if candidate != name and is_preset(candidate):
        return candidate
  return ''


def _unknown(name: str, why: str = '', near: str = '',
             lacking: str = '') -> errors.ClusterError:
  if _TPU.search(name):
    return errors.ClusterError(
        f'Unknown cluster "{name}": TPUs run a step that XLA has compiled as '
        'one op, so there is nothing to place on them. Name GPUs, such as '
        '2xP100, or "local" for the devices of this machine.')
  said = '' if why else suggestions.did_you_mean(name, _EXAMPLES)
  if near:
    said = f' Did you mean "{near}"?'
  elif lacking not in ('', *preset_grammar.CPUS) and not said:
    why = f'"{lacking}" is not a card'
  why = f': {why}' if why else ''
  # The likely name comes first. The grammar is too long for a message.
  return errors.ClusterError(
      f'Unknown cluster "{name}"{why}.{said} Give a preset such as 2xP100 '
      '(gdp cluster --help has all), "local" for the devices of this machine, '
      'or the path of a cluster file.')


def _build(name: str, hosts: int, cpu: device_figures.Cpu,
           cards: Sequence[device_figures.Card], card_of: Sequence[int],
           network: device_figures.Network | None) -> cluster_lib.Cluster:
  ends = [
      (host, gpu) for host in range(hosts) for gpu in range(-1, len(card_of))
  ]
  names = {end: _device_name(*end, hosts) for end in ends}
  paths = topologies.parts_paths(cards, card_of,
                                 topologies.host_paths(cards, cpu.sockets))
  links = []
  for source, target in itertools.permutations(ends, 2):
    if source[0] == target[0]:
      path = _within(paths[source[1], target[1]], source[0], hosts)
    else:
      assert network is not None  # Several hosts have one, see `preset`.
      path = _across(paths, source, target, network, hosts)
    links.append(
        cluster_lib.Link(names[source], names[target], path.latency_s,
                         path.bandwidth_bytes_per_s, path.channels))
  return cluster_lib.Cluster(
      name,
      tuple(_device(names[end], cpu, cards, card_of, end[1]) for end in ends),
      tuple(links))


def _device_name(host: int, card: int, hosts: int) -> str:
  kind, number = ('CPU', 0) if card < 0 else ('GPU', card)
  if hosts == 1:
    return cluster_lib.local_name(kind, number)
  return f'/job:worker/replica:0/task:{host}/device:{kind}:{number}'


def _device(name: str, cpu: device_figures.Cpu,
            cards: Sequence[device_figures.Card], card_of: Sequence[int],
            number: int) -> cluster_lib.Device:
  if number < 0:
    return cluster_lib.Device(name=name, type='CPU', compute=name, memory=name,
                              **cpu.figures)
  card, parts = cards[card_of[number]], card_of.count(card_of[number])
  which = (f'{cluster_lib.task(name)} card {card_of[number]}'
           if parts > 1 else '')
  return cluster_lib.Device(
      name=name, type='GPU',
      memory_bytes=card_memory.of_card(card.name, card.memory_bytes) // parts,
      peak_flops=card.peak_flops, efficiency=card.efficiency,
      bandwidth_bytes_per_s=card.bandwidth_bytes_per_s, launch_s=card.launch_s,
      compute=name, memory=name, context=which, card=which,
      resident_threads=multiprocessors.resident_threads(card.name),
      **device_figures.CARD_LAUNCH, **type_rates.of_card(card.name))


def _within(path: topologies.Path, host: int, hosts: int) -> topologies.Path:
  """A path within one of several hosts; its channels name the host."""
  if hosts == 1:
    return path
  return topologies.Path(
      path.latency_s, path.bandwidth_bytes_per_s,
      tuple(f'worker/{host} {wire}' for wire in path.channels))


def _across(paths: Mapping[tuple[int, int], topologies.Path],
            source: tuple[int, int], target: tuple[int, int],
            network: device_figures.Network, hosts: int) -> topologies.Path:
  """Returns the path from a device to a device of another host.

  The path goes to the host, over the network, and to the device. The transfer
  occupies the wires at each end only if they are busy for at least half of the
  transfer's time.
  """
  legs = []
  if source[1] >= 0:
    legs.append(_within(paths[source[1], -1], source[0], hosts))
  legs.append(
      topologies.Path(network.latency_s, network.bandwidth_bytes_per_s,
                      (f'worker/{source[0]} network out',
                       f'worker/{target[0]} network in')))
  if target[1] >= 0:
    legs.append(_within(paths[-1, target[1]], target[0], hosts))
  slowest = min(leg.bandwidth_bytes_per_s for leg in legs)
  return topologies.Path(
      sum(leg.latency_s for leg in legs), slowest,
      tuple(wire for leg in legs if leg.bandwidth_bytes_per_s < 2.001 * slowest
            for wire in leg.channels))

"""The devices of this process as a cluster.

TensorFlow gives names and memory, and says which logical devices share a card.
`local_cards` has the figures of a card. Connections are NVML's if it knows
them, else PCIe of the card's generation. The notes of the cluster say what was
assumed. `gdp cluster local --measure` replaces links by measured ones. A cached
result of `gdp calibrate`, for the card, its driver and this version of
TensorFlow, replaces assumed figures.
"""

from __future__ import annotations

import os
import types
from typing import Any, Mapping, Sequence

from absl import logging

from gdp_grappler import control_groups
from gdp_grappler import errors
from gdp_grappler.cluster import calibrated
from gdp_grappler.cluster import calibration
from gdp_grappler.cluster import clock_rates
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import device_figures
from gdp_grappler.cluster import local_cards
from gdp_grappler.cluster import local_cpu
from gdp_grappler.cluster import multiprocessors
from gdp_grappler.cluster import nvml


def local_cluster(names: Sequence[str] = (),
                  source: nvml.Source | None = None) -> cluster_lib.Cluster:
  """The cluster of the CPUs and GPUs of this process.

  Args:
    names: Full names of the devices to use, as TensorFlow gives them; () means
      all logical devices of the process.
    source: Source of facts about cards; None means NVML.

  Raises:
    ClusterError: there is no CPU among the names.
  """
  source = source or nvml.installed()
  return _with_kept(*_assumed(names, source), source)


def uncalibrated(source: nvml.Source | None = None) -> tuple[str, ...]:
  """Names of the cards of this process that have no calibration.

  Args:
    source: Source of facts about cards; None means NVML.

  Raises:
    ClusterError: TensorFlow does not describe its devices.
  """
  import tensorflow as tf
  if not tf.config.list_physical_devices('GPU'):
    return ()
  source = source or nvml.installed()
  cluster, titles = _assumed((), source)
  measured = {
      name for part in _with_kept(cluster, titles, source).calibrated
      for name in part.devices
  }
  return tuple(
      dict.fromkeys(t for name, t in titles.items() if name not in measured))


def assumed(names: Sequence[str] = (),
            source: nvml.Source | None = None) -> cluster_lib.Cluster:
  """The cluster of this process without calibrations; see `local_cluster`."""
  return _assumed(names, source or nvml.installed())[0]


def _with_kept(cluster: cluster_lib.Cluster, titles: Mapping[str, str],
               source: nvml.Source) -> cluster_lib.Cluster:
  """The cluster with cached calibrations.

  Args:
    cluster: Cluster with assumed figures.
    titles: Name that the card reports, by full name of a GPU.
    source: Source of the driver's version.
  """
  if not titles:
    return cluster
  import tensorflow as tf
  driver = source.driver()
  for title in dict.fromkeys(titles.values()):
    found = calibration.cached(title, driver, tf.__version__, logging.warning)
    if found is not None:
      cluster = calibrated.applied(cluster, found,
                                   [n for n, t in titles.items() if t == title])
  return cluster


def _assumed(names: Sequence[str],
             source: nvml.Source) -> tuple[cluster_lib.Cluster, dict[str, str]]:
  """The cluster, and the name that the card of each GPU reports."""
  import tensorflow as tf
  names = tuple(names) or tuple(
      cluster_lib.canonical_device(d.name)
      for d in tf.config.list_logical_devices())
  known = [n for n in names if cluster_lib.device_type(n) in ('CPU', 'GPU')]
  notes: list[str] = []
  cards: list[tuple[local_cards.Card, int]] = []
  if any(cluster_lib.device_type(n) == 'GPU' for n in known):
    cards = _cards(tf, source, notes)
  devices, of_card = [], {}
  for name in sorted(
      known, key=lambda n: (cluster_lib.device_type(n) != 'CPU', _number(n))):
    device, card = _device(_in_full(name), cards, notes)
    devices.append(device)
    of_card[device.name] = card
  titles = {
      name: card.facts.title or calibration.UNNAMED
      for name, card in of_card.items() if card is not None
  }
  links = tuple(
      _link(source, target, of_card) for source in devices for target in devices
      if source != target)
  return cluster_lib.Cluster('local', tuple(devices), links,
                             notes=tuple(notes)), titles


def _in_full(name: str) -> str:
  name = cluster_lib.canonical_device(name)
  if name.startswith('/job:'):
    return name
  return cluster_lib.local_name(cluster_lib.device_type(name), _number(name))


def _number(name: str) -> int:
  return int(name.rsplit(':', 1)[-1])


def _device(
    name: str, cards: Sequence[tuple[local_cards.Card, int]],
    notes: list[str]) -> tuple[cluster_lib.Device, local_cards.Card | None]:
  if cluster_lib.device_type(name) == 'CPU':
    return _cpu(name, notes), None
  number = _number(name)
  if number < len(cards):
    card, memory_bytes = cards[number]
  else:
    card = local_cards.figures(f'GPU {number}', nvml.CardFacts(''), None, notes)
    memory_bytes = 16 << 30
    notes.append(f'GPU:{number}: TensorFlow does not describe it; 16 GiB of '
                 'memory are assumed.')
  parts = sum(other.name == card.name for other, _ in cards)
  cut = card.name if parts > 1 else ''
  return cluster_lib.Device(
      name=name, type='GPU', memory_bytes=memory_bytes,
      peak_flops=card.peak_flops, efficiency=card.efficiency,
      bandwidth_bytes_per_s=card.bandwidth_bytes_per_s,
      launch_s=device_figures.GPU_LAUNCH_S, compute=name, memory=name,
      context=cut, card=cut, resident_threads=card.resident_threads,
      **device_figures.CARD_LAUNCH, **card.type_rates), card


def _cpu(name: str, notes: list[str]) -> cluster_lib.Device:
  """A CPU with the cores of this process, and the slots of a socket."""
  found = local_cpu.processor()
  slots = min(device_figures.SLOTS_PER_SOCKET, found.cores)
  said = f'host CPU: {found.describe()}'
  if found.is_assumed:
    said += '; the clock is assumed, because the system does not report it'
  if f'{said}.' not in notes:
    notes.append(f'{said}.')
  peak_flops = clock_rates.cpu_flops(found.cores, found.hertz,
                                     found.instruction_sets)
  return cluster_lib.Device(
      name=name, type='CPU', memory_bytes=_host_memory_bytes(),
      peak_flops=peak_flops / slots, efficiency=device_figures.CPU_EFFICIENCY,
      bandwidth_bytes_per_s=found.bandwidth_bytes_per_s / slots,
      launch_s=device_figures.CPU_LAUNCH_S, compute='host CPU',
      memory='host memory', slots=slots, copy_s=device_figures.CPU_COPY_S)


def _cards(tf: types.ModuleType, source: nvml.Source,
           notes: list[str]) -> list[tuple[local_cards.Card, int]]:
  """For each logical GPU, its physical card and its bytes of memory."""
  facts = source.cards()
  unused = nvml.visible(facts)
  result = []
  try:
    shown = tf.config.get_visible_devices('GPU')
    for physical in tf.config.list_physical_devices('GPU'):
      details = tf.config.experimental.get_device_details(physical)
      # NVML lists cards that the program hides, so they are matched, too.
      index = _matching(details, facts, unused)
      if physical not in shown:
        continue
      fact = local_cards.facts_of(details) if index is None else facts[index]
      card = local_cards.figures(physical.name, fact, index, notes)
      parts = tf.config.get_logical_device_configuration(physical) or [None]
      for part in parts:
        limit = part.memory_limit if part is not None else None
        result.append((card, limit << 20 if limit else local_cards.memory_bytes(
            physical.name, fact, notes)))
  except (RuntimeError, ValueError) as error:
    raise errors.ClusterError(
        f'TensorFlow does not describe its GPUs: {error}') from error
  return result


def free_bytes(source: nvml.Source | None = None) -> dict[str, int]:
  """Bytes that TensorFlow could allocate now on cards it does not use yet.

  The function does not initialize TensorFlow's devices.

  Args:
    source: Source of facts about cards; None means NVML.

  Returns:
    Bytes by the name of the physical device, without devices whose memory is
    unknown.
  """
  import tensorflow as tf
  facts = (source or nvml.installed()).cards()
  unused = nvml.visible(facts)
  result = {}
  for physical in tf.config.list_physical_devices('GPU'):
    details = tf.config.experimental.get_device_details(physical)
    index = _matching(details, facts, unused)
    if index is not None and facts[index].memory_bytes:
      own = facts[index]
      result[physical.name] = max(
          0,
          local_cards.memory_bytes(physical.name, own, []) -
          (own.used_bytes or 0))
  return result


def _matching(details: dict[str, Any], facts: Sequence[nvml.CardFacts],
              unused: list[int]) -> int | None:
  """NVML's index of a card of TensorFlow: the next unused one of its name.

  CUDA may number cards by speed, but cards of one model keep the order of the
  bus.
  """
  title = details.get('device_name', '')
  index = next((i for i in unused if facts[i].title == title), None)
  if index is not None:
    unused.remove(index)
    return index
  # CUDA_VISIBLE_DEVICES has CUDA's numbers, and `unused` NVML's. They differ if
  # a faster card is behind a slower one on the bus.
  same = [i for i, fact in enumerate(facts) if fact.title == title]
  return same[0] if len(same) == 1 else None


def _link(source: cluster_lib.Device, target: cluster_lib.Device,
          of_card: Mapping[str, local_cards.Card | None]) -> cluster_lib.Link:
  sender, receiver = of_card[source.name], of_card[target.name]
  if sender is not None and receiver is not None:
    figures = _between(sender, receiver)
  elif sender is not None:
    figures = _with_host(sender, outward=True)
  elif receiver is not None:
    figures = _with_host(receiver, outward=False)
  else:
    figures = (local_cpu.SAME_PROCESS_S, local_cpu.SAME_PROCESS_BYTES_PER_S,
               (f'{source.name} > {target.name}',))
  return cluster_lib.Link(source.name, target.name, *figures)


def _with_host(card: local_cards.Card,
               outward: bool) -> tuple[float, float, tuple[str, ...]]:
  wires = [f'{card.name} {"out" if outward else "in"}']
  if card.facts.switch_neighbours:
    wires.append(_switch(card) + (' up' if outward else ' down'))
  return device_figures.COPY_LATENCY_S, card.pcie_bytes_per_s, tuple(wires)


def _between(source: local_cards.Card,
             target: local_cards.Card) -> tuple[float, float, tuple[str, ...]]:
  """Latency, rate and channels between two cards: NVLink, or else PCIe."""
  peer_out = f'{source.name} peer out'
  latency_s = device_figures.COPY_LATENCY_S
  if source.name == target.name:
    rate = multiprocessors.within_card_bytes_per_s(source.bandwidth_bytes_per_s)
    return latency_s, rate, (peer_out,)
  bricks = min(source.facts.switch_nvlinks, target.facts.switch_nvlinks)
  nvlink = (peer_out, f'{target.name} peer in')
  if not bricks and target.index is not None:
    bricks = source.facts.nvlinks.get(target.index, 0)
    nvlink = (peer_out, f'{source.name} > {target.name} NVLink')
  if bricks:
    return latency_s, bricks * source.brick_bytes_per_s, nvlink
  wires = [f'{source.name} out', f'{target.name} in']
  if target.index not in source.facts.switch_neighbours:
    if source.facts.switch_neighbours:
      wires.insert(1, _switch(source) + ' up')
    if target.facts.switch_neighbours:
      wires.insert(-1, _switch(target) + ' down')
  if source.through_host or target.through_host:
    latency_s *= 2  # The driver copies to the host and on.
  return (latency_s, min(source.pcie_bytes_per_s,
                         target.pcie_bytes_per_s), tuple(wires))


def _switch(card: local_cards.Card) -> str:
  """The name of a card's PCIe switch, the same for all cards behind it."""
  assert card.index is not None  # NVML lists a card with known neighbours.
  return f'PCIe switch of card {min(card.index, *card.facts.switch_neighbours)}'


def _host_memory_bytes() -> int:
  """Memory of the machine, or the smallest limit of a container or a job."""
  result = os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES')
  for folder in control_groups.folders('memory'):
    for name in ('memory.max', 'memory.limit_in_bytes'):
      try:
        result = min(result, int((folder / name).read_text()))
      except (OSError, ValueError):
        continue  # Version 2 writes "max" if there is no limit.
  return result

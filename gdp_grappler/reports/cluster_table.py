"""Text of a cluster: two tables with its devices and links.

Devices with the same figures share a line, and so do links of the same kind.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.evaluation.link_timing import ping_pong
from gdp_grappler.reports import tables
from gdp_grappler.reports import units


def text(cluster: cluster_lib.Cluster,
         timings: ping_pong.Timings | None = None) -> str:
  """Returns tables of devices and links, and lines about both.

  Args:
    cluster: The cluster.
    timings: Measured timings of its links, if there are any.
  """
  parts = [
      f'Cluster {cluster.name}: {units.count(len(cluster.devices), "device")}, '
      f'{units.count(len(cluster.links), "link")}',
      _devices(cluster)
  ]
  if timings is not None and timings.pairs:
    parts.append(_measured(cluster, timings))
  elif cluster.links:
    parts.append(_links(cluster))
  if cluster.step_s:
    parts.append(f'A step that does nothing: {_seconds(cluster.step_s)}'
                 + (' (measured)' if timings is not None else ''))
  if cluster.notes:
    parts.append('\n'.join(f'note: {note}' for note in cluster.notes))
  return '\n\n'.join(parts) + '\n'


def _devices(cluster: cluster_lib.Cluster) -> str:
  groups: dict[tuple[Any, ...], list[int]] = {}
  for index, device in enumerate(cluster.devices):
    figures = dataclasses.replace(device, name='', compute='', memory='',
                                  context='', card='')
    sharing = tuple(
        tuple(members) for members in (_sharing(cluster.compute_units, index),
                                       _sharing(cluster.memory_pools, index),
                                       _of_card(cluster, index)))
    groups.setdefault((figures, sharing), []).append(index)
  rows = [('device', 'count', 'memory', 'ops at a time', 'FLOP/s each',
           'reached', 'memory rate', 'per op', 'per copy', 'launch', 'shares')]
  labels = cluster.device_labels
  for (figures, sharing), members in groups.items():
    names = [labels[index] for index in members]
    rows.append(
        (names[0] if len(names) == 1 else f'{names[0]} .. {names[-1]}',
         str(len(names)), f'{figures.memory_bytes / 2**30:.4g} GiB',
         str(figures.slots), units.amount(figures.peak_flops, 'FLOP/s'),
         f'{100 * figures.efficiency:.0f} %',
         units.amount(figures.bandwidth_bytes_per_s,
                      'B/s'), _seconds(figures.launch_s), _copy(figures),
         _launch(figures), _shares(sharing)))
  return tables.text(rows)


def _sharing(labels: np.ndarray, index: int) -> list[int]:
  """Returns the devices with the label of a device, if there are others."""
  same = [i for i, label in enumerate(labels) if label == labels[index]]
  return same if len(same) > 1 else []


def _of_card(cluster: cluster_lib.Cluster, index: int) -> list[int]:
  """Returns the logical devices of a device's card, if the card is cut."""
  cards = cluster.cut_cards
  return [] if cards[index] < 0 else _sharing(cards, index)


def _shares(sharing: tuple[tuple[int, ...], ...]) -> str:
  texts = []
  for what, members in zip(('compute', 'memory', 'card'), sharing):
    if members:
      texts.append(f'{what} ({len(members)} devices)')
  return ', '.join(texts) or '-'


def _copy(figures: cluster_lib.Device) -> str:
  if not figures.copy_s and figures.copy_bytes_per_s is None:
    return 'engines'
  rate = figures.copy_bytes_per_s
  return _seconds(
      figures.copy_s) + (f' + {units.amount(rate, "B/s")}' if rate else '')


def _launch(figures: cluster_lib.Device) -> str:
  if not figures.asynchronous:
    return 'waits'
  return (
      f'ahead: {_seconds(figures.dispatch_s)} per kernel, '
      f'{_seconds(figures.visit_s)} per other op, '
      f'{_seconds(figures.callback_s)} to {_seconds(figures.hop_s)} after a '
      'copy')


def _links(cluster: cluster_lib.Cluster) -> str:
  types = {d.name: d.type for d in cluster.devices}
  groups: dict[tuple[Any, ...], list[cluster_lib.Link]] = {}
  for link in cluster.links:
    key = (types[link.source], types[link.target], link.latency_s,
           link.bandwidth_bytes_per_s, len(link.channels))
    groups.setdefault(key, []).append(link)
  labels = dict(zip(cluster.device_names, cluster.device_labels))
  rows = [('link', 'count', 'latency', 'bandwidth', 'such as', 'which occupies')
         ]
  for key, members in groups.items():
    first = members[0]
    rows.append((f'{key[0]} -> {key[1]}', str(len(members)), _seconds(key[2]),
                 units.amount(key[3], 'B/s'), f'{labels[first.source]} -> '
                 f'{labels[first.target]}', ', '.join(first.channels)))
  return tables.text(rows)


def _measured(cluster: cluster_lib.Cluster, timings: ping_pong.Timings) -> str:
  links = {(l.source, l.target): l for l in cluster.links}
  names, labels = cluster.device_names, cluster.device_labels
  rows = [('measured link', 'latency', 'bandwidth', 'median error of fit',
           'largest')]
  for pair in timings.pairs:
    link = links[names[pair.source], names[pair.target]]
    bound = 'over ' if pair.line.bounded else ''
    rows.append((f'{labels[pair.source]} -> {labels[pair.target]}',
                 _seconds(link.latency_s),
                 bound + units.amount(link.bandwidth_bytes_per_s, 'B/s'),
                 f'{100 * pair.line.error:.0f} %',
                 f'{100 * pair.line.worst_error:.0f} %'))
  return tables.text(rows)


def _seconds(value: float) -> str:
  if value and value < 1e-3:
    return f'{value * 1e6:.3g} us'
  return f'{value * 1e3:.3g} ms' if value else '0'

"""Replaces assumed figures of a cluster by those of a calibration."""

from __future__ import annotations

import dataclasses
from typing import Any, Collection

from gdp_grappler import errors
from gdp_grappler.cluster import calibration as calibration_lib
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import device_figures

# If parallel launches take this many times as long, they wait for a lock.
_CONTENDED = 1.2
# Figures of `device_figures.CARD_LAUNCH` that a calibration replaces.
_REPLACED = ('dispatch_s', 'visit_s', 'copy_dispatch_s', 'lock_s', 'gap_s',
             'callback_s', 'poll_s')


def applied(cluster: cluster_lib.Cluster,
            calibration: calibration_lib.Calibration,
            names: Collection[str] | None = None) -> cluster_lib.Cluster:
  """The cluster with a calibration of some of its devices.

  The calibration replaces an earlier one of these devices. But a link keeps its
  earlier measured rate if the new calibration has no rate for the link.

  Args:
    cluster: Cluster with figures that are assumed or of another calibration.
    calibration: Calibration of a card.
    names: Full names of the devices that are such cards; None means that the
      function finds them by their figures.

  Raises:
    ClusterError: the cluster has no such card.
  """
  chosen = frozenset(
      _names_of_card(cluster, calibration) if names is None else names)
  if not chosen:
    return cluster
  devices = tuple(
      _device(_assumed(device, cluster), calibration) if device.name in
      chosen else device for device in cluster.devices)
  by_name = {device.name: device for device in devices}
  links = tuple(
      _link(link, calibration, chosen, by_name) for link in cluster.links)
  others = tuple(part for part in (dataclasses.replace(
      part, devices=tuple(
          n for n in part.devices
          if n not in chosen)) for part in cluster.calibrated) if part.devices)
  part = cluster_lib.Calibrated(
      tuple(d.name for d in devices if d.name in chosen), calibration)
  old = set(map(_note, cluster.calibrated))
  notes = [note for note in cluster.notes if note not in old]
  return dataclasses.replace(cluster, devices=devices, links=links,
                             notes=(*notes, *map(_note, (*others, part))),
                             calibrated=(*others, part))


def _note(part: cluster_lib.Calibrated) -> str:
  labels = ', '.join(cluster_lib.labels(part.devices))
  made = part.calibration
  return (f'measured: {labels} by gdp calibrate: {len(made.kernels)} kernels '
          f'and {len(made.figures)} figures of {made.card}, TensorFlow '
          f'{made.tensorflow}')


def _assumed(device: cluster_lib.Device,
             cluster: cluster_lib.Cluster) -> cluster_lib.Device:
  """The device without the figures of its calibration, if it has one."""
  if cluster.calibration(device.name) is None:
    return device
  if not device.asynchronous:
    return dataclasses.replace(device, launch_s=device_figures.CPU_LAUNCH_S)
  figures = {name: device_figures.CARD_LAUNCH[name] for name in _REPLACED}
  return dataclasses.replace(device, launch_s=device_figures.GPU_LAUNCH_S,
                             **figures)


def _names_of_card(cluster: cluster_lib.Cluster,
                   calibration: calibration_lib.Calibration) -> tuple[str, ...]:
  """Names of the devices that are cards of the calibrated kind.

  A card of `device_figures` is recognized by its figures. Other cards cannot be
  recognized. So if all cards of the cluster are of one kind that is not in the
  table, they are taken to be of the calibrated kind.

  Raises:
    ClusterError: there are no such devices.
  """
  devices = [d for d in cluster.devices if d.type == calibration.device_type]
  card = device_figures.card_of(calibration.card)
  same = [d for d in devices if card is not None and _rates(d) == _rates(card)]
  kinds = set(map(_rates, devices))
  if len(kinds) == 1 and not kinds & set(
      map(_rates, device_figures.CARDS.values())):
    same = devices
  if not same:
    raise errors.ClusterError(
        f'The calibration is of {calibration.card}, and cluster '
        f'"{cluster.name}" has no such {calibration.device_type}. Calibrate on '
        'a card of the cluster, or name another cluster.')
  return tuple(device.name for device in same)


def _rates(
    card: cluster_lib.Device | device_figures.Card) -> tuple[float, float]:
  """Rates that tell cards apart. H100 and H200 differ only in bandwidth."""
  return card.peak_flops, card.bandwidth_bytes_per_s


def _device(device: cluster_lib.Device,
            calibration: calibration_lib.Calibration) -> cluster_lib.Device:
  figure = calibration.figure
  if not device.asynchronous:
    launch_s = figure('launching_op_s')
    return device if launch_s is None else dataclasses.replace(
        device, launch_s=launch_s)
  launching_s = figure('launching_op_s')
  found: dict[str, float | None] = {
      # The measured seconds contain a bare launch and further work of the host
      # for the op. The cost model adds the further work (`host_work`).
      'dispatch_s':
          None if launching_s is None else min(device.dispatch_s, launching_s),
      'visit_s':
          figure('other_op_s'),
      'gap_s':
          figure('gap_s'),
      'lock_s':
          _lock_s(device, calibration),
      'copy_dispatch_s':
          figure('copy_issue_s'),
      'launch_s':
          _least_kernel_s(calibration),
      **_callback(device, calibration)
  }
  changes: dict[str, Any] = {
      name: value for name, value in found.items() if value is not None
  }
  return dataclasses.replace(device, **changes)


def _least_kernel_s(calibration: calibration_lib.Calibration) -> float | None:
  """Seconds of a kernel with very little work, without the gap."""
  small_s, gap_s = calibration.figure('small_kernel_s'), calibration.figure(
      'gap_s')
  if small_s is None or gap_s is None:
    return None
  return max(0., small_s - gap_s)


def _lock_s(device: cluster_lib.Device,
            calibration: calibration_lib.Calibration) -> float:
  """Seconds of a launch in which GPUs of one process wait for each other.

  If parallel launches were not timed, the result is the assumed figure, at most
  a whole launch.
  """
  alone_s = calibration.figure('launching_op_s')
  each_s = calibration.figure('side_by_side_op_s')
  count = calibration.figure('side_by_side_devices')
  if alone_s is None:
    return device.lock_s
  launch_s = min(device.dispatch_s, alone_s)
  if each_s is None or count is None:
    return min(device.lock_s, launch_s)
  return min(each_s, launch_s) if each_s * count > _CONTENDED * alone_s else 0.


def _callback(device: cluster_lib.Device,
              calibration: calibration_lib.Calibration) -> dict[str, float]:
  """`callback_s` and `poll_s`: seconds of a hop after its copy, if measured."""
  hop_s = _first(calibration, 'hop_s', 'card_hop_s', 'host_hop_s')
  busy_s = _first(calibration, 'busy_hop_s', 'busy_card_hop_s',
                  'busy_host_hop_s')
  if hop_s is None:
    return {}
  issued_s = calibration.figure('copy_issue_s')
  crossed_s = device_figures.COPY_LATENCY_S + (device.copy_dispatch_s if
                                               issued_s is None else issued_s)
  result = {'callback_s': max(0., hop_s - crossed_s)}
  if busy_s is not None:
    result['poll_s'] = max(0., busy_s - hop_s)
  return result


def _first(calibration: calibration_lib.Calibration, *names:
           str) -> float | None:
  """The first of some figures that was measured; None if there is none."""
  found = (calibration.figure(name) for name in names)
  return next((value for value in found if value is not None), None)


def _card_of(device: cluster_lib.Device) -> str:
  return device.card or device.compute


def _link(link: cluster_lib.Link, calibration: calibration_lib.Calibration,
          chosen: Collection[str],
          by_name: dict[str, cluster_lib.Device]) -> cluster_lib.Link:
  ends = by_name[link.source], by_name[link.target]
  inside = [end.name in chosen for end in ends]
  if cluster_lib.task(link.source) != cluster_lib.task(link.target):
    return link
  if all(inside):
    same = _card_of(ends[0]) == _card_of(ends[1])
    name = f'between_{"devices" if same else "cards"}_bytes_per_s'
  elif inside[1] and ends[0].type == 'CPU':
    name = 'to_device_bytes_per_s'
  elif inside[0] and ends[1].type == 'CPU':
    name = 'from_device_bytes_per_s'
  else:
    return link
  rate = calibration.figure(name)
  return dataclasses.replace(link, bandwidth_bytes_per_s=rate) if rate else link

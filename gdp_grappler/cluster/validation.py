"""Checks of the figures of a cluster; each error names the wrong field."""

from __future__ import annotations

from typing import Any, Sequence

from gdp_grappler import errors
from gdp_grappler import suggestions

# Largest value of any figure. Larger values are mistakes and would overflow.
_LARGEST = 1e18
# Least value of figures that are not 0, such as rates. Times are divided by
# rates, so smaller values would overflow, too.
_LEAST = 1e-18
_MOST_SLOTS = 1 << 16  # Of a device.
_MOST_CHANNELS = 8  # Of a link.
_TYPES = ('CPU', 'GPU')
# Values of `Device.launch`.
LAUNCHES = ('synchronous', 'asynchronous')
# Fields with the times of the host and the driver for an asynchronous device.
HOST_TIMES = ('dispatch_s', 'visit_s', 'copy_dispatch_s', 'lock_s', 'gap_s',
              'switch_s', 'callback_s', 'poll_s')
# Fields with rates of other dense kernels than plain ones of float32.
TYPE_RATES = ('float16_rate', 'bfloat16_rate', 'float64_rate', 'winograd_rate')
# Fields that are equal for all logical devices of a card.
_OF_CARD = ('type', 'peak_flops', 'efficiency', 'bandwidth_bytes_per_s',
            'resident_threads', *TYPE_RATES)


def check(cluster: Any) -> None:
  """Raises a ClusterError unless a `Cluster` is complete and in range.

  Raises:
    ClusterError: there is no CPU, a name appears twice or contradicts its
      type, devices disagree on a shared memory, a link is missing or unknown,
      or a figure is out of range.
  """
  try:
    _check_text('name', cluster.name)
    for index, device in enumerate(cluster.devices):
      _check_device(f'devices[{index}]', device)
    for index, link in enumerate(cluster.links):
      check_link(f'links[{index}]', link, f' ({link.source} -> {link.target})')
    _check_figure('step_s', cluster.step_s, or_zero=True)
    for index, note in enumerate(cluster.notes):
      _check_text(f'notes[{index}]', note)
    _check_devices(cluster.devices)
    _check_links([device.name for device in cluster.devices], cluster.links)
    _check_calibrated(cluster)
  except errors.ClusterError as error:
    raise errors.ClusterError(f'Cluster "{cluster.name}": {error}') from None


def _check_device(at: str, device: Any) -> None:
  for field in ('name', 'type', 'compute', 'memory'):
    _check_text(f'{at}.{field}', getattr(device, field))
  for field in ('context', 'card'):
    if getattr(device, field) != '':
      _check_text(f'{at}.{field}', getattr(device, field))
  where = f' ({device.name})'
  if device.type not in _TYPES:
    raise errors.ClusterError(
        f'{at}.type{where} is {errors.shown(device.type)}; give CPU or GPU.')
  for field in ('memory_bytes', 'peak_flops', 'efficiency',
                'bandwidth_bytes_per_s'):
    _check_figure(f'{at}.{field}{where}', getattr(device, field))
  if device.memory_bytes % 1:
    raise errors.ClusterError(f'{at}.memory_bytes{where} is '
                              f'{device.memory_bytes!r}; give whole bytes.')
  if device.efficiency > 1:
    raise errors.ClusterError(
        f'{at}.efficiency{where} is {device.efficiency!r}; give the share of '
        'peak_flops that is reached, up to 1.')
  _check_figure(f'{at}.memory_margin{where}', device.memory_margin,
                or_zero=True)
  if device.memory_margin >= 1:
    raise errors.ClusterError(
        f'{at}.memory_margin{where} is {device.memory_margin!r}; give the '
        'share of its memory that is to stay free, from 0 to less than 1.')
  for field in ('launch_s', 'copy_s', *HOST_TIMES):
    _check_figure(f'{at}.{field}{where}', getattr(device, field), or_zero=True)
  for field in ('copy_bytes_per_s', *TYPE_RATES):
    if getattr(device, field) is not None:
      _check_figure(f'{at}.{field}{where}', getattr(device, field))
  _check_figure(f'{at}.resident_threads{where}', device.resident_threads,
                or_zero=True)
  if device.resident_threads % 1:
    raise errors.ClusterError(f'{at}.resident_threads{where} is '
                              f'{device.resident_threads!r}; give a whole '
                              'number.')
  slots = device.slots
  if (isinstance(slots, bool) or not isinstance(slots, int) or
      not 1 <= slots <= _MOST_SLOTS):
    raise errors.ClusterError(
        f'{at}.slots{where} is {errors.shown(slots)}; give a whole number from '
        f'1 to {_MOST_SLOTS}.')
  _check_launch(at, device, where)


def _check_launch(at: str, device: Any, where: str) -> None:
  if device.launch not in LAUNCHES:
    raise errors.ClusterError(
        f'{at}.launch{where} is {errors.shown(device.launch)}; give '
        f'{" or ".join(LAUNCHES)}.')
  if device.lock_s > device.dispatch_s:
    raise errors.ClusterError(
        f'{at}.lock_s{where} is {device.lock_s!r}, more than dispatch_s, '
        f'{device.dispatch_s!r}, of which it is a part.')
  if device.asynchronous:
    for field, only in (('slots', 1), ('copy_s', 0), ('copy_bytes_per_s',
                                                      None)):
      if getattr(device, field) != only:
        raise errors.ClusterError(
            f'{at}.{field}{where} is {getattr(device, field)!r}; an '
            f'asynchronous device has one compute stream and copy engines: '
            f'give {only!r}, or leave it out.')


def check_link(at: str, link: Any, where: str = '') -> None:
  """Raises a ClusterError unless the figures of a `Link` are in range.

  Args:
    at: Name of the link in the user's file, such as 'links[3]'.
    link: The link to check.
    where: Text that follows the name of a field in messages.

  Raises:
    ClusterError: a figure or a text is wrong.
  """
  _check_text(f'{at}.source', link.source)
  _check_text(f'{at}.target', link.target)
  _check_figure(f'{at}.bandwidth_bytes_per_s{where}',
                link.bandwidth_bytes_per_s)
  _check_figure(f'{at}.latency_s{where}', link.latency_s, or_zero=True)
  if not 1 <= len(link.channels) <= _MOST_CHANNELS:
    raise errors.ClusterError(
        f'{at}.channels{where} has {len(link.channels)} entries; give 1 to '
        f'{_MOST_CHANNELS}.')
  for channel in link.channels:
    _check_text(f'{at}.channels{where}', channel)


def _check_calibrated(cluster: Any) -> None:
  """Checks that calibrations name devices of their type, and none twice."""
  types = {device.name: device.type for device in cluster.devices}
  seen: set[str] = set()
  for index, part in enumerate(cluster.calibrated):
    for name in part.devices:
      at = f'calibrated[{index}].devices'
      if types.get(name) != part.calibration.device_type:
        raise errors.ClusterError(
            f'{at} names {name!r}, which is no '
            f'{part.calibration.device_type} of the cluster; leave it out.')
      if name in seen:
        raise errors.ClusterError(f'{at} names {name!r} a second time; remove '
                                  'one.')
      seen.add(name)


def _check_devices(devices: tuple[Any, ...]) -> None:
  if not any(device.type == 'CPU' for device in devices):
    raise errors.ClusterError('devices has no CPU device, and every TensorFlow '
                              'process has one; add one.')
  first: dict[str, int] = {}
  for index, device in enumerate(devices):
    if first.setdefault(device.name, index) != index:
      raise errors.ClusterError(
          f'devices[{index}].name: device "{device.name}" is listed twice, at '
          f'devices[{first[device.name]}] too; remove one.')
  for index, device in enumerate(devices):
    if device.type != device.named_type:
      raise errors.ClusterError(
          f'devices[{index}].type ({device.name}) is {device.type!r}, but the '
          f'name says {device.named_type!r}; change one of them.')
  _check_shared(devices, 'memory', 'memory_bytes', 'has')
  _check_shared(devices, 'compute', 'launch', 'is')
  _check_cards(devices)


def _check_shared(devices: Sequence[Any], shared: str, field: str,
                  verb: str) -> None:
  """Checks that devices which share something are equal in another field."""
  first: dict[str, int] = {}
  for index, device in enumerate(devices):
    what, value = getattr(device, shared), getattr(device, field)
    other = first.setdefault(what, index)
    theirs = getattr(devices[other], field)
    if value != theirs:
      raise errors.ClusterError(
          f'devices[{index}].{field} ({device.name}) is {value!r}, but '
          f'devices[{other}], which shares its {shared} "{what}", {verb} '
          f'{theirs!r}; give both the same.')


def _check_cards(devices: Sequence[Any]) -> None:
  """Checks that devices of a card have equal figures and their own streams."""
  parts: dict[str, list[tuple[int, Any]]] = {}
  for index, device in enumerate(devices):
    if device.card:
      parts.setdefault(device.card, []).append((index, device))
  for card, members in parts.items():
    first, model = members[0]
    for index, device in members:
      at = f'devices[{index}]'
      if not device.asynchronous:
        raise errors.ClusterError(
            f'{at}.card ({device.name}) is {card!r}, but a {LAUNCHES[0]} '
            f'device has no stream on a card; leave it out, or give launch '
            f'{LAUNCHES[1]!r}.')
      for field in _OF_CARD:
        if getattr(device, field) != getattr(model, field):
          raise errors.ClusterError(
              f'{at}.{field} ({device.name}) is {getattr(device, field)!r}, '
              f'but devices[{first}], which is cut from the same card '
              f'"{card}", has {getattr(model, field)!r}; give both what the '
              'whole card has.')
    _check_streams(card, members)


def _check_streams(card: str, members: Sequence[tuple[int, Any]]) -> None:
  seen: set[str] = set()
  for index, device in members:
    if device.compute in seen:
      raise errors.ClusterError(
          f'devices[{index}].compute ({device.name}) is {device.compute!r}, as '
          f'of another device of card "{card}", but each has a stream of its '
          'own; give each its own.')
    seen.add(device.compute)


def _check_links(names: Sequence[str], links: tuple[Any, ...]) -> None:
  known = set(names)
  first: dict[tuple[str, str], int] = {}
  for index, link in enumerate(links):
    pair = link.source, link.target
    for field in ('source', 'target'):
      end = getattr(link, field)
      if end not in known:
        raise errors.ClusterError(
            f'links[{index}].{field}: {end} is an unknown device; list it or '
            f'drop the link.{suggestions.did_you_mean(end, names)}')
    if link.source == link.target:
      raise errors.ClusterError(f'links[{index}] leads from {link.source} to '
                                'itself; drop it.')
    if first.setdefault(pair, index) != index:
      raise errors.ClusterError(
          f'links[{index}]: the link {link.source} -> {link.target} is listed '
          f'twice, at links[{first[pair]}] too; remove one.')
  for source in names:
    for target in names:
      if source != target and (source, target) not in first:
        raise errors.ClusterError(f'links: the link {source} -> {target} is '
                                  'missing; add it.')


def _check_figure(at: str, value: float, or_zero: bool = False) -> None:
  least = 0 if or_zero else _LEAST
  if (isinstance(value, bool) or not isinstance(value, (int, float)) or
      not least <= value <= _LARGEST):
    wanted = ('0 or a positive number up to'
              if or_zero else f'a positive number from {_LEAST:.0e} to')
    raise errors.ClusterError(
        f'{at} is {errors.shown(value)}; give {wanted} {_LARGEST:.0e}.')


def _check_text(at: str, value: str) -> None:
  if not isinstance(value, str) or not value:
    raise errors.ClusterError(f'{at} is {errors.shown(value)}; give a text.')

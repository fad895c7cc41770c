"""Decides which tables of a program are made in parts.

A table is made when its layer is built, before the graph of a step and the
optimizer are known. So the decision compares the table itself with the room on
the largest device.
"""

from __future__ import annotations

import fnmatch
import functools
import math
import os
from typing import Callable, TYPE_CHECKING

from gdp_grappler import errors
from gdp_grappler import suggestions
from gdp_grappler.cluster import shortage
from gdp_grappler.plugin import notices
from gdp_grappler.plugin import switch
from gdp_grappler.sharding import choice
from gdp_grappler.sharding import deciding

if TYPE_CHECKING:
  from gdp_grappler.cluster import plan as plan_lib
  from gdp_grappler.plugin import settings as settings_lib

# Copies of a table in training: the table, slots as Adam has them, and a
# gradient. The gradient has all rows if an optimizer makes it dense.
_KEPT_PER_TABLE = 4

# Names of the layers whose tables were made while the option named tables.
_seen: set[str] = set()


@functools.cache
def install() -> None:
  """Makes layers of Keras look at the option when they make a table."""
  from gdp_grappler.sharding import keras_layers
  from gdp_grappler.sharding import tf_keras_layers
  keras_layers.install()
  tf_keras_layers.install()
  deciding.decide_by(parts)


def parts(layer: str, shape: tuple[int, ...], itemsize: int, whole_because: str,
          path: str = '', made_for: Callable[[int], int] = int) -> int:
  """Returns the wanted number of parts; 0 if the option leaves a table alone.

  Args:
    layer: Name of the layer.
    shape: Shape of the table.
    itemsize: Bytes of an element.
    whole_because: Why the table cannot be in parts; '' if it can.
    path: Scopes and name of the table, such as 'net/words/embeddings'.
    made_for: Returns the number of parts that are made for a wanted number.
  """
  settings = switch.settings()
  if settings is None or settings.split_tables == choice.OFF:
    return 0
  size = math.prod(shape) * itemsize
  if settings.split_tables != choice.AUTO:
    _seen.add(layer)
  count = choice.of_layer(settings.split_tables, layer)
  why = 'as the option says'
  if not count and settings.split_tables == choice.AUTO:
    count, why, stays_because = _by_room(settings, path or layer, size)
    whole_because = whole_because or stays_because
  if count < 2:
    return count
  if settings.mode == 'report':
    whole_because = whole_because or "'mode': 'report' changes nothing"
  made = count if whole_because else made_for(count)
  _say(layer, size, made, why, whole_because)
  return 1 if whole_because else count


def _by_room(settings: settings_lib.Settings, path: str,
             size_bytes: int) -> tuple[int, str, str]:
  """Decides on a table that the option does not name.

  If the option names a plan file with a device for each op, the table is whole
  or in parts as in this plan. Otherwise ops of the program and of the plan
  would have different names.

  Returns:
    The number of parts, the reason for this number, and the reason why the
    table stays whole nevertheless; '' if it does not stay whole.
  """
  from gdp_grappler.cluster import layer_devices
  plan = _plan_of_ops(settings)
  planned = layer_devices.parts_in_plan(plan, path) if plan else 0
  if planned:
    return planned, f'as in plan {settings.plan}', ''
  rooms, needs = _rooms_bytes(settings), _KEPT_PER_TABLE * size_bytes
  count = choice.parts_for(needs, rooms)
  if count < 2:
    return count, '', ''
  why = (
      f'the largest device has room for {shortage.size(max(rooms))}, and the '
      f'table may need {shortage.size(needs)} with slots and gradients')
  device = _mapped(settings, path)
  if device:
    return count, why, f'the map of layers puts it on {device}'
  if plan and layer_devices.has_whole(plan, path):
    return count, why, f'plan {settings.plan} has it whole'
  return count, why, ''


def warn_of_unused() -> None:
  """Warns once about each name in the option that no table has."""
  settings = switch.settings()
  if settings is None or isinstance(settings.split_tables, str):
    return
  for pattern, _ in settings.split_tables:
    if not fnmatch.filter(_seen, pattern):
      notices.warn_once(
          f"'split_tables' names \"{pattern}\", but no table of this name was "
          f'made so far.{suggestions.did_you_mean(pattern, sorted(_seen))} '
          'Tables are weights of Embedding and Dense layers that are built '
          'after the option is set')


def _say(layer: str, size_bytes: int, count: int, why: str,
         whole_because: str) -> None:
  table = f'the table of "{layer}", {shortage.size(size_bytes)},'
  if whole_because:
    notices.say_once(f'{table} stays whole: {whole_because}; {count} parts '
                     f'were wanted, {why}')
  else:
    notices.say_once(f'{table} is made in {count} parts: {why}')


def _mapped(settings: settings_lib.Settings, path: str) -> str:
  """Returns the device that the map of layers gives a table; '' for none."""
  from gdp_grappler.cluster import layer_devices
  plan = settings.plan
  try:
    layers = plan if isinstance(plan, tuple) else layer_devices.layers(plan)
  except errors.GdpError:
    return ''  # The placement of a step reports this error.
  return layer_devices.of_variable(layers, path) if layers else ''


def _plan_of_ops(settings: settings_lib.Settings) -> plan_lib.Plan | None:
  """Returns the option's plan file of ops; None without one."""
  path = settings.plan
  if path is None or isinstance(path, tuple):
    return None
  try:
    return _read(path, os.stat(path).st_mtime_ns)
  except (errors.GdpError, OSError):
    return None  # The placement of a step reports this error.


@functools.lru_cache(maxsize=1)
def _read(path: str, _: int) -> plan_lib.Plan | None:
  """Reads a plan file once, as each layer asks; None for a map of layers."""
  from gdp_grappler.cluster import plan as plan_lib
  return None if plan_lib.read_layers(path) is not None else plan_lib.read(path)


def _rooms_bytes(settings: settings_lib.Settings) -> tuple[int, ...]:
  from gdp_grappler.plugin import devices
  return _rooms_of(settings, tuple(devices.names()))


@functools.lru_cache(maxsize=8)
def _rooms_of(settings: settings_lib.Settings,
              names: tuple[str, ...]) -> tuple[int, ...]:
  """Returns the bytes that plans may use: of cards or, without any, of CPUs."""
  from gdp_grappler.plugin import task_links
  cluster = task_links.known_of(settings, names)
  return () if cluster is None else shortage.rooms_bytes(cluster)

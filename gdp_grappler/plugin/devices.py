"""The devices that the pass may choose from, and whether there is a choice."""

from __future__ import annotations

import functools
from typing import Sequence, TYPE_CHECKING

from gdp_grappler import errors
from gdp_grappler.evaluation.ordering import order_names
from gdp_grappler.plugin import notices
from gdp_grappler.plugin import scopes
from gdp_grappler.plugin import settings as settings_lib

if TYPE_CHECKING:
  from gdp_grappler.cluster import cluster as cluster_lib

_GPU = 'GPU:'


def names() -> list[str]:
  """Of the running context, as '/device:GPU:0' or with the task of another."""
  from tensorflow.python.eager import context
  return [
      device.name for kind in ('CPU', 'GPU')
      for device in context.context().list_logical_devices(kind)
  ]


def why_no_choice(found: Sequence[str], settings: settings_lib.Settings) -> str:
  """Why there is nothing to place; '' if there may be something.

  With one GPU there is no choice: float arithmetic stays on it (`rounding`).
  Other ops could go to the CPU, but they gain less than XLA, which has to be
  switched off for a placed step. Explicit requests are obeyed all the same: a
  plan, an order, a pin, `may_round`, or `keep_best` switched off.

  Args:
    found: Names of devices.
    settings: The user's option.
  """
  if settings.cluster and settings.mode == 'report':
    return ''
  short = [name.rsplit('device:', 1)[-1] for name in found]
  if len(short) == 1:
    return f'this program has one device, {short[0]}'
  asks = (not settings.keep_best or settings.plan is not None or
          settings.may_round or settings.order == order_names.CRITICAL_PATH or
          scopes.were_used())
  tasks = {name.rpartition('/device:')[0] for name in found}
  gpus = [name for name in short if name.startswith(_GPU)]
  if len(gpus) != 1 or len(tasks) > 1 or asks:
    return ''
  return (f'this program has one GPU, {gpus[0]}, and runs on it as without the '
          'option, XLA included')


def never_pay(cluster: cluster_lib.Cluster,
              settings: settings_lib.Settings) -> bool:
  """Whether no step on one of the devices can be faster on several.

  They share the cores of one processor, and what is sent costs some of these.
  So nothing is searched, unless a user has decided that it is placed.

  Args:
    cluster: The devices.
    settings: The user's option.
  """
  return not settings.has_decided and len(set(
      cluster.compute_units.tolist())) == 1


def steps_stay(settings: settings_lib.Settings) -> bool:
  """Whether no step of this program is going to be placed."""
  from gdp_grappler.plugin import task_links
  try:
    cluster = task_links.KNOWN.cluster(settings.cluster, names(),
                                       settings.max_memory)
  except errors.GdpError:
    return False  # Whoever places says what is wrong.
  return never_pay(cluster, settings)


def has_choice(settings: settings_lib.Settings) -> bool:
  """Whether there may be something to place on this program's devices."""
  return not why_no_choice(names(), settings)


def tell_if_no_choice(settings: settings_lib.Settings) -> bool:
  """Whether there is no choice, which the user reads once."""
  reason = why_no_choice(names(), settings)
  if reason:
    _tell(reason)
  return bool(reason)


@functools.cache
def _tell(reason: str) -> None:
  notices.say(f'gdp_placement has nothing to do: {reason}')

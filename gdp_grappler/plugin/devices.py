"""The devices of the program, and whether placing ops on them can pay."""

from __future__ import annotations

import functools
from typing import Sequence, TYPE_CHECKING

from gdp_grappler.evaluation.ordering import order_names
from gdp_grappler.plugin import notices
from gdp_grappler.plugin import scopes
from gdp_grappler.plugin import settings as settings_lib

if TYPE_CHECKING:
  from gdp_grappler.cluster import cluster as cluster_lib

_GPU = 'GPU:'


def names() -> list[str]:
  """Returns the names of the devices of the eager context."""
  from tensorflow.python.eager import context
  return [
      device.name for kind in ('CPU', 'GPU')
      for device in context.context().list_logical_devices(kind)
  ]


def why_no_choice(found: Sequence[str], settings: settings_lib.Settings) -> str:
  """Returns why there is nothing to place; '' if there may be a choice.

  With one GPU there is no choice: float arithmetic stays on the GPU
  (`rounding`). Other ops could go to the CPU. But a placed step runs without
  XLA, and XLA gains more than such a placement. With an explicit request there
  is a choice all the same: a plan, the order 'critical_path', a scope such as
  `pin`, `may_round`, or `keep_best` switched off.

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
  """Whether spreading a step over several of the devices never pays.

  If all devices share the cores of one processor, transfers between the devices
  take time of these cores, and spreading never pays. The result is False if the
  user insists on the plan or the placer's choice.

  Args:
    cluster: The devices.
    settings: The user's option.
  """
  return not settings.has_decided and len(set(
      cluster.compute_units.tolist())) == 1


def steps_stay(settings: settings_lib.Settings) -> bool:
  """Whether spreading a step over the program's devices never pays."""
  from gdp_grappler.plugin import task_links
  cluster = task_links.known_of(settings, names())
  return cluster is not None and never_pay(cluster, settings)


def has_choice(settings: settings_lib.Settings) -> bool:
  """Whether there may be something to place on this program's devices."""
  return not why_no_choice(names(), settings)


def tell_if_no_choice(settings: settings_lib.Settings) -> bool:
  """Returns whether there is no choice, and tells the user why, once."""
  reason = why_no_choice(names(), settings)
  if reason:
    _tell(reason)
  return bool(reason)


@functools.cache
def _tell(reason: str) -> None:
  notices.say(f'gdp_placement has nothing to do: {reason}')

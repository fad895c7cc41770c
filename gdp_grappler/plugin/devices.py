"""The devices that the pass may choose from."""

from __future__ import annotations

import functools

from gdp_grappler.plugin import notices


def names() -> list[str]:
  """Of the running context, as '/device:GPU:0' or with the task of another."""
  from tensorflow.python.eager import context
  return [
      device.name for kind in ('CPU', 'GPU')
      for device in context.context().list_logical_devices(kind)
  ]


def tell_if_there_is_one() -> bool:
  """Whether there is no choice, which the user reads once."""
  found = names()
  if len(found) == 1:
    _tell(found[0].rsplit('device:', 1)[-1])
  return len(found) == 1


@functools.cache
def _tell(name: str) -> None:
  notices.say(
      f'gdp_placement has nothing to do: this program has one device, {name}')

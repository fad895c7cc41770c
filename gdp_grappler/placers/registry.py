"""Placers by name."""

from __future__ import annotations

import functools
import importlib
from typing import Callable, TYPE_CHECKING

from gdp_grappler import errors
from gdp_grappler import extras
from gdp_grappler import suggestions
from gdp_grappler.placers import placer_table

if TYPE_CHECKING:
  # Command lines ask for names alone, and should be there at once.
  from gdp_grappler.placers import placer as placer_lib

# What places where nobody says who should, the policy alone, and what
# everything is compared with.
DEFAULT, LEARNED, EXPERT = 'gdp', 'gdp_policy', 'human_expert'


def names() -> tuple[str, ...]:
  """All names, in the order of tables."""
  return tuple(placer_table.table())


def get(name: str) -> placer_table.Entry:
  """What is known of a placer.

  Raises:
    GdpError: there is none of that name.
  """
  table = placer_table.table()
  if name not in table:
    raise errors.GdpError(
        suggestions.unknown('placer', name, table, 'gdp place --help'))
  return table[name]


def factory(name: str,
            policy: str | None = None) -> Callable[[], placer_lib.Placer]:
  """What makes a placer; its module is imported now.

  Some modules have to be imported before TensorFlow.

  Args:
    name: One of `names()`.
    policy: Folder of the policy, for a placer that needs one; the shipped one
      if None.

  Raises:
    GdpError: no such placer, or its module cannot be imported here.
  """
  entry = get(name)
  if placer_table.Need.KERAS_2 in entry.needs:
    extras.require(f'The placer "{name}"', 'tf_keras')
  try:
    module = importlib.import_module(entry.module)
  except ImportError as error:
    raise errors.GdpError(
        f'Placer "{name}" cannot be used here: {error}') from error
  arguments = dict(entry.arguments)
  if placer_table.Need.POLICY in entry.needs:
    arguments['policy'] = policy
  make = getattr(module, entry.factory.partition(':')[2])
  return functools.partial(make, **arguments)


def create(name: str, policy: str | None = None) -> placer_lib.Placer:
  """Makes a placer; arguments as `factory`.

  Raises:
    GdpError: no such placer, or what it needs is missing.
  """
  return factory(name, policy)()

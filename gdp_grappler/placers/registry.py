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
  # Command lines need only the names, and should start at once.
  from gdp_grappler.placers import placer as placer_lib

# The placer that is used if the user names none.
DEFAULT = 'gdp'
# The placer that improves drafts by moves that a network chooses.
LEARNED = 'gdp_policy'
# The placer with which tables compare all others.
EXPERT = 'human_expert'


def names() -> tuple[str, ...]:
  """All names, in the order of tables."""
  return tuple(placer_table.table())


def get(name: str) -> placer_table.Entry:
  """The entry of a placer in the tables.

  Args:
    name: One of `names()`.

  Raises:
    GdpError: there is no placer of that name.
  """
  table = placer_table.table()
  if name not in table:
    raise errors.GdpError(
        suggestions.unknown('placer', name, table, 'gdp place --help'))
  return table[name]


def factory(name: str,
            policy: str | None = None) -> Callable[[], placer_lib.Placer]:
  """A function that makes a placer.

  The placer's module is imported now, not when the function is called: some
  modules have to be imported before TensorFlow.

  Args:
    name: One of `names()`.
    policy: Folder of the policy, for a placer that needs one; the shipped
      policy if None.

  Raises:
    GdpError: there is no such placer, or its module cannot be imported.
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
  """Makes a placer; see `factory` for the arguments.

  Raises:
    GdpError: there is no such placer, or something that it needs is missing.
  """
  return factory(name, policy)()

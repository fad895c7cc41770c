"""Whether the option is on, and its value.

`import tensorflow` loads this module in every program, so it imports next to
nothing.
"""

from __future__ import annotations

import functools
from typing import Any, TYPE_CHECKING

from gdp_grappler import environment

# Imported where it is used, because most programs never use the option.
if TYPE_CHECKING:
  from gdp_grappler.plugin import settings as settings_lib

NAME = 'gdp_placement'


def value(context: Any) -> Any:
  """Returns the option as the user set it; None if it was never set.

  Args:
    context: The eager context.
  """
  options = context._optimizer_experimental_options
  if NAME in options:
    return options[NAME]
  if not environment.placement():
    return None
  return from_environment()


@functools.cache
def from_environment() -> Any:
  """Returns the option that GDP_PLACEMENT sets; None if unset or invalid."""
  from gdp_grappler.plugin import notices
  from gdp_grappler.plugin import settings as settings_lib
  try:
    return settings_lib.from_text(environment.placement())
  except ValueError as error:
    notices.warn_once(f'{environment.PLACEMENT} is ignored: {error}')
    return None


# Number of times that the option was switched off.
_times_off = 0


def note_off() -> None:
  """Records that the option was switched off, which moves variables back."""
  global _times_off
  _times_off += 1


def times_off() -> int:
  """Returns how many times the option was switched off."""
  return _times_off


def is_set(option: Any) -> bool:
  """Whether an option is on. An empty dict is on, with all defaults."""
  return option is not None and option is not False


def settings() -> settings_lib.Settings | None:
  """Returns the present settings; None if the option is off."""
  from tensorflow.python.eager import context

  from gdp_grappler.plugin import settings as settings_lib
  return settings_lib.from_option(value(context.context()))

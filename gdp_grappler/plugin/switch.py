"""Whether the option is on, and its value.

`import tensorflow` loads this module in every program, so it imports next to
nothing.
"""

from __future__ import annotations

import functools
from typing import Any, TYPE_CHECKING

from gdp_grappler import environment

# All else is imported where it is used: most programs need none of it.
if TYPE_CHECKING:
  from gdp_grappler.plugin import settings as settings_lib

NAME = 'gdp_placement'


def value(context: Any) -> Any:
  """The option as the user gave it; None if never given.

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
  """The option's value that GDP_PLACEMENT asks for; None if it is not set."""
  from gdp_grappler.plugin import notices
  from gdp_grappler.plugin import settings as settings_lib
  try:
    return settings_lib.from_text(environment.placement())
  except ValueError as error:
    notices.warn_once(f'{environment.PLACEMENT} is ignored: {error}')
    return None


def is_set(option: Any) -> bool:
  """An empty dict is a dict: on, with all defaults."""
  return option is not None and option is not False


def settings() -> settings_lib.Settings | None:
  """What holds now; None where the option is off."""
  from tensorflow.python.eager import context

  from gdp_grappler.plugin import settings as settings_lib
  return settings_lib.from_option(value(context.context()))

"""The `gdp_placement` option: its checks, and its way into a ConfigProto.

The eager context keeps the option beside TensorFlow's own options, so both are
reset together.
"""

from __future__ import annotations

import copy
import functools
from typing import Any

from gdp_grappler import environment
from gdp_grappler import errors
from gdp_grappler.plugin import notices
from gdp_grappler.plugin import scopes
from gdp_grappler.plugin import settings as settings_lib
from gdp_grappler.plugin import switch

# Number of the meta optimizer's rounds if the configuration has no value.
_DEFAULT_ITERATIONS = 2


def checked(options: dict[str, Any]) -> dict[str, Any]:
  """Checks the keys 'gdp_*' of options that a user sets.

  Returns:
    A copy that does not change if the user's dict does.

  Raises:
    ValueError: a `gdp_*` key is unknown, or its value is bad.
  """
  for key, value in options.items():
    if not isinstance(key, str) or not key.startswith('gdp_'):
      continue
    if key != switch.NAME:
      raise ValueError(f'Unknown option {errors.shown(key)}. '
                       + settings_lib.nearest(key, (switch.NAME,)))
    settings_lib.from_option(value)
  return {
      **options, **({
          switch.NAME: copy.deepcopy(options[switch.NAME])
      } if switch.NAME in options else {})
  }


def add_to(config: Any, value: Any, is_planned: bool = False) -> None:
  """Puts the pass into a configuration, unless it is already there.

  Args:
    config: ConfigProto, changed in place.
    value: Checked value of the option.
    is_planned: Whether the configuration is for functions that are instantiated
      again, because there is now a plan for them.
  """
  settings = settings_lib.from_option(value)
  if settings is None and not environment.capture_directory():
    return
  if settings is not None and settings.policy is None and settings.plan is None:
    _warn_of_policy(environment.policy_folder())
  rewrite_options = config.graph_options.rewrite_options
  if any(o.name == switch.NAME for o in rewrite_options.custom_optimizers):
    return
  if not connect():
    return
  if scopes.were_used():
    _keep_attributes(rewrite_options)
  optimizer = rewrite_options.custom_optimizers.add(name=switch.NAME)
  _write_parameters(optimizer.parameter_map, settings)
  if is_planned:
    # Nothing reads the parameter. But it makes the configuration different, so
    # TensorFlow instantiates the function again.
    optimizer.parameter_map['planned'].b = True
  optimizer.parameter_map['iterations'].i = (
      rewrite_options.meta_optimizer_iterations or _DEFAULT_ITERATIONS)


@functools.cache
def _warn_of_policy(folder: str) -> None:
  """Warns if GDP_POLICY names no network, even if no graph will need one."""
  if not folder:
    return
  # Imported when needed: most programs use the shipped network.
  from gdp_grappler.placers.policy import named_policy
  try:
    named_policy.read(None)
  except (errors.GdpError, OSError) as error:
    notices.warn_once(str(error))


def _keep_attributes(rewrite_options: Any) -> None:
  """Switches off optimizers that replace ops, unless the user set them.

  Fusing, merging and rewriting drop the attributes of the ops they replace,
  and with them the user's pins.
  """
  for name in ('remapping', 'arithmetic_optimization',
               'common_subgraph_elimination'):
    if not getattr(rewrite_options, name):
      setattr(rewrite_options, name, rewrite_options.OFF)


def _write_parameters(parameters: Any,
                      settings: settings_lib.Settings | None) -> None:
  """Writes parameters for `GdpPlacement::Init`.

  Args:
    parameters: The map of parameters.
    settings: The user's option; None if graphs are only captured.
  """
  if settings is not None:
    parameters['settings'].s = settings.to_json().encode()
  parameters['min_ops'].i = (settings or settings_lib.Settings()).min_ops
  parameters['capture'].b = bool(environment.capture_directory())
  # A report for another cluster also needs graphs of a program with one device.
  parameters['anywhere'].b = bool(settings and settings.cluster and
                                  settings.mode == 'report')


@functools.cache
def connect() -> bool:
  """Loads the pass, connects it to Python, and returns whether that worked."""
  # Imported when needed: programs with the option off do not need the host.
  from gdp_grappler.plugin import host
  try:
    host.connect()
    return True
  except errors.PluginError as error:
    notices.warn_once(f'Placement is off. {error}')
    return False

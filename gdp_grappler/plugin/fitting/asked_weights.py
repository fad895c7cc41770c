"""Finds the variables of a step that stay where `tf.device` put them."""

from __future__ import annotations

from typing import Any, Mapping, TYPE_CHECKING

from gdp_grappler import variable_scopes
from gdp_grappler.plugin import asked_devices
from gdp_grappler.plugin import settings as settings_lib
from gdp_grappler.plugin import task_links

if TYPE_CHECKING:
  from gdp_grappler.graph import source_graph


def of(variables: Mapping[int, Any], source: source_graph.SourceGraph,
       settings: settings_lib.Settings) -> frozenset[int]:
  """Returns the numbers of the arguments whose variables stay.

  Args:
    variables: Variables by the number of the argument.
    source: Graph of the step.
    settings: The user's option.
  """
  if not settings.keeps_asked:
    return frozenset()
  cluster = task_links.known_of(settings, source.devices)
  if cluster is None:
    return frozenset()
  result = set()
  for number, variable in variables.items():
    device = variable_scopes.device(variable)
    if not device:
      continue
    if not asked_devices.has(cluster, device):
      asked_devices.warn_of_missing(device, variable.name, settings)
    elif variable.device == device:
      result.add(number)
  return frozenset(result)

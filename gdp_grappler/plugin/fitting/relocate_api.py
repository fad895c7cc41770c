"""`gdp_grappler.relocate`: moves variables for loops that are not Keras'."""

from __future__ import annotations

import fnmatch
import os
from typing import Any, Iterable, Mapping

from gdp_grappler import errors
from gdp_grappler import suggestions
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import plan as plan_lib
from gdp_grappler.plugin.fitting import variable_moves


def relocate(variables: Iterable[Any],
             plan: Mapping[str, str] | str | os.PathLike[str]) -> int:
  """Brings variables to where a plan wants them, before or between steps.

  For training loops of one's own; Keras' `fit` does it by itself. Variables
  keep their identity, and functions that were traced before go on working: the
  next call of each is placed around the new devices. Stateful random ops begin
  their stream anew with it, so the time to move is before the first step.

    gdp_grappler.relocate(encoder.variables, 'GPU:0')
    gdp_grappler.relocate(model.variables, {'decoder/*': 'GPU:1'})

  Args:
    variables: `tf.Variable` or variables of Keras.
    plan: A device for all; or names of variables, or patterns of them, with
      their devices, of which the first that fits counts; or a plan file. Other
      variables stay.

  Returns:
    How many were moved.

  Raises:
    InfeasiblePlacementError: a variable cannot be moved, or no variable has a
      name of the mapping.
    ClusterError: a device has no name, or is not here.
    PlanError: the file cannot be read.
  """
  # Names may occur more than once.
  named = [(_name(v), _tensorflow(v)) for v in variables]
  devices = _wanted([name for name, _ in named], plan)
  wanted = [(variable, devices[name]) for name, variable in named
            if devices.get(name, variable.device) != variable.device]
  free = {id(v) for v in variable_moves.movable(v for v, _ in wanted)}
  for variable, device in wanted:
    if id(variable) not in free:
      raise errors.InfeasiblePlacementError(
          f'{variable.name} cannot be moved to {device}: it is not '
          'initialized, a dataset reads it, or it is part of a distribution '
          'strategy.')
  variable_moves.move(wanted)
  return len(wanted)


def _wanted(names: list[str],
            plan: Mapping[str, str] | str | os.PathLike[str]) -> dict[str, str]:
  """Full devices by the names of variables."""
  if isinstance(plan, str):
    try:
      device = _full_name(plan)
      return dict.fromkeys(names, device)
    except errors.ClusterError:
      if not os.path.exists(plan):
        raise
  if not isinstance(plan, Mapping):
    plan = {
        name: device
        for name, device in plan_lib.read(os.fspath(plan)).devices.items()
        if name in names
    }
  result: dict[str, str] = {}
  for pattern, device in plan.items():
    found = fnmatch.filter(names, pattern.removesuffix(':0'))
    if not found:
      raise errors.InfeasiblePlacementError(
          f'No variable is called "{pattern}".'
          f'{suggestions.did_you_mean(pattern, names, similarity=.3)}')
    for name in found:
      result.setdefault(name, _full_name(device))
  return result


def _name(variable: Any) -> str:
  """The path of a variable of Keras 3, else its name without ':0'."""
  return getattr(variable, 'path', variable.name.split(':')[0])


def _tensorflow(variable: Any) -> Any:
  """The `tf.Variable` of a variable of Keras 3."""
  import tensorflow as tf
  return variable if isinstance(variable, tf.Variable) else variable.value


def _full_name(device: str) -> str:
  """As TensorFlow calls a device of this program.

  Raises:
    ClusterError: there is none.
  """
  from tensorflow.python.eager import context
  wanted = cluster_lib.canonical_device(device)
  context.ensure_initialized()
  names = context.context().devices()
  for name in names:
    if name.endswith(wanted):
      return name
  raise errors.ClusterError(f'This program has no device "{device}"; it has '
                            f'{", ".join(cluster_lib.labels(names))}.')

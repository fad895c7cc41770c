"""`gdp_grappler.relocate`: moves variables of custom training loops."""

from __future__ import annotations

import os
import reprlib
from typing import Any, Iterable, Iterator, Mapping, Protocol, Sequence

import numpy as np

from gdp_grappler import errors
from gdp_grappler import suggestions
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import layer_devices
from gdp_grappler.cluster import layer_map
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.cluster import plan as plan_lib
from gdp_grappler.graph import op_graph
from gdp_grappler.graph.legality import kernels
from gdp_grappler.graph.legality import rounding
from gdp_grappler.graph.legality import slots
from gdp_grappler.plugin import notices
from gdp_grappler.plugin.fitting import variable_moves


class Placed(Protocol):
  """A step with devices, such as `PlacedStep`."""

  @property
  def graph(self) -> op_graph.OpGraph:
    """The graph, with N ops."""

  @property
  def placement(self) -> placement_lib.Placement:
    """The placement of these ops."""


Plan = Mapping[str, str] | str | os.PathLike[str] | Placed


def relocate(variables: Any, plan: Plan) -> int:
  """Moves variables to the devices of a plan, before or between steps.

  Custom training loops need this function. Keras' `fit` moves variables by
  itself. A moved variable keeps its identity. A function that was traced before
  still works, and its next call is placed for the new devices. Variables stay
  moved when the option is switched off. A stateful random op restarts its
  stream when it moves, so move variables before the first step.

    gdp_grappler.relocate(encoder.variables, 'GPU:0')
    gdp_grappler.relocate([model, optimizer], {'decoder/*': 'GPU:1'})

  Args:
    variables: One or several `tf.Variable`s, variables of Keras, or objects
      that have variables: models, layers and built optimizers. Scalars of an
      optimizer stay, such as the learning rate.
    plan: A device for all variables; a map from layers or names of variables to
      devices; a result of `place`; or a file with a map or a plan. Slots follow
      their variable. Variables that the plan does not name stay. Variables of
      types that TensorFlow keeps on the CPU, such as int32, stay, too, and a
      line counts them.

  Returns:
    The number of moved variables.

  Raises:
    InfeasiblePlacementError: a variable cannot be moved, or an object has no
      variables.
    PlanError: the value is no plan, the file cannot be read, or the plan names
      none of the variables.
    ClusterError: a text is no name of a device, or this program lacks the
      device.
  """
  known = _Known(variables)
  named = [(variable, device)
           for variable, device in zip(known.variables, _wanted(known, plan))
           if device]
  wanted = _possible([(variable, device) for variable, device in named
                      if device != variable.device])
  free = {id(v) for v in variable_moves.movable(v for v, _ in wanted)}
  for variable, device in wanted:
    if id(variable) not in free:
      raise errors.InfeasiblePlacementError(
          f'{variable.name} cannot be moved to {device}: it is not '
          'initialized, a dataset reads it, or it is part of a distribution '
          'strategy.')
  variable_moves.move(wanted)
  variable_moves.settle(variable for variable, _ in named)
  return len(wanted)


def _possible(wanted: Sequence[tuple[Any, str]]) -> list[tuple[Any, str]]:
  """Leaves out variables whose type the wanted device cannot hold."""
  result = []
  for variable, device in wanted:
    kind = rounding.device_type(device)
    held = kernels.types_for_variable(
        variable.dtype.base_dtype.as_datatype_enum)
    if kind < 0 or held[kind]:
      result.append((variable, device))
  if len(result) < len(wanted):
    notices.say(f'{len(wanted) - len(result)} of {len(wanted)} variables stay '
                'where they are: TensorFlow keeps variables of their types, '
                'such as int32, on the CPU')
  return result


class _Known:
  """The caller's variables, each once, and their names.

  Attributes:
    variables: [V], `tf.Variable`s.
    names: [V], paths of Keras 3, or else names.
    parents: [V], name of the variable of a slot; for other variables their own
      name.
  """

  def __init__(self, given: Any) -> None:
    items = tuple(_items(given))
    found = {id(_tensorflow(v)): v for v in _all(items)}
    self.variables = list(map(_tensorflow, found.values()))
    self.names = list(map(_name, found.values()))
    by_key = {slots.key(name): name for name in self.names}
    for optimizer in items:
      for variable in getattr(optimizer, '_trainable_variables', ()):
        by_key.setdefault(slots.key(_name(variable)), _name(variable))
    self.parents = [
        next((by_key[key]
              for key in slots.variables_of(name) if key in by_key), name)
        for name in self.names
    ]


def _wanted(known: _Known, plan: Plan) -> list[str]:
  """Returns full devices of variables, [V]; '' for those that stay."""
  if isinstance(plan, str):
    try:
      return [_full_name(plan)] * len(known.names)
    except errors.ClusterError:
      if not os.path.exists(plan):
        raise
  if isinstance(plan, (str, os.PathLike)):
    path = os.fspath(plan)
    layers = plan_lib.read_layers(path)
    if layers is None:
      return _by_name(known, plan_lib.read(path).devices, path)
    return _by_layer(known, layers)
  if isinstance(plan, Mapping):
    return _by_layer(known, plan)
  if not hasattr(plan, 'graph') or not hasattr(plan, 'placement'):
    raise errors.PlanError(
        f'{_shown(plan)} is no plan. Give a device, a map such as '
        '{"decoder/*": "GPU:1"}, what `gdp_grappler.place` returned, or a file.'
    )
  return _by_name(known, _of_step(plan), 'the plan')


def _of_step(plan: Placed) -> dict[str, str]:
  """Returns the devices of a placed step by the names of variables."""
  graph, labels = plan.graph, plan.placement.cluster.device_labels
  return {
      graph.variables[op] or graph.names[op]: labels[plan.placement.devices[op]]
      for op in np.flatnonzero(graph.param_bytes)
  }


def _by_name(known: _Known, devices: Mapping[str, str],
             origin: str) -> list[str]:
  """Returns full devices, [V]. Slots without a device follow their variable."""
  found = [
      next((devices[name] for name in (own, variable.name.split(':')[0], parent)
            if name in devices), '') for own, variable, parent in zip(
                known.names, known.variables, known.parents)
  ]
  if known.names and not any(found):
    raise errors.PlanError(
        f'No variable of {origin} has one of these names, such as '
        f'"{known.names[0]}". Give what `gdp_grappler.place` returned for this '
        'step, or a map of layers.')
  return [_full_name(device) if device else '' for device in found]


def _by_layer(known: _Known, layers: Mapping[str, str]) -> list[str]:
  """Returns full devices by a map of layers, [V]."""
  layers = {
      pattern.removesuffix(':0'): device
      for pattern, device in layer_map.checked(layers)
  }
  patterns = list(layers)
  of_parents = layer_devices.match(patterns, known.parents)
  of_own = layer_devices.match(patterns, known.names)
  # A pattern may be the name of a slot. Other slots follow their variable.
  chosen = [
      own if own >= 0 and patterns[own] == name or parent < 0 else parent
      for name, own, parent in zip(known.names, of_own.patterns.tolist(),
                                   of_parents.patterns.tolist())
  ]
  idle = [
      pattern for number, pattern in enumerate(patterns)
      if number not in chosen and number not in of_own.patterns
  ]
  if idle and max(chosen, default=-1) < 0:
    raise errors.PlanError(_unknown(idle[0], known.names))
  for pattern in idle:
    if suggestions.nearest(pattern, known.names):
      notices.say(f'relocate: {_unknown(pattern, known.names)}')
  return [_full_name(layers[patterns[i]]) if i >= 0 else '' for i in chosen]


def _unknown(pattern: str, names: Sequence[str]) -> str:
  near = suggestions.did_you_mean(pattern, names, similarity=.3)
  return f'No variable is called "{pattern}".{near}'


def _items(given: Any) -> Iterator[Any]:
  """Yields the objects that the caller gave.

  Raises:
    InfeasiblePlacementError: an object is no variable and has no variables.
  """
  for item in _parts(given):
    if not hasattr(item, 'variables'):
      _tensorflow(item)
    yield item


def _parts(given: Any) -> Iterable[Any]:
  """Returns the members of a collection, or an object by itself."""
  if (hasattr(given, 'variables') or _found(given) is not None or
      isinstance(given, (str, bytes, Mapping))):
    return (given,)
  try:
    return iter(given)
  except TypeError:  # Scalars look like collections.
    return (given,)


def _all(items: Iterable[Any]) -> Iterator[Any]:
  """Yields the variables of the caller's objects."""
  for item in items:
    own = getattr(item, 'variables', None)
    if own is None:
      yield item
      continue
    is_optimizer = hasattr(item, 'apply_gradients')
    if callable(own):
      own = own()  # A method in optimizers of TensorFlow 1.
    if not isinstance(own, Iterable):
      raise _no_variable(item)
    for variable in own:
      if not is_optimizer or len(variable.shape):
        yield variable


def _name(variable: Any) -> str:
  """Returns the path of a variable of Keras 3, or a name without ':0'."""
  return getattr(variable, 'path', variable.name.split(':')[0])


def _tensorflow(variable: Any) -> Any:
  """Returns the `tf.Variable` of a variable of Keras 3.

  Raises:
    InfeasiblePlacementError: the object is no variable.
  """
  found = _found(variable)
  if found is None:
    raise _no_variable(variable)
  return found


def _found(given: Any) -> Any:
  """Returns the object or its `tf.Variable`; None if it is no variable."""
  import tensorflow as tf
  if isinstance(given, tf.Variable):
    return given
  value = getattr(given, 'value', None)
  return value if isinstance(value, tf.Variable) else None


def _no_variable(given: Any) -> errors.InfeasiblePlacementError:
  return errors.InfeasiblePlacementError(
      f'{_shown(given)} is no variable and has none. Give variables, models, '
      'layers or optimizers; one or a list.')


def _shown(given: Any) -> str:
  text = errors.one_line(reprlib.repr(given))
  return f'{text} of type {type(given).__name__}'


def _full_name(device: str) -> str:
  """Returns TensorFlow's name of a device of this program.

  Raises:
    ClusterError: there is no such device.
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

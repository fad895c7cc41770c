"""Moves variables to other devices, and back.

The `tf.Variable` and the tensor with its handle stay. Only the resource behind
the handle is replaced by another one with the same value (`handles`). Models,
optimizers, checkpoints and traced functions therefore need no change. The old
memory is freed after the last call that uses it.
"""

from __future__ import annotations

import threading
from typing import Any, Iterable, Sequence
import weakref

from gdp_grappler import errors
from gdp_grappler.plugin import datasets
from gdp_grappler.plugin import notices
from gdp_grappler.plugin.fitting import compiled_readers
from gdp_grappler.plugin.fitting import handles

_lock = threading.RLock()
# By id, because variables have no hash: variables that were moved and still
# exist, with their original devices.
_moved: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
_homes: dict[int, str] = {}
# By id of a variable, the model that has claimed it.
_owners: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def movable(variables: Iterable[Any], owner: Any = None) -> list[Any]:
  """Returns the variables that can move so that all readers follow.

  A dataset that reads a variable has a handle of its own, which cannot be
  replaced. Variables of distribution strategies consist of several variables,
  or are on parameter servers. The result lacks all these variables.

  Args:
    variables: Variables of any kind.
    owner: The model whose step is planned. The result then lacks variables that
      `claim` leaves out.
  """
  from tensorflow.python.ops import resource_variable_ops as variable_ops
  plain = [
      v for v in variables
      if isinstance(v, variable_ops.BaseResourceVariable) and
      handles.can_exchange(v.handle) and not v.handle.is_packed and
      bool(variable_ops.var_is_initialized_op(v.handle))
  ]
  held = datasets.captured() if plain else set()
  free = [v for v in plain if id(v.handle) not in held]
  if owner is None:
    return free
  return [v for v, _ in claim([(v, '') for v in free], owner)]


def claim(devices: Sequence[tuple[Any, str]],
          owner: Any) -> list[tuple[Any, str]]:
  """Leaves out variables that stay because of another function.

  That function is the step of another model, which has claimed the variables,
  or a function that XLA compiles for one device. Variables of the result belong
  to the owner until `release`, and so do variables that stay for XLA.

  Args:
    devices: Results of `movable`, each with a device.
    owner: The model whose variables would move.
  """
  with _lock:
    owners = [_owners.get(_key(v), owner) for v, _ in devices]
    own = [pair for pair, other in zip(devices, owners) if other is owner]
    others = [other for other in owners if other is not owner]
    _owners.update({_key(v): owner for v, _ in own})
  if others:
    notices.say_once(
        f'{len(others)} variables of "{owner.name}" stay where they are, '
        f'because "{others[0].name}" was planned with them')
  compiled = compiled_readers.captured(owner) if own else set()
  free = [(v, device) for v, device in own if id(v.handle) not in compiled]
  # If no variable is free, XLA compiles the whole step. Another line says this.
  if 0 < len(free) < len(own):
    notices.say_once(f'{len(own) - len(free)} variables stay where they are: a '
                     'function uses them that XLA compiles for one device')
  return free


def release(owner: Any) -> None:
  """Lets other models move the variables that a model has claimed."""
  with _lock:
    for key in [key for key, other in _owners.items() if other is owner]:
      del _owners[key]


def _key(variable: Any) -> int:
  """Returns the id of the handle, which no later variable has."""
  return variable.handle._id


def was_moved(variable: Any) -> bool:
  """Whether `move_back` would move the variable."""
  return _moved.get(id(variable)) is variable


def settle(variables: Iterable[Any]) -> None:
  """Makes variables stay where they are when `move_back` is called.

  Args:
    variables: Variables that the user has moved.
  """
  with _lock:
    for variable in variables:
      if was_moved(variable):
        del _moved[id(variable)], _homes[id(variable)]


def move(devices: Iterable[tuple[Any, str]]) -> None:
  """Moves variables one by one, so that few bytes exist twice.

  A variable that a dataset has begun to read stays, because the dataset would
  read the old value. This also holds for a variable that was moved before,
  until the dataset is gone.

  Args:
    devices: Results of `movable`, each with the full name of a device.

  Raises:
    InfeasiblePlacementError: TensorFlow put a copy somewhere else. Variables
      that come earlier in `devices` have been moved.
  """
  from tensorflow.python.eager import context
  with _lock:
    wanted = [(v, device) for v, device in devices if v.device != device]
    held = datasets.captured() if wanted else set()
    stay = sum(id(v.handle) in held for v, _ in wanted)
    if stay:
      notices.say(f'{stay} of {len(wanted)} variables stay where they are: '
                  'a dataset reads them there')
    for variable, device in wanted:
      if id(variable.handle) in held:
        continue
      home = _homes[id(variable)] if was_moved(variable) else variable.device
      _move(variable, device)
      _homes.pop(id(variable), None)
      _moved.pop(id(variable), None)
      if device != home:
        _moved[id(variable)], _homes[id(variable)] = variable, home
    # Servers copy later, and a function may run before that.
    context.async_wait()


def move_back() -> int:
  """Moves all variables back to their original devices.

  If a device no longer answers, the variables that have not yet moved stay, and
  one line says so.

  Returns:
    The number of variables that moved back.
  """
  from tensorflow.python.framework import errors_impl
  with _lock:
    away = [(v, _homes[i]) for i, v in list(_moved.items())]
    try:
      move(away)
    except errors_impl.OpError as error:
      notices.say(
          f'{len(_moved)} variables stay where they were moved, because a '
          'device no longer answers; load them from a '
          f'checkpoint ({errors.one_line(error.message, 200)})')
    # Variables that stay may be moved back later.
    kept = {i: _homes[i] for i in list(_moved)}
    _homes.clear()
    _homes.update(kept)
    return len(away) - len(kept)


def move_back_for(handle_ids: set[int]) -> int:
  """Moves variables back to their original devices, if they were moved.

  Args:
    handle_ids: Ids of the handles of the variables.

  Returns:
    The number of variables that were moved.
  """
  with _lock:
    away = [(v, _homes[i]) for i, v in list(_moved.items())
            if id(v.handle) in handle_ids]
    move(away)
    return sum(not was_moved(v) for v, _ in away)


def any_moved(variables: Iterable[Any]) -> bool:
  """Whether one of the variables of Keras is not where it was made."""
  return bool(_moved) and any(
      was_moved(getattr(v, 'value', v)) or was_moved(v) for v in variables)


def _move(variable: Any, device: str) -> None:
  import tensorflow as tf
  from tensorflow.python.ops import gen_resource_variable_ops as raw_ops
  from tensorflow.python.ops import resource_variable_ops as variable_ops
  handle = variable.handle
  # The copy is eager, because the caller may be tracing a function.
  with tf.init_scope():
    with tf.device(handle.device):
      value = raw_ops.read_variable_op(handle, variable.dtype)
    with tf.device(device):
      copy = variable_ops.eager_safe_variable_handle(value, variable.shape,
                                                     None, handle._name, False)
      if copy.device != device:
        raise errors.InfeasiblePlacementError(
            f'{variable.name} cannot be moved to {device}: TensorFlow made it '
            f'on {copy.device}.')
      raw_ops.assign_variable_op(copy, value)
  handles.exchange(handle, copy)

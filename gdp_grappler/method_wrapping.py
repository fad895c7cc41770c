"""Replaces methods of TensorFlow and Keras, each once per process."""

from __future__ import annotations

import functools
import inspect
from typing import Any, Callable

# Attribute of a replaced method with the names of its wrappers.
_WRAPPERS = '_gdp_wrappers'


def wrap(owner: Any, name: str, wrapper: Callable[..., Any]) -> None:
  """Replaces a method. A second call with the same wrapper has no effect.

  Args:
    owner: The class of the method, or the module of a function.
    name: Name of the method.
    wrapper: Called in place of the method, with the former method and the
      arguments.
  """
  if is_wrapped(owner, name, wrapper):
    return
  stock = getattr(owner, name)

  def wrapped(*args: Any, **kwargs: Any) -> Any:
    return wrapper(stock, *args, **kwargs)

  result: Any = functools.wraps(stock)(wrapped)
  # tf_keras reads parameters by `getfullargspec`, which ignores `__wrapped__`.
  result.__signature__ = inspect.signature(stock)
  wrappers = (*getattr(stock, _WRAPPERS, ()), _name(wrapper))
  setattr(result, _WRAPPERS, wrappers)
  setattr(owner, name, result)


def is_wrapped(owner: Any, name: str, wrapper: Callable[..., Any]) -> bool:
  """Whether `wrap` has replaced a method; the arguments are those of `wrap`."""
  return _name(wrapper) in getattr(getattr(owner, name), _WRAPPERS, ())


def _name(function: Callable[..., Any]) -> str:
  return f'{function.__module__}.{function.__qualname__}'

"""Replaces methods of TensorFlow and Keras, each once per process."""

from __future__ import annotations

import functools
import inspect
import types
from typing import Any, Callable

# Attribute of a replaced method with the names of its wrappers.
_WRAPPERS = '_gdp_wrappers'


def wrap(owner: Any, name: str, wrapper: Callable[..., Any]) -> None:
  """Replaces a method. A second call with the same wrapper has no effect.

  Args:
    owner: The class of the method, or the module of a function. A class may
      also inherit the method. Its base classes then keep theirs.
    name: Name of the method.
    wrapper: Called in place of the method, with the former method and the
      arguments.
  """
  if is_wrapped(owner, name, wrapper):
    return
  own = vars(owner).get(name)
  if inspect.isclass(owner) and (own is None or isinstance(own, _Inherited)):
    setattr(owner, name, _Inherited(owner, name, wrapper, own))
  else:
    setattr(owner, name, _wrapped(getattr(owner, name), wrapper))


def is_wrapped(owner: Any, name: str, wrapper: Callable[..., Any]) -> bool:
  """Whether `wrap` has replaced a method; the arguments are those of `wrap`."""
  return _name(wrapper) in getattr(getattr(owner, name), _WRAPPERS, ())


class _Inherited:
  """Replaces a method that a class inherits.

  A subclass with several base classes may inherit another method than the
  class itself. Base classes may also change later: tf_keras changes those of
  layers in graphs of TensorFlow 1. So each access looks for the method again.
  """

  def __init__(self, owner: type, name: str, wrapper: Callable[..., Any],
               former: _Inherited | None) -> None:
    self._owner = owner
    self._name = name
    self._wrapper = wrapper
    self._former = former

  def __get__(self, instance: Any, cls: type) -> Any:
    stock = (getattr(super(self._owner, cls), self._name)
             if self._former is None else self._former.__get__(None, cls))
    result = _wrapped(stock, self._wrapper)
    return result if instance is None else types.MethodType(result, instance)


# The cache is bounded, because notebooks define classes again and again.
@functools.lru_cache(maxsize=128)
def _wrapped(stock: Callable[..., Any], wrapper: Callable[..., Any]) -> Any:
  """Returns a method that calls the wrapper with the former method."""

  def wrapped(*args: Any, **kwargs: Any) -> Any:
    return wrapper(stock, *args, **kwargs)

  result: Any = functools.wraps(stock)(wrapped)
  # tf_keras reads parameters by `getfullargspec`, which ignores `__wrapped__`.
  result.__signature__ = inspect.signature(stock)
  # `getattr(stock, _WRAPPERS)` of a mock would return another mock.
  known = getattr(stock, '__dict__', {}).get(_WRAPPERS, ())
  wrappers = (*known, _name(wrapper))
  setattr(result, _WRAPPERS, wrappers)
  return result


def _name(function: Callable[..., Any]) -> str:
  return f'{function.__module__}.{function.__qualname__}'

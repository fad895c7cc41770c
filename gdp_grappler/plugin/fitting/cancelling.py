"""Calls of functions that can be cancelled while they run.

TensorFlow has one cancellation manager per process. To cancel a call by this
manager would also cancel the calls of other threads. Here each thread has its
own manager.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
from typing import Any, Callable, Iterator

import tensorflow as tf
from tensorflow.python.eager import cancellation
from tensorflow.python.eager import context as context_lib

from gdp_grappler import method_wrapping

_manager = contextvars.ContextVar[cancellation.CancellationManager | None](
    'manager', default=None)


@contextlib.contextmanager
def cancellable() -> Iterator[cancellation.CancellationManager]:
  """Makes functions that this thread calls in the context cancellable.

  Servers run functions later, and look at the manager then. So the context ends
  only after the functions have ended.

  Yields:
    The manager that cancels the functions.
  """
  _install()
  manager = cancellation.CancellationManager()
  token = _manager.set(manager)
  try:
    yield manager
    context_lib.async_wait()
  finally:
    _manager.reset(token)


class Canceller:
  """Runs functions, and cancels the one that runs now."""

  def __init__(self) -> None:
    self._call: cancellation.CancellationManager | None = None

  def cancel(self) -> None:
    """Cancels the running function; does nothing if none runs."""
    if self._call is not None:
      self._call.start_cancel()

  def run(self, function: Callable[[], Any],
          at_once: bool = False) -> tuple[Any, bool]:
    """Returns the result of a function, and whether it was cancelled.

    Args:
      function: Calls a `tf.function`.
      at_once: Whether to cancel the call before an op runs. TensorFlow then
        only traces and instantiates the function.
    """
    with cancellable() as call:
      self._call = call
      if at_once:
        self.cancel()
      try:
        return function(), False
      except tf.errors.CancelledError:
        if not call.is_cancelled:
          raise
        return None, True
      finally:
        self._call = None


@functools.cache
def _install() -> None:
  """Wraps the method that returns the manager of a call, once per process."""
  from tensorflow.python.eager.polymorphic_function import polymorphic_function
  stock = cancellation.context

  @functools.wraps(stock)
  def context() -> Any:
    return _manager.get() or stock()

  cancellation.context = context
  method_wrapping.wrap(polymorphic_function.Function,
                       '_initialize_uninitialized_variables', _initialize)


def _initialize(stock: Any, self: Any, *args: Any) -> Any:
  """Initializes variables that a trace has made, such as slots of an optimizer.

  Nothing cancels the initialization: a later trace would not make the variables
  again, so they would never get a value.
  """
  token = _manager.set(None)
  try:
    return stock(self, *args)
  finally:
    _manager.reset(token)

"""Adds the `gdp_placement` option to TensorFlow.

`import tensorflow` runs this in every program, so it imports next to nothing
and only replaces a few attributes. All else waits until the option is set.
"""

from __future__ import annotations

import copy
import threading
from typing import Any

from gdp_grappler import environment
from gdp_grappler.plugin import changes

# All else is imported where it is used: most programs need none of it.

_MARK = '_gdp_hook'
_NAME = 'gdp_placement'


def install() -> None:
  """Wraps the eager context's options; once per process."""
  # TensorFlow is half imported here; this module of it is complete.
  from tensorflow.python.eager import context
  if hasattr(context.Context, _MARK):
    return
  _wrap(context.Context)
  setattr(context.Context, _MARK, True)
  if environment.placement() or _is_on(None):
    _wrap_sessions()


def _add_option_to(config: Any) -> None:
  """Puts the pass into a ConfigProto if the option is on."""
  from tensorflow.python.eager import context
  value = _value(context.context())
  if _is_on(value):
    _add_to(config, value)


def _wrap(cls: type[Any]) -> None:
  """Replaces what sets, shows and uses the optimizer options.

  `Context.config` stays as it is: the eager context is initialized with it,
  and tf.data would take the pass from there. A call that becomes a node of a
  graph gets the stock options too: they would be written into the node, and
  with it into saved models, where the option could not be switched off.
  """
  calls = threading.local()
  stock_call = cls.function_call_options
  stock_set = cls.set_optimizer_experimental_options
  stock_get = cls.get_optimizer_experimental_options

  def function_call_options(self: Any) -> Any:
    if getattr(calls, 'changes', 0) != changes.count():
      # TensorFlow tells only the thread that has set the option.
      self._thread_local_data.function_call_options = None
      calls.changes = changes.count()
    is_new = self._thread_local_data.function_call_options is None
    options = stock_call.fget(self)
    if is_new and _is_on(_value(self)):
      stock_options = copy.copy(options)
      _add_to_call(options, _value(self))
      calls.with_pass, calls.stock = options, stock_options
    if getattr(calls, 'with_pass', None) is not options:
      return options
    return options if self.executing_eagerly() else calls.stock

  def set_optimizer_experimental_options(self: Any, options: dict[str,
                                                                  Any]) -> None:
    if any(str(key).startswith('gdp_') for key in options):
      options = _checked(options)
    stock_set(self, options)
    changes.note()
    if _is_set(_value(self)):
      _switch_on()

  def get_optimizer_experimental_options(self: Any) -> dict[str, Any]:
    options = stock_get(self)
    value = _value(self)
    if value is not None:
      options[_NAME] = copy.deepcopy(value)
    return options

  function_call_options.__doc__ = stock_call.__doc__
  cls.function_call_options = stock_call.getter(function_call_options)
  for function, stock in ((set_optimizer_experimental_options, stock_set),
                          (get_optimizer_experimental_options, stock_get)):
    function.__doc__ = stock.__doc__
    setattr(cls, stock.__name__, function)


def _value(context: Any) -> Any:
  """The option as the user gave it; None if never given."""
  options = context._optimizer_experimental_options
  if _NAME in options:
    return options[_NAME]
  if not environment.placement():
    return None
  from gdp_grappler.plugin import option
  return option.from_environment()


def _is_set(value: Any) -> bool:
  """An empty dict is a dict: on, with all defaults."""
  return value is not None and value is not False


def _is_on(value: Any) -> bool:
  return _is_set(value) or bool(environment.capture_directory())


def _checked(options: dict[str, Any]) -> dict[str, Any]:
  from gdp_grappler.plugin import option
  return option.checked(options)


def _switch_on() -> None:
  from gdp_grappler.plugin import option
  _wrap_sessions()
  option.connect()


def _wrap_sessions() -> None:
  from gdp_grappler.plugin import sessions
  sessions.install(_add_option_to)


def _add_to_call(options: Any, value: Any) -> None:
  """Puts the pass into the FunctionCallOptions of a thread."""
  from tensorflow.core.protobuf import config_pb2
  config = config_pb2.ConfigProto.FromString(options.config_proto_serialized)
  _add_to(config, value)
  options.config_proto_serialized = config


def _add_to(config: Any, value: Any) -> None:
  from gdp_grappler.plugin import host
  from gdp_grappler.plugin import option
  if not host.is_placer_thread():
    option.add_to(config, value)

"""Adds the `gdp_placement` option to TensorFlow.

`import tensorflow` runs this module in every program. It therefore imports next
to nothing and only replaces a few attributes. All other work waits until the
option is set.
"""

from __future__ import annotations

import copy
import sys
import threading
from typing import Any, NamedTuple

from gdp_grappler import environment
from gdp_grappler.plugin import config_epoch
from gdp_grappler.plugin import current_call
from gdp_grappler.plugin import switch

# Other modules are imported where they are used. Most programs need none.

_MARK = '_gdp_hook'


def install() -> None:
  """Wraps TensorFlow's functions that set and use options, once per process."""
  # TensorFlow is still being imported, but its module `context` is loaded.
  from tensorflow.python.eager import context
  if hasattr(context.Context, _MARK):
    return
  _wrap(context.Context)
  setattr(context.Context, _MARK, True)
  _watch_all_programs()
  if environment.placement() or _is_on(None):
    _watch_placed_programs()
  if environment.split() or 'split' in environment.placement():
    _wait_for_context(context)


def _add_option_to(config: Any) -> None:
  """Puts the pass into a ConfigProto if the option is on."""
  from tensorflow.python.eager import context
  value = switch.value(context.context())
  if _is_on(value):
    _add_to(config, value)


class _Variants(NamedTuple):
  """FunctionCallOptions of a thread for different calls.

  Attributes:
    with_pass: For calls in general.
    stock: Without the pass.
    placed: For steps that follow a plan.
    clusters: As `placed`, and XLA compiles clusters of ops on one device.
  """

  with_pass: Any
  stock: Any
  placed: Any
  clusters: Any

  def hold(self, options: Any) -> bool:
    """Whether options are a variant, maybe with another executor."""
    return any(options.config_proto_serialized == v.config_proto_serialized
               for v in self)


class _Calls(threading.local):
  """The variants of a thread; None without the option."""

  changes = 0  # `config_epoch.count()` when the variants were made.
  variants: _Variants | None = None


def _variants(context: Any, options: Any) -> _Variants:
  """Returns variants of the FunctionCallOptions of a context."""
  # Without a choice of devices, calls run as if the option were off.
  value = None if _has_no_choice(context) else switch.value(context)
  with_pass = copy.copy(options)
  _add_to_call(with_pass, value)
  return _Variants(with_pass, options, *_of_placed_steps(options, value))


def _chosen(context: Any, variants: _Variants, executor: str | None) -> Any:
  """Returns the variant for the next call."""
  if not context.executing_eagerly():
    return variants.stock
  if executor:
    from gdp_grappler.plugin import sessions
    if sessions.has_one_thread(executor, 'functions'):
      return variants.stock
  call = current_call.current()
  if call is None or not call.is_placed:
    return variants.with_pass
  return variants.clusters if call.has_clusters else variants.placed


def _wrap(cls: type[Any]) -> None:
  """Replaces the methods that set, show and use the optimizer options.

  Two configurations do not get the pass. The first is `Context.config`, because
  tf.data would take the pass from it. The second is the configuration of a call
  that becomes a node of a graph. The node would keep the pass, also in saved
  models, where the option could not be switched off.
  """
  calls = _Calls()
  stock_call = cls.function_call_options
  stock_set = cls.set_optimizer_experimental_options
  stock_get = cls.get_optimizer_experimental_options

  def function_call_options(self: Any) -> Any:
    if calls.changes != config_epoch.count():
      # After a change TensorFlow drops only the cache of the changing thread.
      self._thread_local_data.function_call_options = None
      calls.changes = config_epoch.count()
    is_new = self._thread_local_data.function_call_options is None
    options = stock_call.fget(self)
    if is_new:
      calls.variants = None
      if _is_on(switch.value(self)):
        calls.variants = _variants(self, options)
    if calls.variants is None or not calls.variants.hold(options):
      return options
    chosen = _chosen(self, calls.variants, options.executor_type)
    # A program sets the executor in the options that it got from here. So the
    # next options have the same executor.
    chosen.executor_type = options.executor_type
    self._thread_local_data.function_call_options = chosen
    return chosen

  def set_optimizer_experimental_options(self: Any, options: dict[str,
                                                                  Any]) -> None:
    if any(str(key).startswith('gdp_') for key in options):
      options = _checked(options)
    was_on = switch.is_set(switch.value(self))
    stock_set(self, options)
    config_epoch.note()
    _switch(self, was_on)

  def get_optimizer_experimental_options(self: Any) -> dict[str, Any]:
    options = stock_get(self)
    value = switch.value(self)
    if value is not None:
      options[switch.NAME] = copy.deepcopy(value)
    return options

  function_call_options.__doc__ = stock_call.__doc__
  cls.function_call_options = stock_call.getter(function_call_options)
  for function, stock in ((set_optimizer_experimental_options, stock_set),
                          (get_optimizer_experimental_options, stock_get)):
    function.__doc__ = stock.__doc__
    setattr(cls, stock.__name__, function)


def _is_on(value: Any) -> bool:
  return switch.is_set(value) or bool(environment.capture_directory())


def _checked(options: dict[str, Any]) -> dict[str, Any]:
  from gdp_grappler.plugin import option
  return option.checked(options)


def _switch(context: Any, was_on: bool) -> None:
  """Switches the plugin on or off after the options of a context were set."""
  if switch.is_set(switch.value(context)):
    _arm_split(context)
    _switch_on()
  elif was_on:
    _arm_split(context)
    _switch_off()


def _arm_split(context: Any) -> None:
  """Prepares, or takes back, the split of GPUs at the start of the runtime."""
  from gdp_grappler.plugin import splitting
  splitting.arm_of(context, _split_of(context), by_option=True)


def _split_of(context: Any) -> int | str | None:
  """Returns the option's value of 'split'; None without one."""
  from gdp_grappler.plugin import settings
  found = settings.from_option(switch.value(context))
  return None if found is None else found.split


def _wait_for_context(module: Any) -> None:
  """Splits GPUs as environment variables say, once there is a context."""
  stock = module.Context.__init__

  def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
    stock(self, *args, **kwargs)
    from gdp_grappler.plugin import splitting
    value = splitting.from_environment()
    if value is None:
      splitting.arm_of(self, _split_of(self), by_option=True)
    else:
      splitting.arm_of(self, value)

  module.Context.__init__ = __init__


def _switch_on() -> None:
  _watch_placed_programs()
  _connect()


def _switch_off() -> None:
  switch.note_off()
  # If `variable_moves` is not loaded, no variable has moved.
  moves = sys.modules.get('gdp_grappler.plugin.fitting.variable_moves')
  if moves is not None:
    moves.move_back()


def _connect() -> None:
  from gdp_grappler.plugin import option
  option.connect()


def _watch_all_programs() -> None:
  """Records what has to be known if the option is switched on later."""
  from gdp_grappler import variable_scopes
  from gdp_grappler.plugin import datasets
  from gdp_grappler.plugin import servers
  from gdp_grappler.plugin import xla
  xla.remember_auto()
  datasets.watch()
  variable_scopes.watch()
  servers.install(_connect)


def _watch_placed_programs() -> None:
  """Wraps functions of sessions and of Keras, for programs with the option."""
  from gdp_grappler.plugin import loading
  from gdp_grappler.plugin import sessions
  from gdp_grappler.plugin.fitting import host_creation
  from gdp_grappler.plugin.fitting import tables
  from gdp_grappler.plugin.fitting import trainers
  sessions.install(_add_option_to)
  trainers.install()
  host_creation.install()
  tables.install()
  loading.install()


def _has_no_choice(context: Any) -> bool:
  """Whether a program has nothing to place. If so, a line gives the reason."""
  settings = switch.settings() if context._initialized else None
  if settings is None:
    return False
  from gdp_grappler.placers.policy import eager_thread
  from gdp_grappler.plugin import devices
  from gdp_grappler.plugin import option
  return (option.connect() and not eager_thread.is_current() and
          devices.tell_if_no_choice(settings))


def _add_to_call(options: Any, value: Any, is_planned: bool = False) -> None:
  """Adds the pass to FunctionCallOptions."""
  from tensorflow.core.protobuf import config_pb2
  config = config_pb2.ConfigProto.FromString(options.config_proto_serialized)
  _add_to(config, value, is_planned)
  options.config_proto_serialized = config


def _of_placed_steps(options: Any, value: Any) -> tuple[Any, Any]:
  """Returns copies of FunctionCallOptions for steps that follow a plan.

  With the second copy, XLA compiles clusters of ops on one device, as with
  `tf.config.optimizer.set_jit('autoclustering')` in a whole process.
  """
  from tensorflow.core.protobuf import config_pb2
  placed = copy.copy(options)
  _add_to_call(placed, value, is_planned=True)
  clusters = copy.copy(placed)
  config = config_pb2.ConfigProto.FromString(placed.config_proto_serialized)
  config.graph_options.optimizer_options.global_jit_level = (
      config_pb2.OptimizerOptions.ON_2)
  clusters.config_proto_serialized = config
  return placed, clusters


def _add_to(config: Any, value: Any, is_planned: bool = False) -> None:
  from gdp_grappler.placers.policy import eager_thread
  from gdp_grappler.plugin import option
  if not eager_thread.is_current():
    option.add_to(config, value, is_planned)

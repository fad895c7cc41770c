"""Adds the option to v1 sessions, which have their own configuration."""

from __future__ import annotations

from typing import Any, Callable

from gdp_grappler import method_wrapping
from gdp_grappler.plugin import asked_devices
from gdp_grappler.plugin import notices
from gdp_grappler.plugin import switch

# Methods of a session that let graphs be optimized. `_do_call` is a part of
# `run` and of the public methods for partial runs. These are not wrapped,
# because the warning that they are deprecated names the file that calls them.
_RUNS = ('_do_call', '_call_tf_sessionrun', '_make_callable_from_options')
_ONE_THREAD = 'SINGLE_THREADED_EXECUTOR'


def install(add_option: Callable[[Any], None]) -> None:
  """Wraps the constructor and `run` of v1 sessions, once per process.

  Args:
    add_option: Adds the pass to a ConfigProto if the option is on.
  """
  from tensorflow.python.client import session

  def init(stock: Any, self: Any, target: Any = '', graph: Any = None,
           config: Any = None) -> None:
    stock(self, target, graph, _with_option(config, add_option))
    if _text(target or '').startswith('grpc:') and _has_pass(self._config):
      notices.say_once(f'sessions on {_text(target)}: that server places their '
                       'graphs, if gdp-grappler is installed there, and says '
                       'so itself')

  method_wrapping.wrap(session.BaseSession, '__init__', init)
  for name in _RUNS:
    method_wrapping.wrap(session.BaseSession, name, asked_devices.in_session)


def has_one_thread(executor: str, what: str) -> bool:
  """Whether an executor has one thread. If so, a line says the consequence.

  Args:
    executor: TensorFlow's name of the executor; '' for the usual one.
    what: What runs on the executor, as in 'sessions'.
  """
  if executor != _ONE_THREAD:
    return False
  notices.say_once(f'{what} with {_ONE_THREAD}: left as they were: this '
                   'executor cannot wait for a tensor of another device')
  return True


def _text(target: Any) -> str:
  return target.decode() if isinstance(target, bytes) else str(target)


def _has_pass(config: Any) -> bool:
  optimizers = config.graph_options.rewrite_options.custom_optimizers
  return any(optimizer.name == switch.NAME for optimizer in optimizers)


def _with_option(config: Any, add_option: Callable[[Any], None]) -> Any:
  """Returns a copy of a configuration, with the pass if the option is on.

  An argument of another type is returned unchanged, because TensorFlow's own
  constructor then raises an error. A configuration of the executor with one
  thread is also returned unchanged: this executor would wait forever for a
  tensor of another device.
  """
  from tensorflow.core.protobuf import config_pb2
  from tensorflow.python.eager import context
  if config is None:
    # TensorFlow's own constructor does the same.
    config = context.context().config
  if not isinstance(config, config_pb2.ConfigProto):
    return config
  result = config_pb2.ConfigProto()
  result.CopyFrom(config)
  add_option(result)
  if _has_pass(result) and has_one_thread(result.experimental.executor_type,
                                          'sessions'):
    return config
  return result

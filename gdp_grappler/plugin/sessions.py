"""Brings the option to v1 sessions, which have a configuration of their own."""

from __future__ import annotations

import functools

_MARK = '_gdp_hook'


def install() -> None:
  """Wraps the constructor of all v1 sessions; once per process."""
  from tensorflow.python.client import session
  if not hasattr(session.BaseSession, _MARK):
    _wrap(session.BaseSession)
    setattr(session.BaseSession, _MARK, True)


def _wrap(cls) -> None:
  stock = cls.__init__

  @functools.wraps(stock)
  def init(self, target='', graph=None, config=None):
    stock(self, target, graph, _with_option(config))

  cls.__init__ = init


def _with_option(config):
  """A copy with the pass in it, if the option is on.

  Anything but a configuration is the stock constructor's to refuse.
  """
  from tensorflow.core.protobuf import config_pb2
  from tensorflow.python.eager import context

  from gdp_grappler.plugin import hook
  if config is None:
    # As the stock constructor does.
    config = context.context().config
  if not isinstance(config, config_pb2.ConfigProto):
    return config
  result = config_pb2.ConfigProto()
  result.CopyFrom(config)
  hook.add_option_to(result)
  return result

"""XLA, which turns a graph into one op that cannot be placed.

If Keras chooses XLA by itself, the option decides whether XLA stays. If the
user asked for XLA, it stays, and one line says so.
"""

from __future__ import annotations

import enum
import functools
import inspect
from typing import Any, Callable, TYPE_CHECKING

from gdp_grappler import stack_room

# Imported where it is used: every program loads this module.
if TYPE_CHECKING:
  from gdp_grappler.plugin import settings as settings_lib

_AUTO = '_gdp_auto_xla'
_MARK = '_gdp_wrapped'
_KERAS_3 = 'keras.src.trainers.trainer'


class Handling(enum.Enum):
  """What becomes of XLA where Keras chose it.

  Attributes:
    KEPT: The model is compiled, and not placed.
    COMPARED: Its `fit` is timed, compiled and placed; the faster way stays.
    HELD_BACK: It is not compiled, and placed at once.
  """

  KEPT = enum.auto()
  COMPARED = enum.auto()
  HELD_BACK = enum.auto()


def handling(settings: settings_lib.Settings) -> Handling:
  """What the option means for a model that Keras has compiled by XLA.

  Nothing predicts what XLA gains. So where steps are not timed, XLA stays,
  unless the user has decided on a placement.

  Args:
    settings: The user's option.
  """
  from gdp_grappler.plugin import settings as settings_lib
  if settings.xla == settings_lib.XLA_KEPT:
    return Handling.KEPT
  if settings.xla == settings_lib.XLA_OFF:
    return Handling.HELD_BACK
  if settings.mode == 'report' or settings.times_steps:
    return Handling.COMPARED
  return Handling.HELD_BACK if settings.has_decided else Handling.KEPT


def remember_auto() -> None:
  """Has models of Keras 3 know that their `jit_compile` was "auto".

  Of what Keras resolved it keeps the result alone. So that has to be noted
  before there is a model, whether or not the option is ever switched on.
  """
  import wrapt
  wrapt.register_post_import_hook(_wrap_compile, _KERAS_3)


def chosen_by_keras(model: Any) -> bool:
  """Whether Keras, and not the user, chose XLA for a model."""
  # One that was never compiled resolves it when it is first used.
  never_asked = not getattr(model, 'compiled', True)
  return bool(vars(model).get(_AUTO, never_asked) and model.jit_compile)


def _wrap_compile(module: Any) -> None:
  trainer = getattr(module, 'Trainer', None)
  if trainer is None or _MARK in vars(trainer):
    return
  stock = trainer.compile
  signature = inspect.signature(stock)

  @functools.wraps(stock)
  def compile_model(self: Any, *args: Any, **kwargs: Any) -> Any:
    result = stock(self, *args, **kwargs)
    bound = signature.bind(self, *args, **kwargs)
    vars(self)[_AUTO] = bound.arguments.get('jit_compile', 'auto') == 'auto'
    return result

  trainer.compile = compile_model
  setattr(trainer, _MARK, True)


def watch_functions(tell: Callable[[str], None]) -> None:
  """Has every `tf.function(jit_compile=True)` told of when it is traced.

  Args:
    tell: Hears the name of the function.
  """
  from tensorflow.python.eager.polymorphic_function import polymorphic_function
  cls = polymorphic_function.Function
  if hasattr(cls, _MARK):
    return
  stock = cls._initialize

  @functools.wraps(stock)
  def initialize(self: Any, *args: Any, **kwargs: Any) -> Any:
    if self._jit_compile:
      tell(self._name)
    # A trace with the option on has a deeper stack of Python functions.
    return stack_room.call(stock, self, *args, **kwargs)

  cls._initialize = initialize
  setattr(cls, _MARK, True)

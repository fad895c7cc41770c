"""XLA, which turns a graph into one op that cannot be placed.

If Keras chooses XLA by itself, the option decides whether XLA stays. If the
user asked for XLA, it stays, and one line says so.
"""

from __future__ import annotations

import enum
import inspect
from typing import Any, Callable, TYPE_CHECKING

from gdp_grappler import method_wrapping
from gdp_grappler import stack_room

# Imported where it is used, because every program loads this module.
if TYPE_CHECKING:
  from gdp_grappler.plugin import settings as settings_lib

_AUTO = '_gdp_auto_xla'
_KERAS_3 = 'keras.src.trainers.trainer'


class Handling(enum.Enum):
  """The handling of XLA if Keras chose it.

  Attributes:
    KEPT: XLA compiles the model, and the model is not placed.
    COMPARED: `fit` is timed with XLA and placed, and the faster way stays.
    HELD_BACK: XLA does not compile the model, and the model is placed at once.
  """

  KEPT = enum.auto()
  COMPARED = enum.auto()
  HELD_BACK = enum.auto()


def handling(settings: settings_lib.Settings) -> Handling:
  """Returns the handling of a model that Keras compiles by XLA.

  The gain of XLA is not predicted. So XLA stays if steps are not timed, unless
  the user has decided on a placement.

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
  """Makes models of Keras 3 remember that their `jit_compile` was "auto".

  Keras keeps only the result of "auto". So the argument has to be recorded when
  a model is compiled, even if the option is switched on later or never.
  """
  import wrapt
  wrapt.register_post_import_hook(_wrap_compile, _KERAS_3)


def chosen_by_keras(model: Any) -> bool:
  """Whether Keras, and not the user, chose XLA for a model."""
  # A model that was never compiled resolves "auto" when it is first used.
  never_asked = not getattr(model, 'compiled', True)
  return bool(vars(model).get(_AUTO, never_asked) and model.jit_compile)


def _wrap_compile(module: Any) -> None:
  trainer = getattr(module, 'Trainer', None)
  if trainer is not None:
    method_wrapping.wrap(trainer, 'compile', _compile)
    method_wrapping.wrap(trainer, 'compile_from_config', _compile_from_config)


def _compile(stock: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
  """Compiles a model, and records whether Keras chooses XLA."""
  result = stock(self, *args, **kwargs)
  bound = inspect.signature(stock).bind(self, *args, **kwargs)
  vars(self)[_AUTO] = bound.arguments.get('jit_compile', 'auto') == 'auto'
  return result


def _compile_from_config(stock: Any, self: Any, *args: Any,
                         **kwargs: Any) -> Any:
  """Compiles a loaded or cloned model, and records that Keras chooses XLA.

  Keras stores the result of "auto". So a stored True does not tell whether
  Keras or the user chose XLA. In most programs Keras did.
  """
  result = stock(self, *args, **kwargs)
  vars(self)[_AUTO] = True
  return result


def watch_functions(tell: Callable[[str], None],
                    traced: Callable[[Any], None]) -> None:
  """Reports each `tf.function(jit_compile=True)` at its first trace.

  Args:
    tell: Called with the name of the function, before the trace.
    traced: Called with the function, after the trace and before it runs.
  """
  from tensorflow.python.eager.polymorphic_function import polymorphic_function

  from gdp_grappler.plugin import op_traces

  def initialize(stock: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
    if self._jit_compile:
      tell(self._name)
    # A trace with the option on has a deeper stack of Python functions.
    with op_traces.WithoutPackage():
      result = stack_room.call(stock, self, *args, **kwargs)
    if self._jit_compile:
      traced(self)
    return result

  method_wrapping.wrap(polymorphic_function.Function, '_initialize', initialize)

"""Wraps the factories of Keras' `fit`, `evaluate` and `predict` functions."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import sys
from typing import Any, Callable, Iterator

from gdp_grappler import method_wrapping
from gdp_grappler.plugin import current_call
from gdp_grappler.plugin import devices
from gdp_grappler.plugin import interrupts
from gdp_grappler.plugin import notices
from gdp_grappler.plugin import switch
from gdp_grappler.plugin import xla
from gdp_grappler.plugin.fitting import batch_methods
from gdp_grappler.plugin.fitting import batch_sizes

# Module and class of the objects that make train functions.
_TRAINERS = (('keras.src.backend.tensorflow.trainer', 'TensorFlowTrainer'),
             ('tf_keras.src.engine.training', 'Model'))
_KINDS = {'train': 'fit', 'test': 'evaluate', 'predict': 'predict'}
# Attribute of a model: its newest train function. A model that is compiled
# again forgets its train function, whose variables have to move back.
_LAST = '_gdp_train_function'

_makes_stock = contextvars.ContextVar('makes_stock', default=False)


@contextlib.contextmanager
def unwrapped() -> Iterator[None]:
  """In the context, this thread gets Keras' own functions, not wrapped ones.

  A function that is only traced must not take over the plan of the function
  that trains the model.
  """
  token = _makes_stock.set(True)
  try:
    yield
  finally:
    _makes_stock.reset(token)


@functools.cache
def install() -> None:
  """Wraps Keras 3 and tf_keras, now or when they are imported."""
  import wrapt
  for module, name in _TRAINERS:
    wrapt.register_post_import_hook(functools.partial(_wrap, name), module)
  batch_sizes.watch()
  xla.watch_functions(_tell_of_xla, _take_back_for_xla)


def _wrap(name: str, module: Any) -> None:
  for kind in _KINDS:
    _wrap_maker(getattr(module, name), kind)
  batch_methods.watch(getattr(module, name))


def _wrap_maker(cls: Any, kind: str) -> None:
  attribute = f'{kind}_function'

  def make(stock: Any, self: Any, force: bool = False) -> Any:
    if _makes_stock.get():
      return stock(self, force=force)
    before = getattr(self, attribute)
    stock(self, force=force)
    own = getattr(self, attribute)
    if hasattr(own, 'is_placed'):
      return own
    try:
      placeable = (functools.partial(_without_xla, self, stock, attribute)
                   if xla.chosen_by_keras(self) else None)
      made = _wrapped(self, kind, own, placeable)
      if kind == 'train':
        _warn_of_tables(self)
        _succeed(self, before, made)
    except Exception as error:
      if interrupts.is_of_program(error):
        raise
      _warn_of_failure(self, kind, error)
      made = own
    setattr(self, attribute, made)
    return made

  method_wrapping.wrap(cls, f'make_{kind}_function', make)


def _warn_of_failure(model: Any, kind: str, error: Exception) -> None:
  """Warns that only the pass will place a function of Keras."""
  notices.warn_once(
      f'{_KINDS[kind]} of "{model.name}": variables stay where they are, and '
      f'steps are not timed: preparing it failed with {type(error).__name__}: '
      f'{error}. Please report it.')


def _warn_of_tables(model: Any) -> None:
  """Warns about names in the option that no table has, if tables were made."""
  if model.built and switch.settings() is not None:
    from gdp_grappler.plugin.fitting import tables
    tables.warn_of_unused()


def _places() -> bool:
  """Whether the option is on, and there may be something to place."""
  settings = switch.settings()
  return settings is not None and devices.has_choice(settings)


def _succeed(model: Any, before: Any, made: Any) -> None:
  """Makes a new function take over the state of the function before."""
  if not hasattr(made, 'take_over'):
    return
  last = vars(model).get(_LAST)
  if isinstance(before, type(made)):
    made.take_over(before)
  elif last is not None and last.is_of(model):
    last.retire()
  # `setattr` of Keras would track the function as a part of the model.
  vars(model)[_LAST] = made


def _wrapped(model: Any, kind: str, function: Any,
             placeable: Callable[[], Any] | None) -> Any:
  # Imported here, because most programs import Keras but never use the option.
  from gdp_grappler.plugin.fitting import keras_function
  from gdp_grappler.plugin.fitting import single_steps
  from gdp_grappler.plugin.fitting import train_function
  scheduled = bool(getattr(model, '_cluster_coordinator', None))
  alone = (model.distribute_strategy.num_replicas_in_sync == 1 and
           not scheduled)
  what, eager = f'{_KINDS[kind]} of "{model.name}"', bool(model.run_eagerly)
  steps = single_steps.SingleSteps(model)
  if kind == 'train' and alone and not steps.have_to_loop:
    return train_function.TrainFunction(function, what, eager, steps, placeable)
  loops = kind == 'train' and alone
  return (single_steps.LoopFunction if loops else keras_function.KerasFunction)(
      function, what, eager, placeable,
      functools.partial(_is_trained_placed, model), scheduled, model)


def _is_trained_placed(model: Any) -> bool:
  last = vars(model).get(_LAST)
  if last is not None and last.is_of(model) and last.is_placed:
    return True
  # The step of another model may have moved layers that both models share.
  moves = _variable_moves()
  return moves is not None and moves.any_moved(model.variables)


def _variable_moves() -> Any:
  """Returns the module `variable_moves`; None if nothing has loaded it yet."""
  return sys.modules.get('gdp_grappler.plugin.fitting.variable_moves')


def _without_xla(model: Any, make: Callable[..., None], attribute: str) -> Any:
  """Returns Keras' function without XLA. The model keeps its own function."""
  settings = switch.settings()
  if settings and xla.handling(settings) is xla.Handling.HELD_BACK:
    notices.say_once(
        f'"{model.name}": runs without XLA, as with jit_compile=False, while '
        'gdp_placement is on: XLA would make each step one op, which cannot be '
        'placed')
  kept, has_xla = getattr(model, attribute), model._jit_compile
  model._jit_compile = False
  try:
    make(model, force=True)
    return getattr(model, attribute)
  finally:
    model._jit_compile = has_xla
    setattr(model, attribute, kept)


def _tell_of_xla(function: str) -> None:
  """Prints that a function is one op, because its user chose XLA."""
  call = current_call.current()
  if not _places() or getattr(call, 'is_compiled_by_keras', False):
    return
  notices.say_once(
      f'{current_call.title(function, call)}: left as it was: XLA '
      'compiles it to one op (jit_compile=True). To have it placed, give '
      'jit_compile=False to tf.function or Model.compile')
  if call is not None:
    call.was_told = True


def _take_back_for_xla(function: Any) -> None:
  """Moves the variables of a function back, because XLA compiles it.

  Args:
    function: A traced `tf.function` that XLA compiles.
  """
  call = current_call.current()
  if isinstance(call, current_call.LeftAlone):
    return
  from gdp_grappler.plugin.fitting import compiled_readers
  if not compiled_readers.record(function):
    return
  moves = _variable_moves()
  # Without the module no variable was moved, as in programs without the option.
  number = moves.move_back_for(
      compiled_readers.handles(function)) if moves is not None else 0
  if number:
    chosen = ('as Keras chose' if getattr(call, 'is_compiled_by_keras', False)
              else 'jit_compile=True')
    notices.say_once(f'{current_call.title(function._name, call)}: {number} '
                     'variables that were moved go back: XLA compiles it for '
                     f'one device ({chosen})')

"""Wraps the functions that Keras calls for a step of training or prediction."""

from __future__ import annotations

from typing import Any, Callable, TYPE_CHECKING

import tensorflow as tf
from tensorflow.python.eager import context

from gdp_grappler import environment
from gdp_grappler.graph.sources import captures
from gdp_grappler.graph.sources import execution
from gdp_grappler.plugin import batches
from gdp_grappler.plugin import current_call
from gdp_grappler.plugin import devices
from gdp_grappler.plugin import notices
from gdp_grappler.plugin import op_traces
from gdp_grappler.plugin import option
from gdp_grappler.plugin import outcome
from gdp_grappler.plugin import settings as settings_lib
from gdp_grappler.plugin import switch
from gdp_grappler.plugin import xla
from gdp_grappler.plugin.fitting import batch_methods
from gdp_grappler.plugin.fitting import batch_sizes
from gdp_grappler.plugin.fitting import compiled_readers

if TYPE_CHECKING:
  from gdp_grappler.plugin import library

# Stands for an option that no call has read yet: a value that no option equals,
# and the number of times that the option was switched off. So the next call
# reads the option.
UNSEEN: tuple[Any, int] = object(), 0
_LOCAL = '/job:localhost/'
# TensorFlow's option that switches Grappler off.
_NO_GRAPPLER = 'disable_meta_optimizer'


class KerasFunction(current_call.RunningCall):
  """A function of Keras whose graphs are placed in the usual way.

  While the option is off, a call is a call of Keras' function. The object has
  all attributes of Keras' function. If Keras chooses XLA by itself, a second
  function without XLA is made, which can be placed.
  """

  def __init__(self, function: Callable[..., Any], what: str, eager: bool,
               make_placeable: Callable[[], Any] | None = None,
               is_trained_placed: Callable[[], bool] = lambda: False,
               scheduled: bool = False, model: Any = None) -> None:
    """Wraps a function.

    Args:
      function: The function of Keras.
      what: Name of the function for users, such as 'fit of "sequential"'. In
        calls of `train_on_batch`, lines name this method instead.
      eager: Whether the function runs op by op.
      make_placeable: Makes the same function without XLA. None means that Keras
        does not choose XLA by itself.
      is_trained_placed: Returns whether the model's steps of `fit` run placed.
      scheduled: Whether a call only schedules the function on workers, which
        run it later. Then the pass itself prints the line for the user.
      model: The model whose function it is.
    """
    super().__init__(what)
    self._model = model
    self._scheduled = scheduled
    self._stock = function
    # The function that is placed.
    self._function = function
    self._make_placeable = make_placeable
    self._is_trained_placed = is_trained_placed
    # Handling of Keras' choice of XLA; None if Keras did not choose XLA.
    self._xla: xla.Handling | None = None
    self._asked_what = what
    self._eager = eager
    self._seen = UNSEEN
    self._settings: settings_lib.Settings | None = None
    self._batch_size: int | None = None

  @property
  def stock(self) -> Callable[..., Any]:
    """Keras' own function."""
    return self._stock

  def __call__(self, *args: Any) -> Any:
    with compiled_readers.steps_of(self._model), op_traces.WithoutPackage():
      return self._called(*args)

  def _called(self, *args: Any) -> Any:
    self.what = batch_methods.named(self._asked_what)
    value, times_off = switch.value(context.context()), switch.times_off()
    # The option may have been off between two calls with the same value.
    if value is not self._seen[0] or times_off != self._seen[1]:
      # If the library is missing, a line has said so.
      works = option.connect()
      self._switch(_with_choice(value) if works else None)
      self._seen = value, times_off
      self._batch_size = None
    if self._settings is None:
      return self._unplaced(*args)
    if self._batch_size is None:  # Also if no earlier call knew the size.
      self._batch_size = batch_sizes.size_of(args[0])
    self.waiting_since = None
    with batches.assumed(self._batch_size), execution.synchronously():
      result = current_call.run(self, self._run, *args)
    if not self.was_told:
      self._explain()
    return result

  def task(self, query: library.Query) -> current_call.Optimize | None:
    """Leaves a loop alone whose steps XLA compiles, as Keras chose."""
    if self._function is self._stock:
      return None
    is_stock = query.graph_id in captures.concrete_functions(self._stock)
    return outcome.leave_alone if is_stock else None

  def __getattr__(self, name: str) -> Any:
    return getattr(self._function, name)

  @property
  def is_compiled_by_keras(self) -> bool:
    """Whether Keras chooses XLA by itself."""
    return self._make_placeable is not None

  def _unplaced(self, *args: Any) -> Any:
    """Calls the function while the option is off. Graphs may be captured."""
    if not environment.capture_directory():
      return self._stock(*args)
    return current_call.run(current_call.Named(self.what), self._stock, *args)

  def _run(self, *args: Any) -> Any:
    """Calls the function with XLA or the function that can be placed.

    Only steps of `fit` are compared with XLA. Other functions run without XLA
    if the steps of `fit` run placed.
    """
    return (self._stock if self._stays_with_xla() else self._function)(*args)

  def _stays_with_xla(self) -> bool:
    return (self._xla is xla.Handling.KEPT or
            self._xla is xla.Handling.COMPARED and
            not self._is_trained_placed())

  def _switch(self, settings: settings_lib.Settings | None) -> None:
    """Takes over an option that was switched on or off, or changed."""
    self._settings = settings
    self.was_told = False
    self._choose_function()

  def _choose_function(self) -> None:
    """Chooses the function without XLA, unless XLA is kept."""
    if self._settings is None or self._make_placeable is None:
      self._xla = None
      return
    self._xla = xla.handling(self._settings)
    if self._xla is not xla.Handling.KEPT and self._function is self._stock:
      self._function = self._make_placeable()

  def _explain(self) -> None:
    """Prints why the graph is as it was, if the pass printed no line."""
    self.was_told = True
    scope = context.context().device_name
    if scope and not scope.startswith(_LOCAL):
      notices.say(f'{self.what}: under tf.device("{scope}") that server runs '
                  'it as a whole, and places it if gdp-grappler is installed '
                  'there; variables stay. To have them moved, make the model '
                  'there and call fit outside (connect_to_cluster: '
                  'make_master_device_default=False)')
    elif self._eager:
      notices.say(f'{self.what}: left as it was: it runs op by op '
                  '(run_eagerly=True), and only graphs are placed')
    elif tf.config.functions_run_eagerly():
      notices.say(f'{self.what}: left as it was: it runs op by op '
                  '(tf.config.run_functions_eagerly), and only graphs are '
                  'placed')
    elif tf.config.optimizer.get_experimental_options().get(_NO_GRAPPLER):
      notices.say(
          f'{self.what}: left as it was: Grappler calls the plugin, and '
          f'the option {_NO_GRAPPLER} switches Grappler off')
    elif self._stays_with_xla():
      notices.say(f'{self.what}: left as it was: XLA compiles it, as Keras '
                  f'chose{self._why_xla_stays()}')
    elif not self._scheduled and not captures.is_compiled(self._function):
      notices.say(f'{self.what}: left as it was: {self._why_unseen()}')

  def _why_xla_stays(self) -> str:
    assert self._settings is not None
    if self._xla is xla.Handling.COMPARED:
      return '; it is placed if fit has measured that placed steps are faster'
    if self._settings.xla == settings_lib.XLA_KEPT:
      return " ('xla': 'keep')"
    return (
        '; placed steps may be slower, and steps are timed only if the guard '
        'is on')

  def _why_unseen(self) -> str:
    """Returns why the pass printed no line."""
    return (f'its graph has fewer than {self._minimum()} ops and no pin'
            f'{self._or_no_layer()}, or was seen before and keeps its '
            'placement, or Grappler failed before it called the plugin '
            '(TensorFlow has then logged an error)')

  def _or_no_layer(self) -> str:
    settings = self._settings or settings_lib.Settings()
    return ', no layer of the map' if isinstance(settings.plan, tuple) else ''

  def _minimum(self) -> int:
    return (self._settings or settings_lib.Settings()).min_ops


def _with_choice(option: Any) -> settings_lib.Settings | None:
  """Returns the settings, or None after a line if there is nothing to place."""
  settings = settings_lib.from_option(option)
  if settings is None or devices.tell_if_no_choice(settings):
    return None
  return settings

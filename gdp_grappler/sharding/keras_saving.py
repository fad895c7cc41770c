"""Makes Keras 3 save and load the parts of a table as one weight.

`get_weights` and `set_weights`, files of models and weights, and files of
optimizers treat the table as one variable. So a table that was saved in parts
can be loaded whole, and the other way round.
"""

from __future__ import annotations

import functools
from typing import Any

from gdp_grappler.sharding import table as table_lib
from gdp_grappler.sharding import whole_weights

_MARK, _ADDS_SLOT = '_gdp_joins', '_gdp_adds_slot'
_OPTIMIZERS = 'keras.src.optimizers.base_optimizer'
_TRACKED = 'keras.src.backend.tensorflow.optimizer'
_LAYERS = 'keras.src.layers.layer'
_H5 = 'keras.src.legacy.saving.legacy_h5_format'
# Optimizers whose updates depend on the whole variable: by its norm, or by its
# rows and columns.
_NOT_BY_ELEMENT = ('Lamb', 'Adafactor', 'Muon')


@functools.cache
def install() -> None:
  """Wraps the methods that read and write weights and slots."""
  import wrapt
  wrapt.register_post_import_hook(_wrap_layers, _LAYERS)
  wrapt.register_post_import_hook(_wrap_optimizers, _OPTIMIZERS)
  wrapt.register_post_import_hook(_wrap_tracking, _TRACKED)
  wrapt.register_post_import_hook(
      functools.partial(whole_weights.wrap_h5, table_lib.joined), _H5)


def _wrap_layers(module: Any) -> None:
  cls = module.Layer
  if _MARK in vars(cls):
    return
  stock_get, stock_set = cls.get_weights, cls.set_weights

  @functools.wraps(stock_get)
  def get_weights(self: Any) -> list[Any]:
    if not _has_parts(self.weights):
      return stock_get(self)
    return [weight.numpy() for weight in table_lib.joined(self.weights)]

  @functools.wraps(stock_set)
  def set_weights(self: Any, weights: Any) -> None:
    own = self.weights
    if not _has_parts(own):
      stock_set(self, weights)
      return
    whole_weights.assign(self.name, table_lib.joined(own), weights)

  cls.get_weights, cls.set_weights = get_weights, set_weights
  setattr(cls, _MARK, True)


def _wrap_optimizers(module: Any) -> None:
  cls = module.BaseOptimizer
  if _MARK not in vars(cls):
    _wrap_variables(cls)
    _wrap_files(cls)
    setattr(cls, _MARK, True)


def _wrap_variables(cls: Any) -> None:
  """Lets optimizers know which of their variables belong to a part."""
  # These modules need TensorFlow, which Keras has loaded by now.
  from gdp_grappler.sharding import factored_slots
  from gdp_grappler.sharding import keras_checkpoints
  stock_add, stock_build = cls.add_variable_from_reference, cls.build
  stock_add_own = cls.add_variable

  @functools.wraps(stock_add_own)
  def add_own(self: Any, *args: Any, **how: Any) -> Any:
    result = stock_add_own(self, *args, **how)
    # It is not known yet whether a slot is for a part.
    if _ADDS_SLOT not in vars(self):
      keras_checkpoints.release(self)
    return result

  @functools.wraps(stock_add)
  def add(self: Any, reference_variable: Any, name: str | None = None,
          initializer: Any = 'zeros') -> Any:
    vars(self)[_ADDS_SLOT] = True
    try:
      result = stock_add(self, reference_variable, name=name,
                         initializer=initializer)
    finally:
      del vars(self)[_ADDS_SLOT]
    part = table_lib.part_of(reference_variable)
    if part is not None:
      table_lib.mark(result,
                     table_lib.Part(part.table, part.index, name or 'var'))
    keras_checkpoints.release(self)
    return result

  @functools.wraps(stock_build)
  def build(self: Any, variables: Any) -> Any:
    if not self.built:
      factored_slots.check_waiting(self, variables, table_lib.joined)
    if not self.built and _has_parts(variables):
      whole_weights.warn_of(self, _NOT_BY_ELEMENT)
      keras_checkpoints.hold(self)
    return stock_build(self, variables)

  cls.add_variable_from_reference, cls.build = add, build
  cls.add_variable = add_own


def _wrap_files(cls: Any) -> None:
  """Lets optimizers save and load the slots of whole tables."""
  stock_save, stock_load = cls.save_own_variables, cls.load_own_variables

  @functools.wraps(stock_save)
  def save(self: Any, store: Any) -> None:
    for index, variable in enumerate(table_lib.joined(self.variables)):
      store[str(index)] = variable.numpy()

  @functools.wraps(stock_load)
  def load(self: Any, store: Any) -> None:
    own = table_lib.joined(self.variables)
    if not _has_parts(self.variables) or len(store.keys()) != len(own):
      stock_load(self, store)
      return
    for index, variable in enumerate(own):
      variable.assign(store[str(index)][...])

  cls.save_own_variables, cls.load_own_variables = save, load


def _wrap_tracking(module: Any) -> None:
  from gdp_grappler.sharding import factored_slots
  from gdp_grappler.sharding import keras_checkpoints
  keras_checkpoints.wrap_optimizer(module.TFOptimizer)
  factored_slots.wrap(module.TFOptimizer, table_lib.joined)


def _has_parts(variables: Any) -> bool:
  return any(table_lib.part_of(v) is not None for v in variables)

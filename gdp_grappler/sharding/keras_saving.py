"""Makes Keras 3 save and load the parts of a table as one weight.

`get_weights` and `set_weights`, files of models and weights, and files of
optimizers treat the table as one variable. So a table that was saved in parts
can be loaded whole, and the other way round.
"""

from __future__ import annotations

import functools
from typing import Any

from gdp_grappler import method_wrapping
from gdp_grappler.sharding import table as table_lib
from gdp_grappler.sharding import whole_weights

_ADDS_SLOT = '_gdp_adds_slot'
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
  whole_weights.wrap_weights(table_lib.has_parts, table_lib.joined,
                             module.Layer)


def _wrap_optimizers(module: Any) -> None:
  for name, wrapper in (('add_variable', _add_variable),
                        ('add_variable_from_reference', _add_slot),
                        ('build', _build), ('save_own_variables', _save),
                        ('load_own_variables', _load)):
    method_wrapping.wrap(module.BaseOptimizer, name, wrapper)


def _add_variable(stock: Any, self: Any, *args: Any, **how: Any) -> Any:
  from gdp_grappler.sharding import keras_checkpoints
  result = stock(self, *args, **how)
  # While a slot is added, it is not marked yet as the slot of a part. So
  # `_add_slot` restores it.
  if _ADDS_SLOT not in vars(self):
    keras_checkpoints.release(self)
  return result


def _add_slot(stock: Any, self: Any, reference_variable: Any,
              name: str | None = None, initializer: Any = 'zeros') -> Any:
  """Adds a slot, and records the part of a table that it belongs to."""
  from gdp_grappler.sharding import keras_checkpoints
  vars(self)[_ADDS_SLOT] = True
  try:
    result = stock(self, reference_variable, name=name, initializer=initializer)
  finally:
    del vars(self)[_ADDS_SLOT]
  part = table_lib.part_of(reference_variable)
  if part is not None:
    table_lib.mark(result, table_lib.Part(part.table, part.index, name or
                                          'var'))
  keras_checkpoints.release(self)
  return result


def _build(stock: Any, self: Any, variables: Any) -> Any:
  # These modules need TensorFlow, which Keras has loaded by now.
  from gdp_grappler.sharding import factored_slots
  from gdp_grappler.sharding import keras_checkpoints
  if not self.built:
    factored_slots.check_waiting(self, variables, table_lib.joined)
  if not self.built and table_lib.has_parts(variables):
    whole_weights.warn_of(self, _NOT_BY_ELEMENT)
    keras_checkpoints.hold(self)
  return stock(self, variables)


def _save(stock: Any, self: Any, store: Any) -> None:
  """Saves the slots of whole tables."""
  del stock
  for index, variable in enumerate(table_lib.joined(self.variables)):
    store[str(index)] = variable.numpy()


def _load(stock: Any, self: Any, store: Any) -> None:
  own = table_lib.joined(self.variables)
  if not table_lib.has_parts(self.variables) or len(store.keys()) != len(own):
    stock(self, store)
    return
  for index, variable in enumerate(own):
    variable.assign(store[str(index)][...])


def _wrap_tracking(module: Any) -> None:
  from gdp_grappler.sharding import factored_slots
  from gdp_grappler.sharding import keras_checkpoints
  keras_checkpoints.wrap_optimizer(module.TFOptimizer)
  factored_slots.wrap(module.TFOptimizer, table_lib.joined)

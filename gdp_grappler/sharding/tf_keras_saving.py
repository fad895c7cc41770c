"""Makes tf_keras save and load the parts of a table as one weight.

`get_weights` and `set_weights`, files and checkpoints treat the table as one
variable. tf_keras' own code for parameter servers is used if it is enough. But
that code knows no columns, and does not join weights of layers for files.
"""

from __future__ import annotations

import functools
from typing import Any

import tensorflow as tf

from gdp_grappler.sharding import tf_keras_optimizers
from gdp_grappler.sharding import tf_keras_table
from gdp_grappler.sharding import whole_weights

_MARK = '_gdp_joins'


@functools.cache
def install() -> None:
  """Wraps the methods that read and write weights and slots."""
  import wrapt
  for wrap, module in ((_wrap_layers, 'engine.base_layer'),
                       (functools.partial(whole_weights.wrap_h5,
                                          tf_keras_table.joined),
                        'saving.legacy.hdf5_format'), (_wrap_exports,
                                                       'export.export_lib')):
    wrapt.register_post_import_hook(wrap, f'tf_keras.src.{module}')
  tf_keras_optimizers.install()


def _wrap_layers(module: Any) -> None:
  cls = module.Layer
  if _MARK in vars(cls):
    return
  stock_get, stock_set = cls.get_weights, cls.set_weights
  stock_save, stock_load = cls.save_own_variables, cls.load_own_variables

  @functools.wraps(stock_get)
  def get_weights(self: Any) -> list[Any]:
    if not tf_keras_table.has_parts(self.weights):
      return stock_get(self)
    return [weight.numpy() for weight in tf_keras_table.joined(self.weights)]

  @functools.wraps(stock_set)
  def set_weights(self: Any, weights: Any) -> None:
    if not tf_keras_table.has_parts(self.weights):
      stock_set(self, weights)
      return
    whole_weights.assign(self.name, tf_keras_table.joined(self.weights),
                         weights)

  @functools.wraps(stock_save)
  def save(self: Any, store: Any) -> None:
    own = self._trainable_weights + self._non_trainable_weights
    for index, variable in enumerate(tf_keras_table.joined(own)):
      store[str(index)] = variable.numpy()

  @functools.wraps(stock_load)
  def load(self: Any, store: Any) -> None:
    own = self._trainable_weights + self._non_trainable_weights
    if not tf_keras_table.has_parts(own):
      stock_load(self, store)
      return
    whole_weights.assign(self.name, tf_keras_table.joined(own),
                         [store[str(i)][...] for i in range(len(store.keys()))])

  cls.get_weights, cls.set_weights = get_weights, set_weights
  cls.save_own_variables, cls.load_own_variables = save, load
  setattr(cls, _MARK, True)


def _wrap_exports(module: Any) -> None:
  cls = module.ExportArchive
  if _MARK in vars(cls):
    return
  stock = cls.track

  @tf.__internal__.tracking.no_automatic_dependency_tracking
  @functools.wraps(stock)
  def track(self: Any, resource: Any) -> None:
    if not tf_keras_table.has_parts(getattr(resource, 'variables', ())):
      stock(self, resource)
      return
    self._tracked = [*getattr(self, '_tracked', ()), resource]
    for name in ('variables', 'trainable_variables', 'non_trainable_variables'):
      getattr(self, name).extend(tf_keras_table.joined(getattr(resource, name)))

  cls.track = track
  setattr(cls, _MARK, True)

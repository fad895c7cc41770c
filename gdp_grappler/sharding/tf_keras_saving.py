"""Makes tf_keras save and load the parts of a table as one weight.

`get_weights` and `set_weights`, files and checkpoints treat the table as one
variable. This module uses tf_keras' own code for parameter servers where that
code is enough. But that code joins parts by rows only, and it does not join the
weights of layers for files.
"""

from __future__ import annotations

import functools
from typing import Any

import tensorflow as tf

from gdp_grappler import method_wrapping
from gdp_grappler.sharding import tf_keras_optimizers
from gdp_grappler.sharding import tf_keras_table
from gdp_grappler.sharding import whole_weights


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
  whole_weights.wrap_weights(tf_keras_table.has_parts, tf_keras_table.joined,
                             module.Layer)
  method_wrapping.wrap(module.Layer, 'save_own_variables', _save)
  method_wrapping.wrap(module.Layer, 'load_own_variables', _load)


def _save(stock: Any, self: Any, store: Any) -> None:
  del stock
  own = self._trainable_weights + self._non_trainable_weights
  for index, variable in enumerate(tf_keras_table.joined(own)):
    store[str(index)] = variable.numpy()


def _load(stock: Any, self: Any, store: Any) -> None:
  own = self._trainable_weights + self._non_trainable_weights
  if not tf_keras_table.has_parts(own):
    stock(self, store)
    return
  whole_weights.assign(self.name, tf_keras_table.joined(own),
                       [store[str(i)][...] for i in range(len(store.keys()))])


def _wrap_exports(module: Any) -> None:
  method_wrapping.wrap(module.ExportArchive, 'track', _track)


def _track(stock: Any, self: Any, resource: Any) -> None:
  """Tracks an object. A table is one variable of the archive."""
  if not tf_keras_table.has_parts(getattr(resource, 'variables', ())):
    stock(self, resource)
    return
  _track_whole(self, resource)


@tf.__internal__.tracking.no_automatic_dependency_tracking
def _track_whole(archive: Any, resource: Any) -> None:
  archive._tracked = [*getattr(archive, '_tracked', ()), resource]
  for name in ('variables', 'trainable_variables', 'non_trainable_variables'):
    getattr(archive, name).extend(tf_keras_table.joined(getattr(resource,
                                                                name)))

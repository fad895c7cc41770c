"""Layers of Keras 3 whose weight may be in parts.

In Keras 3, `build` of a layer makes the weight by `add_weight`, and `call` uses
the weight. A table replaces the variable in both. Other code that reads the
weight gets the whole weight as a new tensor.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, Sequence

from gdp_grappler import method_wrapping
from gdp_grappler.sharding import choice
from gdp_grappler.sharding import initial_value
from gdp_grappler.sharding import keras_saving
from gdp_grappler.sharding import table as table_lib
from gdp_grappler.sharding import wanted

_LAYERS = 'keras.src.layers.core'
# Class, weight, its attribute, and the axis of the split.
_WEIGHTS = {
    'embedding': ('Embedding', 'embeddings', '_embeddings', 0),
    'dense': ('Dense', 'kernel', '_kernel', 1)
}


@functools.cache
def install() -> None:
  """Makes layers of Keras 3 ask in how many parts they make their weights."""
  import wrapt
  for module in _WEIGHTS:
    wrapt.register_post_import_hook(functools.partial(_wrap, module),
                                    f'{_LAYERS}.{module}')
  wrapt.register_post_import_hook(_wrap_reversible,
                                  f'{_LAYERS}.reversible_embedding')


def _wrap(which: str, module: Any) -> None:
  name, weight, attribute, axis = _WEIGHTS[which]
  cls = getattr(module, name)
  by_parts = _rows if which == 'embedding' else _products
  of_keras = cls.add_weight

  def call(stock: Any, self: Any, inputs: Any, *args: Any, **how: Any) -> Any:
    table = getattr(self, attribute, None)
    if isinstance(table, table_lib.Table) and not self.lora_enabled:
      return by_parts(self, table, inputs, *args, **how)
    return stock(self, inputs, *args, **how)

  def sizes(shape: Sequence[int], count: int) -> tuple[int, ...]:
    return choice.sizes(shape[axis], count)

  def add_weight(stock: Any, self: Any, *args: Any, **how: Any) -> Any:
    if args or how.get('name') != weight:
      return stock(self, *args, **how)
    is_known = any(
        method_wrapping.is_wrapped(type(self), 'call', known)
        for known in (call, _call_reversible))
    count = wanted.parts(self, how,
                         {'call': is_known, 'add_weight': stock is of_keras},
                         sizes)
    if count < 2:
      return stock(self, **how)
    keras_saving.install()
    # The module needs TensorFlow, which Keras has loaded by now.
    from gdp_grappler.sharding import keras_checkpoints
    keras_checkpoints.wrap_layer(cls, attribute)
    table = _in_parts(functools.partial(stock, self), how, axis,
                      sizes(how['shape'], count))
    keras_checkpoints.restore_layer(self, attribute, table)
    return table

  def check(stock: Any, self: Any, store: Any) -> None:
    own = self._trainable_variables + self._non_trainable_variables
    if (not isinstance(getattr(self, attribute, None), table_lib.Table) or
        len(store.keys()) != len(table_lib.joined(own))):
      stock(self, store)

  method_wrapping.wrap(cls, 'call', call)
  method_wrapping.wrap(cls, 'add_weight', add_weight)
  method_wrapping.wrap(cls, '_check_load_own_variables', check)


def _wrap_reversible(module: Any) -> None:
  method_wrapping.wrap(module.ReversibleEmbedding, 'call', _call_reversible)


def _call_reversible(stock: Any, self: Any, inputs: Any,
                     reverse: bool = False) -> Any:
  """Looks rows up or, if `reverse`, multiplies by the parts of the table."""
  table = getattr(self, '_embeddings', None)
  if (reverse and self.tie_weights and not self.lora_enabled and
      isinstance(table, table_lib.Table)):
    return _reverse(self, table, inputs)
  return stock(self, inputs, reverse=reverse)


def _in_parts(add_weight: Callable[..., Any], how: dict[str, Any], axis: int,
              sizes: tuple[int, ...]) -> table_lib.Table:
  """Makes a weight as several variables, and returns their table."""
  name = how.pop('name')
  shape, whole = list(how.pop('shape')), how.pop('initializer', None)
  initial = initial_value.InitialValue(_initializer(whole), shape, axis, sizes)
  parts = []
  for index, size in enumerate(sizes):
    shape[axis] = size
    parts.append(
        add_weight(name=f'{name}{choice.PART}{index}', shape=tuple(shape),
                   initializer=functools.partial(initial.part, index), **how))
  table = table_lib.Table(name, axis, parts)
  for index, part in enumerate(parts):
    table_lib.mark(part, table_lib.Part(table, index))
  return table


def _initializer(given: Any) -> Callable[..., Any]:
  import keras
  return keras.initializers.get(given or 'glorot_uniform')


def _rows(layer: Any, table: table_lib.Table, inputs: Any) -> Any:
  """Computes `Embedding.call` with a table."""
  import keras
  import tensorflow as tf

  from gdp_grappler.sharding import looking_up
  if inputs.dtype not in ('int32', 'int64', tf.int32, tf.int64):
    inputs = keras.ops.cast(inputs, 'int32')
  if isinstance(inputs, tf.SparseTensor):
    inputs = tf.sparse.to_dense(inputs)
  length, each = table.shape[0], table.sizes[0]
  parts = [part.value for part in table.parts]

  def look_up(ids: Any) -> Any:
    # Negative numbers count from the end, as in Keras.
    return looking_up.rows(parts, each, tf.where(ids < 0, ids + length, ids))

  found = (tf.ragged.map_flat_values(look_up, inputs) if isinstance(
      inputs, tf.RaggedTensor) else look_up(tf.convert_to_tensor(inputs)))
  return keras.ops.cast(found, dtype=layer.compute_dtype)


def _products(layer: Any, table: table_lib.Table, inputs: Any,
              training: Any = None) -> Any:
  """Computes `Dense.call` with a table."""
  del training
  import keras
  result = keras.ops.concatenate(
      [keras.ops.matmul(inputs, part) for part in table.parts], axis=-1)
  if layer.bias is not None:
    result = keras.ops.add(result, layer.bias)
  return result if layer.activation is None else layer.activation(result)


def _reverse(layer: Any, table: table_lib.Table, inputs: Any) -> Any:
  """Computes `ReversibleEmbedding.call` in reverse, with tied weights."""
  from keras import ops
  dtype = layer.reverse_dtype
  inputs = inputs if dtype is None else ops.cast(inputs, dtype)
  logits = []
  for part in table.parts:
    kernel = ops.transpose(part)
    kernel = kernel if dtype is None else ops.cast(kernel, dtype)
    logits.append(ops.matmul(inputs, kernel))
  result = ops.concatenate(logits, axis=-1)
  cap = layer.logit_soft_cap
  return result if cap is None else ops.multiply(
      ops.tanh(ops.divide(result, cap)), cap)

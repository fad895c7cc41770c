"""Layers of tf_keras whose weight may be in parts.

`add_weight` of tf_keras takes a function that makes the variable. The function
here makes several variables, in a container that tf_keras and TensorFlow know
from parameter servers. So `Embedding` needs no change. `Dense` needs a `call`
that multiplies by each part.
"""

from __future__ import annotations

import functools
import sys
import types
from typing import Any, Sequence

from gdp_grappler import method_wrapping
from gdp_grappler.sharding import choice
from gdp_grappler.sharding import initial_value
from gdp_grappler.sharding import wanted

_LAYERS = 'tf_keras.src.layers.core'
# Class, weight, and the axis of the split.
_WEIGHTS = {
    'embedding': ('Embedding', 'embeddings', 0), 'dense': ('Dense', 'kernel', 1)
}


@functools.cache
def install() -> None:
  """Makes layers of tf_keras ask in how many parts they make their weights."""
  import wrapt
  for module in _WEIGHTS:
    wrapt.register_post_import_hook(functools.partial(_wrap, module),
                                    f'{_LAYERS}.{module}')


def _wrap(which: str, module: Any) -> None:
  name, weight, axis = _WEIGHTS[which]
  cls = getattr(module, name)
  of_keras = cls.add_weight

  def call(stock: Any, self: Any, inputs: Any) -> Any:
    from gdp_grappler.sharding import tf_keras_table
    # A property of a subclass may draw random numbers, so it is not read here.
    table = vars(self).get(weight)
    if weight == 'kernel' and isinstance(table, tf_keras_table.Table):
      return _products(self, table, inputs, stock)
    return stock(self, inputs)

  def sizes(shape: Sequence[int], count: int) -> tuple[int, ...]:
    from gdp_grappler.sharding import tf_keras_table
    of = tf_keras_table.sizes if axis == 0 else choice.sizes
    return of(int(shape[axis]), count)

  # As in tf_keras, only the name may be given without a keyword.
  def add_weight(stock: Any, self: Any, *args: Any, **how: Any) -> Any:
    if len(args) == 1:
      return add_weight(stock, self, name=args[0], **how)
    if args or how.get('name') != weight or 'getter' in how:
      return stock(self, *args, **how)
    count = wanted.parts(
        self, how, {
            'call': method_wrapping.is_wrapped(type(self), 'call', call),
            'add_weight': stock is of_keras
        }, sizes)
    if count < 2:
      return stock(self, **how)
    from gdp_grappler.sharding import tf_keras_saving
    tf_keras_saving.install()
    # A variable that casts itself cannot be a part; `_products` casts parts.
    how['experimental_autocast'] = False
    getter = functools.partial(_in_parts, axis, sizes(how['shape'], count))
    return stock(self, getter=getter, **how)

  method_wrapping.wrap(cls, 'call', call)
  method_wrapping.wrap(cls, 'add_weight', add_weight)


def _in_parts(axis: int, sizes: tuple[int, ...], *, name: str, shape: Any,
              initializer: Any, **how: Any) -> Any:
  """Makes a weight as several variables; a getter for `add_weight`."""
  from gdp_grappler.sharding import tf_keras_table
  # tf_keras has imported this module, because it is adding a weight.
  make_variable = sys.modules[
      'tf_keras.src.engine.base_layer_utils'].make_variable
  shape = list(map(int, shape))
  initial = initial_value.InitialValue(initializer, shape, axis, sizes)
  parts = []
  for index, size in enumerate(sizes):
    shape[axis] = size
    parts.append(
        make_variable(name=f'{name}{choice.PART}{index}', shape=tuple(shape),
                      initializer=functools.partial(initial.part,
                                                    index), **how))
  return tf_keras_table.Table(parts, axis)


def _products(layer: Any, table: Any, inputs: Any, stock: Any) -> Any:
  """Computes `Dense.call` with one matrix product per part."""
  import tensorflow as tf
  dtype = layer._compute_dtype_object
  found = [
      stock(
          types.SimpleNamespace(kernel=tf.cast(part, dtype), use_bias=False,
                                activation=None, _compute_dtype_object=dtype),
          inputs) for part in table.variables
  ]
  ragged = found[0] if isinstance(found[0], tf.RaggedTensor) else None
  if ragged is not None:
    found = [part.flat_values for part in found]
  result = tf.concat(found, -1)
  if layer.use_bias:
    result = tf.nn.bias_add(result, layer.bias)
  if layer.activation is not None:
    result = layer.activation(result)
  return result if ragged is None else ragged.with_flat_values(result)

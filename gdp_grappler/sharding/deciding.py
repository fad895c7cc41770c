"""Who says in how many parts a table is made.

A scope of the user comes first, the innermost before the others; then what the
program was switched to as a whole.
"""

from __future__ import annotations

import contextlib
import threading
from typing import Any, Callable, Mapping

from gdp_grappler.sharding import choice

# Name of a layer, shape of the table, bytes of an element, whether it can be
# split -> number of parts; 0 for no opinion, 1 for the whole.
Decider = Callable[[str, tuple[int, ...], int, bool], int]


class _Scopes(threading.local):

  def __init__(self) -> None:
    super().__init__()
    self.stack: list[Decider] = []


_scopes = _Scopes()
_of_program: list[Decider] = []


def decide_by(decider: Decider) -> None:
  """Lets somebody decide for the whole program, where no scope does."""
  _of_program[:] = [decider]


def parts(layer: str, shape: tuple[int, ...], itemsize: int,
          can_be_split: bool) -> int:
  """In how many parts a table is wanted; 1 for the whole.

  Args:
    layer: Its layer's name.
    shape: Of the table.
    itemsize: Bytes of an element.
    can_be_split: Whether it can be in parts; who has named it wants them all
      the same, and is told.
  """
  for decider in [*reversed(_scopes.stack), *_of_program]:
    count = decider(layer, shape, itemsize, can_be_split)
    if count:
      return count
  return 1


class split_tables(contextlib.AbstractContextManager[Any]):
  """Layers built inside have their tables in parts, each a variable.

  For an embedding, or a last layer, that no device can hold: parts are
  variables like others, with their own gradients and slots, and may be placed
  anywhere. `Embedding` and `ReversibleEmbedding` are split by rows, `Dense` by
  units, in Keras 3 on TensorFlow and in tf_keras. Weights are saved, loaded and
  got as whole ones; so is what optimizers keep. Works with the option off, too.

    with gdp_grappler.split_tables({'words': 4}):
      words = keras.layers.Embedding(50_000_000, 128, name='words')
      model = keras.Sequential([keras.Input((64,), dtype='int32'), words, ...])

  A layer is built when it is first called or when its model knows its inputs.

  Raises:
    GdpError: when a layer is built that is named but cannot be split, such as
      one whose constraint looks at the whole table.
  """

  def __init__(self, tables: Mapping[str, int]) -> None:
    """Creates the scope.

    Args:
      tables: Names of layers, or patterns of them, with the number of parts.

    Raises:
      GdpError: it is not such a mapping.
    """
    self._chosen = choice.checked(tables)

  def __enter__(self) -> None:
    # It wraps Keras, which most programs need not.
    from gdp_grappler.sharding import keras_layers
    keras_layers.install()
    _scopes.stack.append(self._decide)

  def __exit__(self, *exception: Any) -> None:
    _scopes.stack.remove(self._decide)

  def _decide(self, layer: str, shape: tuple[int, ...], itemsize: int,
              can_be_split: bool) -> int:
    del shape, itemsize, can_be_split
    return choice.of_layer(self._chosen, layer)

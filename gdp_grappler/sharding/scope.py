"""`gdp_grappler.split_tables`: makes tables in parts, as a program requests."""

from __future__ import annotations

import contextlib
import fnmatch
from typing import Any, Mapping, Sequence
import warnings

from gdp_grappler import errors
from gdp_grappler import suggestions
from gdp_grappler.sharding import choice
from gdp_grappler.sharding import deciding
from gdp_grappler.sharding import keras_layers
from gdp_grappler.sharding import tf_keras_layers


class split_tables(contextlib.AbstractContextManager[Any]):
  """In this scope, layers make tables in parts, and each part is a variable.

  Use it for an embedding or a last layer that no device can hold. Parts are
  variables with their own gradients and slots, and may have different devices.
  `Embedding` and `ReversibleEmbedding` are split by rows, `Dense` by units, in
  Keras 3 on TensorFlow and in tf_keras. Weights and slots are saved and loaded
  as whole ones. The scope also works while the option is off.

    with gdp_grappler.split_tables({'words': 4}):
      words = keras.layers.Embedding(50_000_000, 128, name='words')
      model = keras.Sequential([keras.Input((64,), dtype='int32'), words, ...])

  A layer is built when it is first called or when its model knows its inputs.

  Raises:
    GdpError: a layer that `tables` names is built, but its table cannot be
      split, for example because a constraint looks at the whole table.
  """

  def __init__(self, tables: Mapping[str, int]) -> None:
    """Creates the scope.

    Args:
      tables: Names of layers, or patterns of them, with the number of parts.

    Raises:
      GdpError: the value is not such a mapping.
    """
    self._chosen = choice.checked(tables)
    self._begin = 0  # Number of tables made before the scope.

  def __enter__(self) -> None:
    self._begin = len(deciding.made())
    keras_layers.install()
    tf_keras_layers.install()
    deciding.enter(self._decide)

  def __exit__(self, kind: Any, *unused_error: Any) -> None:
    made = deciding.made()[self._begin:]
    deciding.leave(self._decide)
    if kind is None and not isinstance(self._chosen, str):
      self._warn_of_unused([pattern for pattern, _ in self._chosen], made)

  def _warn_of_unused(self, patterns: Sequence[str],
                      made: Sequence[str]) -> None:
    """Warns of names that no table has.

    Args:
      patterns: Names of layers, or patterns of them, that the user gave.
      made: Names of the layers of the tables that were made in the scope.
    """
    for pattern in patterns:
      if not fnmatch.filter(made, pattern):
        hint = suggestions.did_you_mean(pattern, sorted({*made}))
        warnings.warn(
            f'split_tables names "{pattern}", but no table of this name was '
            f'made in its scope.{hint} Tables are weights of Embedding and '
            'Dense layers that are built in the scope.', stacklevel=3)

  def _decide(self, layer: str, shape: tuple[int, ...], itemsize: int,
              whole_because: str, *unused: Any) -> int:
    del shape, itemsize
    count = choice.of_layer(self._chosen, layer)
    if count > 1 and whole_because:
      raise errors.GdpError(
          f'The table of layer "{layer}" cannot be split: {whole_because}. '
          'Leave the layer out of split_tables.')
    return count


class split_found_tables(split_tables):
  """The same scope for names that were found in a graph.

  Some of them may be variables without a layer, so there is no warning.
  """

  def _warn_of_unused(self, patterns: Sequence[str],
                      made: Sequence[str]) -> None:
    del patterns, made

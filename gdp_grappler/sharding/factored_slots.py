"""State of optimizers that depends on the parts of a table.

Adafactor keeps means of rows and columns of squared gradients. The means of a
part are computed from the gradient of this part alone. The means of the parts
do not determine those of the whole table, nor do the means of the whole table
determine those of the parts. So a checkpoint with other parts is refused before
a value is restored.
"""

from __future__ import annotations

import dataclasses
import math
import re
from typing import Any, Iterable

import tensorflow as tf
from tensorflow.core.protobuf import trackable_object_graph_pb2
from tensorflow.python.trackable import base

from gdp_grappler import errors
from gdp_grappler import method_wrapping
from gdp_grappler.sharding import choice
from gdp_grappler.sharding import whole_weights

_FACTORED = 'Adafactor'
_ALL, _STEPS = '_variables', '_iterations'
_OF_PART = re.compile(rf'.*{re.escape(choice.PART)}\d+')

_Shapes = list[tuple[int, ...]]


@dataclasses.dataclass(frozen=True)
class _State:
  """The variables of an optimizer.

  Attributes:
    shapes: Shapes of the variables that are no scalars, in order of size.
      Tables are whole.
    has_parts: Whether some of the variables belong to parts of tables.
  """

  shapes: _Shapes
  has_parts: bool

  def fits(self, other: _State) -> bool:
    """Whether the parts of tables allow loading one state into the other."""
    return (self.shapes == other.shapes or
            not self.has_parts and not other.has_parts)


def wrap(cls: Any, joined: whole_weights.Joined) -> None:
  """Makes optimizers check a checkpoint before TensorFlow restores a value.

  Args:
    cls: Class of optimizers of Keras 3 or tf_keras.
    joined: Joins the parts of tables.
  """

  def adapter(stock: Any, self: Any, path: str) -> Any:
    if _is_factored(self) and is_built(self):
      names = (str(variable.name) for variable in self._variables)
      _check(path, self, _state(joined(self._variables), names))
    return stock(self, path)

  method_wrapping.wrap(cls, '_checkpoint_adapter', adapter)


def check_waiting(optimizer: Any, variables: Iterable[Any],
                  joined: whole_weights.Joined) -> None:
  """Checks checkpoints that were restored before the optimizer had variables.

  Args:
    optimizer: An optimizer that has no variables yet.
    variables: Variables that the optimizer will train.
    joined: Joins the parts of tables.

  Raises:
    GdpError: a checkpoint is for other parts.
  """
  if not _is_factored(optimizer):
    return
  waiting = optimizer._variables._deferred_dependencies.values()
  paths = {p.checkpoint.save_path_string for each in waiting for p in each}
  trained = [
      v for v in variables if not getattr(v, 'overwrite_with_gradient', False)
  ]
  made = [
      *joined(trained),
      *(tf.TensorSpec(shape) for v in trained for shape in _factors(v))
  ]
  for path in paths:
    _check(path, optimizer, _state(made, (str(v.name) for v in trained)))


def is_built(optimizer: Any) -> bool:
  """Whether an optimizer of Keras 3 or tf_keras has its variables."""
  return bool(
      getattr(optimizer, 'built', False) or getattr(optimizer, '_built', False))


def _is_factored(optimizer: Any) -> bool:
  return any(cls.__name__ == _FACTORED for cls in type(optimizer).__mro__)


def _factors(variable: Any) -> _Shapes:
  """Returns the shapes of the means of rows and columns of a variable."""
  shape = tuple(variable.shape)
  if len(shape) < 2:
    return []
  return [shape[:-1], (*shape[:-2], shape[-1])]


def _state(variables: Iterable[Any], names: Iterable[str]) -> _State:
  shapes = [tuple(map(int, variable.shape)) for variable in variables]
  return _State(
      sorted((s for s in shapes if s), key=lambda s: (math.prod(s), s)),
      any(_OF_PART.match(name) for name in names))


def _check(path: str, optimizer: Any, own: _State) -> None:
  """Checks that an optimizer of a checkpoint fits, if the checkpoint has any.

  Raises:
    GdpError: no optimizer fits.
  """
  known = _states(path)
  if not known or any(own.fits(state) for state in known):
    return
  raise errors.GdpError(
      f'The checkpoint "{path}" does not fit the optimizer "{optimizer.name}": '
      f'{_FACTORED} keeps means of rows and columns for each part of a table, '
      'and those for other parts, or for the whole table, cannot be computed '
      'from them. Make the model with the parts that it had when the '
      'checkpoint was written (split_tables), or restore the checkpoint '
      'before compile, which loads the weights alone.')


def _states(path: str) -> list[_State]:
  """Returns the states of all optimizers in a checkpoint."""
  reader = tf.train.load_checkpoint(path)
  shapes = reader.get_variable_to_shape_map()
  if base.OBJECT_GRAPH_PROTO_KEY not in shapes:
    return []
  graph = trackable_object_graph_pb2.TrackableObjectGraph.FromString(
      reader.get_tensor(base.OBJECT_GRAPH_PROTO_KEY))
  result = []
  for node in graph.nodes:
    children = {child.local_name: child.node_id for child in node.children}
    if not {_ALL, _STEPS} <= children.keys():
      continue
    values = [
        value for child in graph.nodes[children[_ALL]].children
        for value in graph.nodes[child.node_id].attributes
    ]
    result.append(
        _state([tf.TensorSpec(shapes[v.checkpoint_key]) for v in values],
               (v.full_name for v in values)))
  return result

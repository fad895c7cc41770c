"""Traced functions, and the variables that they receive."""

from __future__ import annotations

import functools
import gc
import types
from typing import Any, Iterable, Iterator, Mapping

from tensorflow.core.framework import graph_pb2
from tensorflow.core.framework import node_def_pb2
from tensorflow.core.framework import types_pb2

from gdp_grappler.graph import op_kinds
from gdp_grappler.graph import variable_names
from gdp_grappler.graph.sources import wishes

# Attributes of an argument: types and shapes of the variables that it stands
# for.
_TYPES, _SHAPES = '_handle_dtypes', '_handle_shapes'


def concrete_functions(function: Any) -> dict[str, Any]:
  """What a Python function has traced so far, by the name the runtime knows.

  Args:
    function: Such as Keras makes: the `tf.function`s are in its closure, or in
      theirs.
  """
  return {
      concrete.name.decode(): concrete for polymorphic in functions(function)
      for concrete in polymorphic._list_all_concrete_functions()
  }


def is_compiled(function: Any) -> bool:
  """Whether XLA compiles one of the `tf.function`s in a Python function."""
  return any(polymorphic._jit_compile for polymorphic in functions(function))


def alive(name: str) -> tuple[Any, ...]:
  """Traced functions of this name, wherever in the program they are.

  Looks at all objects of the process.
  """
  from tensorflow.python.eager.polymorphic_function import atomic_function
  return tuple(item for item in instances(atomic_function.AtomicFunction)
               if item.name.decode() == name and item.graph is not None)


def instances(kind: type) -> list[Any]:
  """All objects of a class, not of its subclasses, that the process has.

  They refer to the class, which is found several times faster than by looking
  at all objects, of which a program may have tens of millions.
  """
  return [item for item in gc.get_referrers(kind) if type(item) is kind]


def annotate(graph_def: graph_pb2.GraphDef, concretes: Mapping[str,
                                                               Any]) -> None:
  """Writes what only the program knows to the nodes of a step.

  Args:
    graph_def: As it runs; changed.
    concretes: Traced functions by name, one of which it was made of.
  """
  wishes.mark_traced(graph_def, concretes)
  name_variables(graph_def, concretes.values())


def name_variables(graph_def: graph_pb2.GraphDef,
                   candidates: Iterable[Any]) -> None:
  """Writes what variables are to the arguments that receive them.

  That is their names, what `tf.device` asked for and, where the graph was taken
  before TensorFlow's placer wrote them down, their types and shapes.

  Args:
    graph_def: Of a function as it runs; changed.
    candidates: Traced functions, one of which it was made of. Of several that
      take just such variables it was the last one: what a function traces while
      its variables come into being never runs.
  """
  arguments = [n for n in graph_def.node if n.op in op_kinds.ARGUMENTS]
  handles = {
      node.attr['index'].i: node for node in arguments if _SHAPES in node.attr
  }
  # Of handles without a shape only their number tells the function.
  bare = handles or {
      node.attr['index'].i: node
      for node in arguments if node.attr['T'].type == types_pb2.DT_RESOURCE
  }
  for candidate in reversed(tuple(candidates)):
    found = variables(candidate)
    if not handles and len(arguments) != len(candidate.graph.inputs):
      continue
    if found and found.keys() <= bare.keys() and all(
        _takes(bare[i], variable) for i, variable in found.items()):
      variable_names.mark_arguments(
          graph_def, {i: name_of(variable) for i, variable in found.items()})
      wishes.mark_variables(graph_def, found)
      for i, variable in found.items():
        _describe(bare[i], variable)
      return


def _takes(node: node_def_pb2.NodeDef, variable: Any) -> bool:
  """Whether an argument may be a variable, as far as the graph tells."""
  if _SHAPES not in node.attr:
    return True
  types_of, shapes = node.attr[_TYPES].list.type, node.attr[_SHAPES].list.shape
  return (list(types_of) == [variable.dtype.as_datatype_enum] and
          list(shapes) == [variable.shape.as_proto()])


def _describe(node: node_def_pb2.NodeDef, variable: Any) -> None:
  """Writes down of which type and shape a variable is, unless it is there."""
  if _SHAPES not in node.attr:
    node.attr[_TYPES].list.type.append(variable.dtype.as_datatype_enum)
    node.attr[_SHAPES].list.shape.append(variable.shape.as_proto())


def name_of(variable: Any) -> str:
  """A variable's path, 'dense/kernel', without the number of an output."""
  return str(variable.name).split(':')[0]


def variables(concrete: Any) -> dict[int, Any]:
  """The variables of a traced function by the number of their argument."""
  positions = {id(tensor): i for i, tensor in enumerate(concrete.graph.inputs)}
  result = {}
  for outer, inner in concrete.graph.captures:
    trackable = getattr(outer, '_parent_trackable', lambda: None)()
    if trackable is not None and id(inner) in positions:
      result[positions[id(inner)]] = trackable
  return result


def functions(function: Any) -> Iterator[Any]:
  """The `tf.function`s that a function calls, itself included."""
  from tensorflow.python.eager.polymorphic_function import polymorphic_function
  seen: set[int] = set()
  waiting = [function]
  while waiting:
    item = waiting.pop()
    if id(item) in seen:
      continue
    seen.add(id(item))
    if isinstance(item, polymorphic_function.Function):
      yield item
      waiting.append(item.python_function)
    elif isinstance(item, functools.partial):
      waiting.append(item.func)
    elif isinstance(item, types.FunctionType):
      waiting.extend(_contents(item))


def _contents(function: types.FunctionType) -> Iterator[Any]:
  for cell in function.__closure__ or ():
    try:
      yield cell.cell_contents
    except ValueError:  # It is not filled yet.
      continue

"""Traced functions, and the variables that they get as arguments."""

from __future__ import annotations

import functools
import gc
import types
from typing import Any, Iterable, Iterator, Mapping

from tensorflow.core.framework import graph_pb2
from tensorflow.core.framework import node_def_pb2
from tensorflow.core.framework import types_pb2

from gdp_grappler import variable_scopes
from gdp_grappler.graph import op_kinds
from gdp_grappler.graph import variable_names
from gdp_grappler.graph.sources import wishes

# Attributes of an argument that is a handle: types and shapes of its variables.
_TYPES, _SHAPES = '_handle_dtypes', '_handle_shapes'


def concrete_functions(function: Any) -> dict[str, Any]:
  """Returns the functions traced so far, by their names in the runtime.

  Args:
    function: A Python function, such as Keras' train function. Its
      `tf.function`s may be in its closure, or in closures of functions in its
      closure.
  """
  return {
      concrete.name.decode(): concrete for polymorphic in functions(function)
      for concrete in polymorphic._list_all_concrete_functions()
  }


def is_compiled(function: Any) -> bool:
  """Whether XLA compiles one of the `tf.function`s in a Python function."""
  return any(polymorphic._jit_compile for polymorphic in functions(function))


def alive(name: str) -> tuple[Any, ...]:
  """Returns all traced functions of a name in the program.

  Searches the objects of the process.
  """
  from tensorflow.python.eager.polymorphic_function import atomic_function
  return tuple(item for item in instances(atomic_function.AtomicFunction)
               if item.name.decode() == name and item.graph is not None)


def instances(kind: type) -> list[Any]:
  """Returns all objects of a class, without objects of subclasses.

  The search is over objects that refer to the class. It is several times faster
  than one over all objects, of which a program may have tens of millions.
  """
  return [item for item in gc.get_referrers(kind) if type(item) is kind]


def annotate(graph_def: graph_pb2.GraphDef, concretes: Mapping[str,
                                                               Any]) -> None:
  """Writes facts that only the program knows to the nodes of a step.

  Args:
    graph_def: Graph of the step as it runs; changed in place.
    concretes: Traced functions by name. The graph was made from one of them.
  """
  wishes.mark_traced(graph_def, concretes)
  name_variables(graph_def, concretes.values())


def name_variables(graph_def: graph_pb2.GraphDef,
                   candidates: Iterable[Any]) -> None:
  """Writes facts about variables to the arguments that are their handles.

  These facts are names and requests by `tf.device`. If the graph was taken
  before TensorFlow's placer, types and shapes are written as well.

  Args:
    graph_def: Graph of a function as it runs; changed in place.
    candidates: Traced functions. The graph was made from one of them. If
      several fit, it was the last one, because the first trace of a function
      that creates its variables never runs.
  """
  handles = _handles(graph_def)
  for i, variable in received(graph_def, candidates).items():
    variable_names.mark(handles[i], name_of(variable))
    wishes.mark_variable(handles[i], variable)
    _describe(handles[i], variable)


def received(graph_def: graph_pb2.GraphDef,
             candidates: Iterable[Any]) -> dict[int, Any]:
  """Returns the variables that a function gets, by number of the argument.

  Args:
    graph_def: Graph of the function as it runs.
    candidates: See `name_variables`.
  """
  handles = _handles(graph_def)
  has_shapes = any(_SHAPES in node.attr for node in handles.values())
  count = sum(node.op in op_kinds.ARGUMENTS for node in graph_def.node)
  for candidate in reversed(tuple(candidates)):
    found = variables(candidate)
    if not has_shapes and count != len(candidate.graph.inputs):
      continue
    if found and found.keys() <= handles.keys() and all(
        _takes(handles[i], variable) for i, variable in found.items()):
      return found
  return {}


def _handles(graph_def: graph_pb2.GraphDef) -> dict[int, node_def_pb2.NodeDef]:
  """Returns the arguments that may be variables, by their number.

  Arguments without a shape count only if no argument has one: they can only be
  matched by their numbers.
  """
  arguments = [n for n in graph_def.node if n.op in op_kinds.ARGUMENTS]
  shaped = {
      node.attr['index'].i: node for node in arguments if _SHAPES in node.attr
  }
  return shaped or {
      node.attr['index'].i: node
      for node in arguments if node.attr['T'].type == types_pb2.DT_RESOURCE
  }


def name_arguments(graph_def: graph_pb2.GraphDef,
                   variables_of: Mapping[int, Any]) -> None:
  """Writes the paths of variables into the arguments of a function.

  Args:
    graph_def: Graph of the function; changed in place.
    variables_of: Variables by number of the argument.
  """
  for node in graph_def.node:
    if node.op in op_kinds.ARGUMENTS and node.attr['index'].i in variables_of:
      variable_names.mark(node, name_of(variables_of[node.attr['index'].i]))


def _takes(node: node_def_pb2.NodeDef, variable: Any) -> bool:
  """Whether an argument may be a variable, by its type and shape."""
  if _SHAPES not in node.attr:
    return True
  types_of, shapes = node.attr[_TYPES].list.type, node.attr[_SHAPES].list.shape
  return (list(types_of) == [variable.dtype.as_datatype_enum] and
          list(shapes) == [variable.shape.as_proto()])


def _describe(node: node_def_pb2.NodeDef, variable: Any) -> None:
  """Writes the type and shape of a variable, unless the argument has them."""
  if _SHAPES not in node.attr:
    node.attr[_TYPES].list.type.append(variable.dtype.as_datatype_enum)
    node.attr[_SHAPES].list.shape.append(variable.shape.as_proto())


def name_of(variable: Any) -> str:
  """Returns a variable's path, 'dense/kernel', without an output's number."""
  return variable_scopes.path(variable) or str(variable.name).split(':')[0]


def variables(concrete: Any) -> dict[int, Any]:
  """Returns the variables of a traced function by number of their argument."""
  positions = {id(tensor): i for i, tensor in enumerate(concrete.graph.inputs)}
  result = {}
  for outer, inner in concrete.graph.captures:
    trackable = getattr(outer, '_parent_trackable', lambda: None)()
    if trackable is not None and id(inner) in positions:
      result[positions[id(inner)]] = trackable
  return result


def functions(function: Any) -> Iterator[Any]:
  """Yields the `tf.function`s that a function calls, itself included."""
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
    except ValueError:  # The cell is empty.
      continue

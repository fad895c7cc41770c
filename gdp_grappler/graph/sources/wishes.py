"""Requests by `tf.device` in a program, from its traced functions.

After TensorFlow's placer, a requested device cannot be distinguished from a
chosen one. But traced functions, and graphs of v1 sessions, still have only the
requests. Each node of a placed graph names the op and the function that it
comes from.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from typing import Any, Callable, Iterable, Mapping

from tensorflow.core.framework import graph_pb2
from tensorflow.core.framework import node_def_pb2
from tensorflow.python.eager import context

from gdp_grappler import variable_scopes
from gdp_grappler.graph.legality import asked

# Attributes that name called functions: one function each, or a list.
_CALLED = ('f', 'then_branch', 'else_branch', 'cond', 'body')
_BRANCHES = 'branches'
# Attributes of ops that have a device, although the program requested none.
_UNASKED = frozenset(('_class', variable_scopes.UNASKED))
_GROUP = 'NoOp'
# Grappler replaces several ops by this one, with the name of the last op.
_COMPOSITION, _COMPOSED = '_UnaryOpsComposition', '/unary_ops_composition'
# Limit of cached functions. TensorFlow keeps functions as long as the program
# runs.
_MOST_FUNCTIONS = 4096

_ByOp = Mapping[tuple[str, str], str]


@dataclasses.dataclass(frozen=True)
class Wishes:
  """Requests for devices.

  Attributes:
    devices: Requested device by name of the function or graph and name of the
      op.
    calls: Called function by name of the function or graph and name of the op.
    is_known: Whether the requests are known; False if there is no source for
      them.
  """

  devices: _ByOp = dataclasses.field(default_factory=dict)
  calls: _ByOp = dataclasses.field(default_factory=dict)
  is_known: bool = True

  def of(self, node: Any, graph: str) -> str:
    """Returns the device requested for a node of a graph; '' for none."""
    info = node.experimental_debug_info
    for function, name in zip(info.original_func_names,
                              info.original_node_names):
      found = self.devices.get((function, name))
      if found:
        return found
    if node.op == _COMPOSITION:
      return self._of_path(node.name.removesuffix(_COMPOSED), graph)
    return self.devices.get((graph, node.name), '')

  def _of_path(self, name: str, function: str) -> str:
    """Returns the request of an op whose name begins with its callers."""
    while (function, name) not in self.devices:
      call = next((op for caller, op in self.calls
                   if caller == function and name.startswith(f'{op}/')), None)
      if call is None:
        return ''
      function, name = self.calls[function, call], name[len(call) + 1:]
    return self.devices[function, name]

  @functools.cached_property
  def digest(self) -> str:
    """A digest of the requests, equal in all runs; '' without requests."""
    if not self.devices:
      return ''
    # Names of functions are left out: they have numbers that depend on earlier
    # traces.
    rows = sorted(
        f'{name}\0{device}' for (_, name), device in self.devices.items())
    return hashlib.sha256('\n'.join(rows).encode()).hexdigest()[:8]


NONE = Wishes()
UNKNOWN = Wishes(is_known=False)


def is_function(name: str) -> bool:
  """Whether the program has traced a function of this name."""
  return bool(context.context().has_function(name))


@functools.lru_cache(maxsize=_MOST_FUNCTIONS)
def of_function(name: str) -> Wishes:
  """Returns the requests of a traced function and of those that it calls."""
  known = context.context()

  def definition(function: str) -> Any:
    if not known.has_function(function):
      return None
    return known.get_function_def(function).node_def

  return _collected([name], definition)


def of_graph(graph: Any, name: str) -> Wishes:
  """Returns the requests of a `tf.Graph` and of its functions."""
  graph_def = graph.as_graph_def()
  bodies = {
      function.signature.name: function.node_def
      for function in graph_def.library.function
  }
  return _collected([name], (bodies | {name: graph_def.node}).get)


def mark_traced(graph_def: graph_pb2.GraphDef, concretes: Mapping[str,
                                                                  Any]) -> None:
  """Writes requests to the nodes of a step made from a traced function.

  Args:
    graph_def: Graph of the step; changed in place.
    concretes: Traced functions by name. The step was made from one of them.
  """
  for name in concretes:
    found = of_function(name)
    if found.devices:
      asked.mark(graph_def, functools.partial(found.of, graph=''))


def mark_variable(node: node_def_pb2.NodeDef, variable: Any) -> None:
  """Writes to an argument the device under which its variable was made."""
  device = variable_scopes.device(variable)
  if device:
    node.attr[asked.ATTRIBUTE].s = device.encode()


def _collected(names: Iterable[str], body: Callable[[str], Any]) -> Wishes:
  """Returns the requests of functions and of the functions that they call.

  Args:
    names: Names of the functions.
    body: Function that returns the nodes of a function by its name; None for
      other names.
  """
  devices, calls = {}, {}
  waiting, seen = list(names), set(names)
  while waiting:
    name = waiting.pop()
    called: set[str] = set()
    for node in body(name) or ():
      # In `colocate_with`, which legacy optimizers of tf_keras use, TensorFlow
      # gives ops the device of a variable, and they go with the variable.
      # `tf.group` gives an op that does nothing the device of its inputs.
      if (node.device and node.op != _GROUP and not _UNASKED & set(node.attr)):
        devices[name, node.name] = node.device
      functions = _functions_of(node)
      if functions:
        calls[name, node.name] = functions[0]
      called.update((node.op, *functions))
    waiting += called - seen
    seen |= called
  return Wishes(devices, calls)


def _functions_of(node: Any) -> list[str]:
  attributes = node.attr
  result = [attributes[key].func.name for key in _CALLED if key in attributes]
  if _BRANCHES in attributes:
    result += [function.name for function in attributes[_BRANCHES].list.func]
  return [name for name in result if name]

"""Names of ops by which maps of layers find the parts of a table.

A table in parts is several variables in one layer, such as
'words/embeddings_part_0' and 'words/embeddings_part_1'. Their ops have no scope
of their own. Here each op of a part gets the name of its variable as a scope:
'words/embeddings_part_1/Gather'. Ops of a part are reads of the variable, ops
that take this value and no other part's value, and their gradients.
"""

from __future__ import annotations

from gdp_grappler.cluster import layer_map
from gdp_grappler.graph import op_graph
from gdp_grappler.graph.structure import scopes
from gdp_grappler.graph.structure import variable_uses
from gdp_grappler.placers.plans import updates
from gdp_grappler.sharding import choice

_Path = tuple[str, ...]


@op_graph.once_per_graph
def of(graph: op_graph.OpGraph) -> tuple[str, ...]:
  """Returns names of ops with scopes for parts of tables, [N].

  Args:
    graph: N ops. Ops without a part keep their name.
  """
  if not choice.tables_in_parts(graph.variables):
    return tuple(graph.names)
  paths = [layer_map.path_of(name) for name in graph.names]
  part_of = {paths[op]: part for op, part in _parts(graph).items()}
  return tuple(
      _with_part(name, path, part_of) for name, path in zip(graph.names, paths))


def _parts(graph: op_graph.OpGraph) -> dict[int, str]:
  """Returns the variable of the part that an op belongs to, by op."""
  names = {
      op: name for op, name in enumerate(graph.variables)
      if choice.tables_in_parts([name])
  }
  holders = variable_uses.reads(graph)
  result = {
      op: names[holder] for op, holder in enumerate(holders.tolist())
      if holder in names
  }
  used: dict[int, set[str]] = {}
  for source, target in graph.edges[graph.edge_tensors >= 0].tolist():
    if source in result and target not in result:
      used.setdefault(target, set()).add(result[source])
  # An evaluation has no optimizer, but all its ops update a loss's tracker.
  has_gradients = scopes.read(graph).backward.any()
  serves = updates.in_optimizers(graph) & has_gradients
  # An op that reads several parts, such as a join, belongs to the whole table.
  result.update((op, parts.pop()) for op, parts in used.items()
                if len(parts) == 1 and not serves[op])
  return result


def _with_part(name: str, path: _Path, part_of: dict[_Path, str]) -> str:
  """Returns the name of an op, with the scope of its part if it has one.

  Args:
    name: Name of the op.
    path: Its scopes and name.
    part_of: Variables of parts by the path of an op. The path of a gradient
      begins with the path of the op that it is the gradient of.
  """
  for end in range(1, len(path) + 1):
    if variable := part_of.get(path[:end]):
      inside = _end_of_layer(path[:end], variable)
      part = variable.rpartition('/')[2]
      return '/'.join((*path[:inside], part, *path[inside:]))
  return name


def _end_of_layer(path: _Path, variable: str) -> int:
  """Returns the number of scopes of an op up to its variable's layer.

  Keras 3 numbers the scope of a layer in each call. If no scope is that of the
  layer, all scopes count.
  """
  layer = variable.rpartition('/')[0].rpartition('/')[2]
  return next((i + 1 for i in range(len(path) - 2, -1, -1)
               if layer in (path[i], layer_map.bare_name(path[i]))),
              len(path) - 1)

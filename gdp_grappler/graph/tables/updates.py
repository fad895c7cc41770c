"""Updates of variables in parts: assignments, and steps of optimizers."""

from __future__ import annotations

from typing import Mapping

from tensorflow.core.framework import node_def_pb2
from tensorflow.python.framework import op_def_registry

from gdp_grappler.graph import op_kinds
from gdp_grappler.graph.tables import lookups
from gdp_grappler.graph.tables import parts
from gdp_grappler.graph.tables import values as values_lib
from gdp_grappler.graph.tables import view as view_lib

_BEGIN = ('Assign', 'Apply', 'SparseApply', 'Scatter', 'ResourceApply',
          'ResourceSparseApply', 'ResourceScatter')
# Words in types of ops that do not work row by row.
_NOT_BY_ROW = ('Nd', 'ApplyAdagradDA')
_INDICES = 'indices'
# Arguments with one row per index.
_BY_INDEX = ('grad', 'updates')


def write(node: node_def_pb2.NodeDef, handles: Mapping[str, parts.Split],
          values: values_lib.Values) -> tuple[str, ...]:
  """Writes an update of variables part by part.

  Args:
    node: Op that changes a variable.
    handles: Variables in parts, by their nodes.
    values: Tensors in parts.

  Returns:
    [K], the updates of the parts; () if the node cannot be split.
  """
  definition = op_def_registry.get(node.op)
  if (not node.op.startswith(_BEGIN) or definition is None or
      any(word in node.op for word in _NOT_BY_ROW)):
    return ()
  names = [argument.name for argument in definition.input_arg]
  taken = view_lib.inputs(node)
  if taken[0] not in handles or len(names) != len(taken):
    return ()
  split = handles[taken[0]]
  owners = None
  if _INDICES in names:
    indices = taken[names.index(_INDICES)]
    if split.axis:
      return ()
    owners = lookups.Owners(indices, parts.Type(node.attr['Tindices'].type),
                            split, f'{node.name}/rows', values.writer)
  by_part = [
      _argument(name, tensor, split, owners, handles, values)
      for name, tensor in zip(names, taken)
  ]
  if not all(by_part):
    return ()
  made = tuple(
      values.writer.add_like(node, f'{node.name}/part_{i}',
                             [tensors[i]
                              for tensors in by_part], view_lib.controls(node))
      for i in range(len(split.sizes)))
  values.changed(node, split, made)
  return made


def _argument(name: str, tensor: str, split: parts.Split,
              owners: lookups.Owners | None, handles: Mapping[str, parts.Split],
              values: values_lib.Values) -> tuple[str, ...]:
  """Returns an argument of each part's update [K]; () if it cannot be split."""
  if tensor in handles:
    other = handles[tensor]
    return other.names if other.sizes == split.sizes else ()
  if (values.view.producer(tensor)[0].op in op_kinds.VARIABLES or
      values.view.dtype(tensor) == parts.RESOURCE):
    return ()  # A slot that is not split.
  if owners is not None and name == _INDICES:
    return owners.wanted
  shape = values.view.shape(tensor)
  if owners is not None and name in _BY_INDEX and shape != ():
    return owners.shared_out(values.whole(tensor), split.dtype, name)
  if shape == split.shape:
    return values.parts_of(tensor, split)
  return (tensor,) * len(split.sizes) if shape == () else ()

"""Tensors that are empty because of the sizes assumed for open dimensions."""

from __future__ import annotations

import numpy as np
from tensorflow.python.framework import dtypes

from gdp_grappler import spelling
from gdp_grappler.graph import node_attributes
from gdp_grappler.graph import op_graph
from gdp_grappler.graph import source_graph


def describe(source: source_graph.SourceGraph, graph: op_graph.OpGraph,
             size: int) -> str:
  """Returns a line about the first op whose output became empty; '' if none.

  For example, a sound of 32 samples has no frame of 400 samples. Then all ops
  that follow cost nothing.

  Args:
    source: The graph.
    graph: The same graph as arrays.
    size: Size assumed for open dimensions.
  """
  if not source.leaves_sizes_open():
    return ''
  empty = graph.tensor_bytes == 0
  tensors, readers = graph.edge_tensors, graph.edges[:, 1]

  def count(ops: np.ndarray) -> np.ndarray:
    return np.bincount(ops, minlength=graph.num_ops)

  data, takes_empty = tensors >= 0, (tensors >= 0) & empty[tensors]
  makes_only_empty = (count(graph.tensor_ops[empty]) > 0) & (count(
      graph.tensor_ops[~empty]) == 0)
  # Only tensors of floats count: resources have no bytes, and lists of axes
  # are often empty.
  for op in np.flatnonzero(makes_only_empty & (count(readers[data]) > 0)
                           & (count(readers[takes_empty]) == 0)).tolist():
    number = node_attributes.of(source.graph_def.node[op], 'T').type
    if number and dtypes.as_dtype(number).is_floating:
      return (f'With {size} for unknown dimensions, the output of '
              f'"{graph.names[op]}" ({graph.op_types[op]}) is empty, so ops '
              'that depend on it cost nothing; '
              f'{spelling.argument("batch_size")} sets the size.')
  return ''

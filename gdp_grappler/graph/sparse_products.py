"""Work of products of a sparse matrix that is kept in one tensor (CSR).

The tensor is a variant, so shape inference does not know how many numbers the
matrix has. The op that made the matrix knows.
"""

from __future__ import annotations

import math

import numpy as np
from tensorflow.python.framework import dtypes

from gdp_grappler.graph import node_attributes
from gdp_grappler.graph import node_table

_PRODUCT = 'SparseMatrixMatMul'
# Input with the places of the numbers, [numbers, 2 or 3], by type of maker.
_MAKERS = {'SparseTensorToCSRSparseMatrix': 0, 'DenseToCSRSparseMatrix': 1}
# Ops whose output has numbers at the places of the first input's numbers.
_SAME_PLACES = frozenset(('Identity', 'SparseMatrixMul', 'SparseMatrixSoftmax',
                          'SparseMatrixSoftmaxGrad', 'SparseMatrixTranspose'))
_INDEX_BYTES = 4  # Of the column of a number.
_Inputs = dict[int, list[tuple[int, int]]]


def work(table: node_table.NodeTable,
         shape_of: node_table.ShapeOf) -> dict[int, tuple[float, float]]:
  """Returns FLOPs and bytes of the products whose sizes are known, by op.

  Each number of the sparse matrix is read, and multiplied by a row of the other
  matrix, which is read from memory. The output is written, if its shape is
  known. Mostly it is not, because the variant hides the number of rows.

  Args:
    table: The nodes of the graph.
    shape_of: Function that returns shapes of outputs.
  """
  if _PRODUCT not in table.types:
    return {}
  inputs: _Inputs = {}
  for source, output, op in table.edges:
    if output >= 0:
      inputs.setdefault(op, []).append((source, output))
  result = {}
  for op in np.flatnonzero(table.flags(lambda n: n.op == _PRODUCT)).tolist():
    node, (matrix, dense) = table.nodes[op], inputs[op]
    places = _places(table, inputs, matrix[0])
    numbers, other = (
        shape_of(*tensor) if tensor else None for tensor in (places, dense))
    if not numbers or not other:
      continue
    kind = dtypes.as_dtype(node.attr['T'].type)
    is_turned = any(
        node_attributes.of(node, f'{how}_b').b
        for how in ('transpose', 'adjoint'))
    columns = other[-2 if is_turned else -1]
    products = float(numbers[0] * columns)
    read = numbers[0] * (kind.size + _INDEX_BYTES) + products * kind.size
    # A product of complex numbers takes four of real numbers.
    result[op] = ((8 if kind.is_complex else 2) * products,
                  read + math.prod(shape_of(op, 0) or (0,)) * kind.size)
  return result


def _places(table: node_table.NodeTable, inputs: _Inputs,
            op: int) -> tuple[int, int] | None:
  """Returns the tensor with the places of an op's numbers; None if unknown."""
  while table.nodes[op].op in _SAME_PLACES:
    op = inputs[op][0][0]
  place = _MAKERS.get(table.nodes[op].op)
  return None if place is None else inputs[op][place]

"""Convolutions that Winograd's algorithm computes with fewer multiplications.

The algorithm (Lavin and Gray, "Fast Algorithms for Convolutional Neural
Networks", CVPR 2016) transforms tiles of the image and of the filter,
multiplies the transforms and transforms the result back. The products sum over
channels, so transforms count for little if there are many channels. cuDNN has
kernels for filters of 3 x 3 with stride 1, without dilation.
"""

from __future__ import annotations

import collections

import numpy as np
from tensorflow.core.framework import node_def_pb2
from tensorflow.core.framework import types_pb2

from gdp_grappler.graph import node_attributes
from gdp_grappler.graph import node_table
from gdp_grappler.graph import op_graph

_FORWARD = frozenset(('Conv2D', '_FusedConv2D'))
_INPUT_GRADIENTS = frozenset(('Conv2DBackpropInput', 'Conv2DBackpropInputV2'))
_FILTER_GRADIENTS = frozenset(
    ('Conv2DBackpropFilter', 'Conv2DBackpropFilterV2'))
_KINDS = _FORWARD | _INPUT_GRADIENTS | _FILTER_GRADIENTS
# cuDNN computes float16 convolutions so, too, in float32 arithmetic.
_TYPES = (types_pb2.DT_FLOAT, types_pb2.DT_HALF)
_SIDES = (3, 3)  # Of the filter.
# An assumption: with fewer channels, transforms take more time than products.
_LEAST_CHANNELS = 16


def by_name(table: node_table.NodeTable,
            shape_of: node_table.ShapeOf) -> dict[str, float]:
  """Returns `OpGraph.winograd_by_name` of a graph, without calls.

  Args:
    table: The nodes of the graph.
    shape_of: Function that returns shapes of outputs.
  """
  ops = np.flatnonzero(table.flags(_is_plain))
  if not len(ops):
    return {}
  edges = np.asarray(table.edges)
  inputs = collections.defaultdict(list)
  for source, output, op in edges[np.isin(edges[:, 2], ops)].tolist():
    inputs[op].append((source, output))
  return {
      table.names[op]: 1. for op in ops.tolist()
      if _suits(table.nodes[op], op, inputs[op], shape_of)
  }


def share(graph: op_graph.OpGraph, flops: np.ndarray) -> float:
  """Returns the share of the FLOPs of a graph that the algorithm computes.

  Args:
    graph: N ops.
    flops: [N], FLOPs of all executions.
  """
  return float((graph.winograd_shares * flops).sum() / max(flops.sum(), 1))


def _is_plain(node: node_def_pb2.NodeDef) -> bool:
  """Whether an op convolves such types without strides and dilation."""
  return (node.op in _KINDS and node_attributes.of(node, 'T').type in _TYPES and
          all(size == 1 for name in ('strides', 'dilations')
              for size in node_attributes.of(node, name).list.i))


def _suits(node: node_def_pb2.NodeDef, op: int, inputs: list[tuple[int, int]],
           shape_of: node_table.ShapeOf) -> bool:
  """Whether the sizes of filter and image are known and suit the algorithm."""
  image = (op, 0) if node.op in _INPUT_GRADIENTS else inputs[0]
  kernel = (op, 0) if node.op in _FILTER_GRADIENTS else inputs[1]
  sizes, filters = shape_of(*image), shape_of(*kernel)
  if not sizes or not filters or len(filters) < 4 or len(sizes) < 4:
    return False
  is_first = node_attributes.of(node, 'data_format').s == b'NCHW'
  # The filter of a grouped convolution has the channels of one group.
  return (tuple(filters[:2]) == _SIDES and
          filters[2] == sizes[1 if is_first else 3] and
          min(filters[2:4]) >= _LEAST_CHANNELS)

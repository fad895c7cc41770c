"""The order of a model's layers, derived from its graph.

A layer comes after the layers whose outputs it reads. Other pairs of layers
cannot be ordered by the order of ops in the graph, because Grappler has sorted
the ops. But a step takes its variables as arguments, in the order in which the
model uses the variables. So the numbers of the arguments order such layers.
"""

from __future__ import annotations

import heapq
from typing import Iterable, Sequence, TYPE_CHECKING

import numpy as np

from gdp_grappler.graph import op_graph
from gdp_grappler.graph import op_kinds
from gdp_grappler.placers.plans import layers as layers_lib
from gdp_grappler.placers.plans import updates

if TYPE_CHECKING:
  # The import needs TensorFlow. A graph of costs alone works without it.
  from gdp_grappler.graph import source_graph

# Stands for no argument or no layer.
_NONE = -1


class LayerOrder:
  """Puts layers of a graph of N ops into the order of the model."""

  def __init__(self, graph: op_graph.OpGraph,
               source: source_graph.SourceGraph | None = None) -> None:
    """Finds the ops of the forward pass, and the ops of arguments.

    Args:
      graph: N ops.
      source: The TensorFlow graph of the ops. Without it only the edges between
        layers count.
    """
    self._graph = graph
    # Constants do not count, because Grappler lets several layers share one.
    constants = np.array([kind == 'Const' for kind in graph.op_types], bool)
    self._passes = ~(layers_lib.after_forward(graph)
                     | updates.in_optimizers(graph)
                     | constants)
    numbers = {} if source is None else {
        node.name: node.attr['index'].i for node in source.graph_def.node
        if node.op in op_kinds.ARGUMENTS
    }
    self._numbers = np.array([numbers.get(name, _NONE) for name in graph.names],
                             int)

  def of(self, layers: Sequence[layers_lib.Layer]) -> list[layers_lib.Layer]:
    """The layers in the order of the model.

    Args:
      layers: Layers without common ops.
    """
    readers = self._readers(layers)
    waits = [0] * len(layers)
    for reader in (layer for after in readers for layer in after):
      waits[reader] += 1
    first = [self._first(layer.ops) for layer in layers]
    ready = [(first[i], i) for i, count in enumerate(waits) if not count]
    heapq.heapify(ready)
    left, result = dict(enumerate(layers)), []
    while left:
      # In a cycle of layers, the layer that is used first begins.
      number, place = heapq.heappop(ready) if ready else self._begins(
          first, left)
      result.append(left.pop(place))
      for reader in readers[place]:
        waits[reader] -= 1
        if not waits[reader] and reader in left:
          # A layer without variables comes right after the last one it reads.
          own = first[reader]
          heapq.heappush(ready, (number if own == _NONE else own, reader))
    return result

  def _begins(self, first: Sequence[int],
              left: Iterable[int]) -> tuple[int, int]:
    """The first argument, and the index, of the layer that is used first."""
    # A layer without variables, such as a loss, may be used at any time.
    _, number, place = min((first[i] == _NONE, first[i], i) for i in left)
    return number, place

  def _first(self, ops: np.ndarray) -> int:
    """Lowest number of an argument in a layer; `_NONE` if it has none."""
    numbers = self._numbers[ops]
    known = numbers[numbers != _NONE]
    return int(known.min()) if known.size else _NONE

  def _readers(self, layers: Sequence[layers_lib.Layer]) -> list[list[int]]:
    """For each layer, the layers that read its outputs in the forward pass."""
    graph = self._graph
    owner = np.full(graph.num_ops, _NONE)
    for place, layer in enumerate(layers):
      owner[layer.ops] = place
    owner[~self._passes] = _NONE
    pairs = owner[graph.edges[graph.edge_tensors >= 0]]
    differ = (pairs != _NONE).all(axis=1) & (pairs[:, 0] != pairs[:, 1])
    result: list[list[int]] = [[] for _ in layers]
    for maker, reader in np.unique(pairs[differ], axis=0).tolist():
      result[maker].append(reader)
    return result

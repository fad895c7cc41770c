"""Networks whose weights nearly fill the GPUs, similar to profiled networks.

Each layer has a variable, whose reads and updates are one group, a heavy op and
light ops. Training adds optimizer state and the backward pass, whose ops need
outputs of the forward pass. The memory of the GPUs depends on the need of a
placement in blocks, so that this placement fits.
"""

from __future__ import annotations

import dataclasses
from typing import Callable

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import presets
from gdp_grappler.evaluation.costs import cost_model
from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.graph import op_graph

_CARD = 'V100'
# Seconds of the host for a second of a GPU, for heavy ops and for light ops.
_HOST_SLOWER, _HOST_SLOWER_LIGHT = 20., 4.
_LIGHT_S = 3e-5
# Adam keeps two numbers per weight, and each gradient exists for some time.
_STATE = 3


@dataclasses.dataclass(frozen=True)
class Layer:
  """A layer of a network.

  Attributes:
    weight_bytes: Bytes of the variable.
    output_bytes: Bytes of the output.
    seconds: Seconds of the heavy op on a GPU.
    branches: Number of parallel heavy ops, each with a variable of its own.
  """

  weight_bytes: float
  output_bytes: float
  seconds: float
  branches: int = 1


def _even() -> list[Layer]:
  """A transformer: equal layers."""
  return [Layer(80e6, 8e6, 3e-3, 1)] * 28


def _growing() -> list[Layer]:
  """ResNet-50: ever more weights and ever smaller maps."""
  stages = ((3, .25e6, 26e6, 9e-4), (4, 1.2e6, 13e6, 9e-4),
            (6, 4.5e6, 6.4e6, 9e-4), (3, 18e6, 3.2e6, 9e-4))
  convolutions = [
      Layer(size / 3, output, seconds / 3)
      for blocks, size, output, seconds in stages for _ in range(3 * blocks)
  ]
  return [*convolutions, Layer(8.2e6, 1e5, 1e-4)]


def _heavy_ends() -> list[Layer]:
  """A translator: an embedding and a softmax hold most of the weights."""
  return [
      Layer(200e6, 4e6, 4e-4), *[Layer(34e6, 4e6, 2e-3)] * 16,
      Layer(200e6, 16e6, 4e-3)
  ]


def _branches() -> list[Layer]:
  """Inception: ops side by side."""
  return [
      Layer(3e6 * (1 + i % 3), 6e6, 8e-4 * (1 + i % 2), 4) for i in range(14)
  ]


NETWORKS: dict[str, Callable[[], list[Layer]]] = {
    'even': _even, 'growing': _growing, 'heavy ends': _heavy_ends,
    'branches': _branches
}


class _Builder:
  """Collects the ops of a graph."""

  def __init__(self) -> None:
    self.seconds: list[tuple[float, float]] = []
    self.param_bytes: list[float] = []
    self.output_bytes: list[float] = []
    self.groups: list[int] = []
    self.layers: list[int] = []
    self.types: list[str] = []
    self.edges: list[tuple[int, int]] = []
    self.num_groups = 0

  def add(self, layer: int, kind: str, inputs: list[int], gpu_s: float,
          output_bytes: float, param_bytes: float = 0.,
          group: int | None = None) -> int:
    """Adds an op, and returns its number."""
    op = len(self.seconds)
    slower = _HOST_SLOWER if gpu_s > _LIGHT_S else _HOST_SLOWER_LIGHT
    self.seconds.append((gpu_s * slower, gpu_s))
    self.param_bytes.append(param_bytes)
    self.output_bytes.append(output_bytes)
    self.types.append(kind)
    self.layers.append(layer)
    if group is None:
      group, self.num_groups = self.num_groups, self.num_groups + 1
    self.groups.append(group)
    self.edges += [(producer, op) for producer in inputs]
    return op

  def graph(self, name: str) -> op_graph.OpGraph:
    """Returns the graph of all ops."""
    count = len(self.seconds)
    edges = np.array(self.edges).reshape(-1, 2)
    return op_graph.OpGraph(
        name=name, names=tuple(
            f'layer{layer}/op{i}' for i, layer in enumerate(self.layers)),
        op_types=self.types, edges=edges, edge_tensors=edges[:, 0],
        tensor_ops=np.arange(count), tensor_bytes=np.array(self.output_bytes),
        flops=np.zeros(count), io_bytes=np.zeros(count),
        param_bytes=np.array(self.param_bytes), groups=np.array(self.groups),
        allowed_types=np.ones((count, 2)), pins=('',) * count,
        user_pins=np.zeros(count), devices=('',) * count)


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
  """A graph, a cluster, and a placement that fits.

  Attributes:
    name: Name of the case.
    graph: N ops in G groups.
    cluster: A host and GPUs with little memory.
    seconds: float64 [N, D], seconds of each op on each device.
    planted: int32 [G], the placement: blocks of layers, one on each GPU.
  """

  name: str
  graph: op_graph.OpGraph
  cluster: cluster_lib.Cluster
  seconds: np.ndarray
  planted: np.ndarray


def case(network: str, num_gpus: int, fill: float, training: bool,
         costs: Callable[[np.ndarray], cost_model.CostModel]) -> Case:
  """Returns a network, and GPUs of which it fills a share of the memory.

  Args:
    network: One of `NETWORKS`.
    num_gpus: Number of GPUs, from 1 to 16.
    fill: Peak of the fullest GPU in the planted placement over its memory.
    training: Whether there are gradients and optimizer state.
    costs: Returns a cost model with the given seconds [N, D].
  """
  made = _network(NETWORKS[network](), training)
  name = (f'{network}, {"training" if training else "inference"}, {num_gpus} '
          f'GPUs, {fill:.0%}')
  graph = made.graph(name)
  host, gpus = np.array(made.seconds).T
  cluster = presets.preset(f'{num_gpus}x{_CARD}')
  seconds = np.stack([host, *[gpus] * num_gpus], axis=1)
  planted = _blocks(graph, np.array(made.layers), num_gpus)
  peak = simulator.Simulator(cluster, costs(seconds)).price_groups(
      graph, planted[None]).peak_bytes[0]
  on_gpus = cluster.memory_pools[list(cluster.accelerators)]
  return Case(name, graph, _with_memory(cluster,
                                        int(peak[on_gpus].max() / fill)),
              seconds, planted)


def _with_memory(cluster: cluster_lib.Cluster,
                 gpu_bytes: int) -> cluster_lib.Cluster:
  """Returns the cluster with a given memory of each GPU."""
  return dataclasses.replace(
      cluster, devices=tuple(
          dataclasses.replace(device, memory_bytes=gpu_bytes, memory_margin=0.
                             ) if device.type == 'GPU' else device
          for device in cluster.devices))


def _network(layers: list[Layer], training: bool) -> _Builder:
  result = _Builder()
  state = 1 + 2 * training
  last = result.add(0, 'Placeholder', [], _LIGHT_S, layers[0].output_bytes)
  forward = []
  for number, layer in enumerate(layers):
    share = layer.branches
    outputs = []
    for _ in range(share):
      variable = result.add(number, 'VarHandleOp', [], 0., 0.,
                            layer.weight_bytes * state)
      group = result.groups[variable]
      weights = result.add(number, 'ReadVariableOp', [variable], 1e-6,
                           layer.weight_bytes, group=group)
      product = result.add(number, 'MatMul', [last, weights], layer.seconds,
                           layer.output_bytes / share)
      output = result.add(number, 'Relu', [product], _LIGHT_S,
                          layer.output_bytes / share)
      outputs.append(output)
      forward.append((number, layer, last, weights, product, output, group))
    last = outputs[0] if share == 1 else result.add(
        number, 'ConcatV2', outputs, _LIGHT_S, layer.output_bytes)
  if training:
    _backward(result, forward, last)
  return result


def _backward(result: _Builder, forward: list[tuple[int, Layer, int, int, int,
                                                    int, int]],
              last: int) -> None:
  """Adds gradients of all layers, and updates of their variables."""
  gradient = result.add(forward[-1][0], 'Loss', [last], _LIGHT_S,
                        forward[-1][1].output_bytes)
  of_layer: list[int] = []
  for index, (number, layer, inputs, weights, product, output,
              group) in reversed(list(enumerate(forward))):
    size = layer.output_bytes / layer.branches
    back = result.add(number, 'ReluGrad', [gradient, output], _LIGHT_S, size)
    to_weights = result.add(number, 'MatMul', [back, inputs], layer.seconds,
                            layer.weight_bytes)
    result.add(number, 'ResourceApplyAdam', [to_weights], _LIGHT_S, 0.,
               group=group)
    of_layer.append(
        result.add(number, 'MatMul', [back, weights, product], layer.seconds,
                   layer.output_bytes))
    if index == 0 or forward[index - 1][0] != number:
      gradient = of_layer[0] if len(of_layer) == 1 else result.add(
          number, 'AddN', of_layer, _LIGHT_S, layer.output_bytes)
      of_layer = []


def _blocks(graph: op_graph.OpGraph, layers: np.ndarray,
            num_gpus: int) -> np.ndarray:
  """Returns int32 [G], consecutive layers on each GPU with equal bytes."""
  size = np.bincount(layers, graph.param_bytes + .5 * graph.output_bytes)
  middle = (np.cumsum(size) - size / 2) / size.sum()
  by_layer = 1 + np.minimum((middle * num_gpus).astype(int), num_gpus - 1)
  first = np.unique(graph.groups, return_index=True)[1]
  return by_layer[layers[first]].astype(np.int32)

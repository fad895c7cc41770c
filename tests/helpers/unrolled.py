"""Training steps of unrolled recurrent nets with known coordinates."""

from __future__ import annotations

import dataclasses

import numpy as np

from gdp_grappler.graph import op_graph
from helpers import graphs

_WIDTH, _HELD = 1000, 4000


@dataclasses.dataclass(frozen=True)
class Unrolled:
  """A step, and the coordinates of its ops.

  Attributes:
    graph: Forward ops, their gradients, and updates; each op is a group.
    layer: int [N], layer of each op; -1 for none.
    time: int [N], time step of each op; -1 for none, such as variables.
  """

  graph: op_graph.OpGraph
  layer: np.ndarray
  time: np.ndarray


class _Builder:

  def __init__(self) -> None:
    self.names: list[str] = []
    self.types: list[str] = []
    self.held: list[int] = []
    self.places: list[tuple[int, int]] = []
    self.edges: list[tuple[int, ...]] = []

  def op(self, kind: str, name: str, place: tuple[int, int], *inputs: int,
         held: int = 0) -> int:
    self.names.append(name)
    self.types.append(kind)
    self.held.append(held)
    self.places.append(place)
    number = len(self.names) - 1
    self.edges += [(i, number, _WIDTH) for i in inputs]
    return number


def make(layers: int, steps: int, scoped: bool = True) -> Unrolled:
  """Returns a step of a net whose cells are a product and a Tanh.

  Args:
    layers: Number of layers, each with a kernel and a bias.
    steps: Number of time steps.
    scoped: Whether names contain layer and step. Otherwise names are those that
      TensorFlow generates, and only names of gradients contain their op.
  """
  b, used = _Builder(), {}

  def name(scope: str, kind: str) -> str:
    if scoped:
      return f'{scope}/{kind}'
    used[kind] = used.get(kind, -1) + 1
    return f'{kind}_{used[kind]}' if used[kind] else kind

  kernels = [
      b.op('VarHandleOp', name(f'layer{k}', 'kernel'), (k, -1), held=_HELD)
      for k in range(layers)
  ]
  below = [b.op('Placeholder', name('in', 'x'), (-1, -1)) for _ in range(steps)]
  cells = {}
  for k in range(layers):
    state = b.op('Fill', name(f'layer{k}', 'zeros'), (k, 0))
    for t in range(steps):
      scope = f'layer{k}/step{t}'
      read = b.op('ReadVariableOp', name(scope, 'Read'), (k, -1), kernels[k])
      product = b.op('MatMul', name(scope, 'MatMul'), (k, t), below[t], read,
                     state)
      state = b.op('Tanh', name(scope, 'Tanh'), (k, t), product)
      cells[k, t] = product, state, read
      below[t] = state
  upper = b.op('AddN', name('loss', 'AddN'), (-1, -1), *below)
  behind = {t: upper for t in range(steps)}
  for k in reversed(range(layers)):
    later, parts = None, []
    for t in reversed(range(steps)):
      product, state, read = cells[k, t]
      inputs = [behind[t], state, *([] if later is None else [later])]
      first = b.op('TanhGrad', f'gradients/{b.names[state]}_grad/TanhGrad',
                   (k, t), *inputs)
      later = behind[t] = b.op('MatMul',
                               f'gradients/{b.names[product]}_grad/MatMul',
                               (k, t), first, read)
      parts.append(
          b.op('MatMul', f'gradients/{b.names[product]}_grad/MatMul_1', (k, t),
               first))
    total = b.op('AddN', f'gradients/AddN_{k + 1}', (k, 0), *parts)
    b.op('ResourceApplyAdam', f'train/update_{b.names[kernels[k]]}/Apply',
         (k, -1), total, kernels[k])
  places = np.array(b.places)
  graph = graphs.make_graph(b.edges, len(b.names), names=b.names,
                            op_types=b.types, param_bytes=b.held,
                            flops=[1e9 * (k == 'MatMul') for k in b.types])
  return Unrolled(graph, places[:, 0], places[:, 1])

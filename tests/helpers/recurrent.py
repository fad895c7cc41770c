"""Forward steps of recurrent layers that are unrolled in time."""

from __future__ import annotations

import dataclasses

import numpy as np

from gdp_grappler.graph import op_graph
from helpers import graphs

_HELD, _SENT = 4000, 1000


@dataclasses.dataclass(frozen=True)
class Options:
  """The way in which a layer computes.

  Attributes:
    gates: Number of products of the state with one kernel in each step.
    masked: Whether the kernels of states are masked once, before the first
      step.
    collected: Whether the first layer stacks its outputs.
    looks_back: Whether a state depends on all earlier states.
  """

  gates: int = 1
  masked: bool = False
  collected: bool = False
  looks_back: bool = False


class _Builder:

  def __init__(self, options: Options) -> None:
    self._options = options
    self.names: list[str] = []
    self.types: list[str] = []
    self.edges: list[tuple[int, int, int]] = []

  def op(self, name: str, kind: str, *inputs: int) -> int:
    self.names.append(name)
    self.types.append(kind)
    number = len(self.names) - 1
    self.edges.extend((i, number, _SENT) for i in inputs)
    return number

  def layer(self, scope: str, inputs: list[int]) -> list[int]:
    x, h, y = (self.op(f'{scope}/{k}/kernel', 'VarHandleOp') for k in 'xhy')
    if self._options.masked:
      shape = self.op(f'{scope}/h/shape', 'Const')
      drawn = self.op(f'{scope}/h/draw', 'RandomUniform', shape)
      h = self.op(f'{scope}/h/mask', 'Mul', h, drawn)
    states, outputs = [self.op(f'{scope}/zeros', 'Fill')], []
    for step, value in enumerate(inputs):
      at = f'{scope}/step{step}'
      before = states if self._options.looks_back else states[-1:]
      products = [self.op(f'{at}/x', 'MatMul', value, x)]
      products += [
          self.op(f'{at}/h', 'MatMul', *before, h)
          for _ in range(self._options.gates)
      ]
      total = self.op(f'{at}/add', 'AddN', *products)
      states.append(self.op(f'{at}/Tanh', 'Tanh', total))
      outputs.append(self.op(f'{at}/y', 'MatMul', states[-1], y))
    return outputs


def two_readers(
    steps: int, flops: float = 1e9,
    options: Options = Options()) -> op_graph.OpGraph:
  """Returns a bidirectional layer, a layer above, and logits of each step.

  Each reader and the layer above have products with their input ('x') and with
  their state ('h'), and one of each new state ('y') that they hand on; logits,
  of one product per step, follow.

  Args:
    steps: Number of time steps.
    flops: FLOPs of a product.
    options: Options of each layer.
  """
  b = _Builder(options)
  first = b.op('layer0/unstack', 'Unpack', b.op('batch', 'Placeholder'))
  ahead = b.layer('layer0/ahead', [first] * steps)
  back = b.layer('layer0/back', [first] * steps)[::-1]
  both = [
      b.op(f'layer0/step{step}/both', 'ConcatV2', *pair)
      for step, pair in enumerate(zip(ahead, back))
  ]
  if options.collected:
    b.op('layer0/stack', 'Pack', *both)
  above = b.layer('layer1/above', both)
  logits = b.op('layer2/kernel', 'VarHandleOp')
  for step, value in enumerate(above):
    b.op(f'layer2/step{step}/logits', 'MatMul', value, logits)
  return graphs.make_graph(
      b.edges, len(b.names), names=b.names, op_types=b.types,
      param_bytes=[_HELD * (k == 'VarHandleOp') for k in b.types],
      flops=[flops * (k == 'MatMul') for k in b.types])


def labels(graph: op_graph.OpGraph,
           masked: bool = False) -> dict[str, np.ndarray]:
  """Returns layer, segment and variable, int [N], by names of `two_readers`."""
  layer, segment, variable = (np.full(graph.num_ops, -1) for _ in range(3))
  known: dict[str, int] = {}
  for index, name in enumerate(graph.names):
    scope, *rest = name.split('/')
    if not scope.startswith('layer'):
      continue
    layer[index] = int(scope[5:])
    step = [part[4:] for part in rest if part.startswith('step')]
    if 'kernel' in rest or 'zeros' in rest:
      continue
    segment[index] = int(step[0]) if step else 0
    if rest[-1] == 'mask':
      variable[index] = known.setdefault(f'{scope}/{rest[0]}/h', len(known))
    elif graph.op_types[index] == 'MatMul' and not (masked and rest[-1] == 'h'):
      key = f'{scope}/{rest[0] if len(rest) == 3 else ""}/{rest[-1]}'
      variable[index] = known.setdefault(key, len(known))
  return {'layer': layer, 'segment': segment, 'variable': variable}

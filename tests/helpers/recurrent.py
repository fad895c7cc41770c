"""Forward steps of layers that are unrolled in time, and what they wait for."""

from __future__ import annotations

import numpy as np

from gdp_grappler.graph import op_graph
from helpers import graphs

_HELD, _SENT = 4000, 1000


def two_readers(steps: int, flops: float = 1e9, gates: int = 1,
                masked: bool = False, collected: bool = False,
                looks_back: bool = False) -> op_graph.OpGraph:
  """A layer that reads from both ends, one above it, and logits of each step.

  Each reader and the layer above have products with their input ('x') and with
  their state ('h'), and one of each new state ('y') that they hand on; logits,
  of one product per step, follow.

  Args:
    steps: In time.
    flops: Of a product.
    gates: Products with the state in each step, of one kernel.
    masked: Whether the kernels of states are masked once, before the first
      step.
    collected: Whether the first layer stacks what it hands on.
    looks_back: Whether a state hangs on all states before it.
  """
  names, types, edges, held = [], [], [], []

  def op(name: str, kind: str, *inputs: int) -> int:
    names.append(name)
    types.append(kind)
    held.append(_HELD * (kind == 'VarHandleOp'))
    edges.extend((i, len(names) - 1, _SENT) for i in inputs)
    return len(names) - 1

  def layer(scope: str, inputs: list[int]) -> list[int]:
    x, h, y = (op(f'{scope}/{k}/kernel', 'VarHandleOp') for k in 'xhy')
    if masked:
      shape = op(f'{scope}/h/shape', 'Const')
      drawn = op(f'{scope}/h/draw', 'RandomUniform', shape)
      h = op(f'{scope}/h/mask', 'Mul', h, drawn)
    states, outputs = [op(f'{scope}/zeros', 'Fill')], []
    for step, value in enumerate(inputs):
      at = f'{scope}/step{step}'
      before = states if looks_back else states[-1:]
      products = [op(f'{at}/x', 'MatMul', value, x)]
      products += [op(f'{at}/h', 'MatMul', *before, h) for _ in range(gates)]
      states.append(op(f'{at}/Tanh', 'Tanh', op(f'{at}/add', 'AddN',
                                                *products)))
      outputs.append(op(f'{at}/y', 'MatMul', states[-1], y))
    return outputs

  batch = op('batch', 'Placeholder')
  first = op('layer0/unstack', 'Unpack', batch)
  ahead = layer('layer0/ahead', [first] * steps)
  back = layer('layer0/back', [first] * steps)[::-1]
  both = [
      op(f'layer0/step{step}/both', 'ConcatV2', *pair)
      for step, pair in enumerate(zip(ahead, back))
  ]
  if collected:
    op('layer0/stack', 'Pack', *both)
  above = layer('layer1/above', both)
  logits = op('layer2/kernel', 'VarHandleOp')
  for step, value in enumerate(above):
    op(f'layer2/step{step}/logits', 'MatMul', value, logits)
  return graphs.make_graph(edges, len(names), names=names, op_types=types,
                           param_bytes=held,
                           flops=[flops * (k == 'MatMul') for k in types])


def labels(graph: op_graph.OpGraph,
           masked: bool = False) -> dict[str, np.ndarray]:
  """What names of `two_readers` say: layer, segment, variable, int [N]."""
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

"""The structures of the models.

Each family is a function that adds its layers after a tensor. `units` is the
number of times that it repeats its smallest part. Sizes are drawn again for
every graph.
"""

from __future__ import annotations

import math
from typing import Callable

import numpy as np

from gdp_grappler.workloads.synthetic import builder as builder_lib

Builder = builder_lib.Builder
Tensor = builder_lib.Tensor
Family = Callable[[Builder, Tensor, int], Tensor]


def grid(b: Builder, x: Tensor, units: int) -> Tensor:
  """Adds recurrent layers over time steps, as in language models."""
  layers = _factor(b, units, most=12)
  steps = max(units // layers, 1)
  hidden = _width(b)
  with b.scope('grid'):
    inputs = [_step_input(b, x, step) for step in range(steps)]
    return _joined(b, _recurrent_layers(b, inputs, layers, hidden))


def seq2seq(b: Builder, x: Tensor, units: int) -> Tensor:
  """Adds an encoder, and a decoder that attends to it in every step."""
  layers = _factor(b, max(units // 2, 1), most=8)
  steps = max(units // (2 * layers), 1)
  hidden = _width(b)
  with b.scope('encoder'):
    inputs = [_step_input(b, x, step) for step in range(steps)]
    inputs = _recurrent_layers(b, inputs, layers, hidden)
  with b.scope('memory'):
    memory = b.one('ConcatV2', inputs,
                   (inputs[0].rows, sum(t.columns for t in inputs)))
    keys = b.dense(memory, hidden)
  with b.scope('decoder'):
    queries = [_step_input(b, x, step) for step in range(steps)]
    queries = _recurrent_layers(b, queries, layers, hidden)
    weights = b.variable(2 * hidden, hidden)
    attended = []
    for step, query in enumerate(queries):
      with b.scope(f'attention_{step}'):
        scores = b.each('Softmax', b.each('Mul', query, keys))
        both = b.one('ConcatV2', (query, b.each('Mul', scores, keys)),
                     (query.rows, 2 * hidden))
        attended.append(b.each('Tanh', b.matmul(both, weights)))
    b.stage += 1
    return _joined(b, attended)


def segments(b: Builder, x: Tensor, units: int) -> Tensor:
  """Adds attention layers over segments that see the segment before."""
  layers = _factor(b, units, most=12)
  count = max(units // layers, 1)
  width, heads = _width(b), int(b.rng.integers(2, 12))
  with b.scope('segments'):
    weights = [_attention_weights(b, width, layer) for layer in range(layers)]
    hidden = [_step_input(b, x, i) for i in range(count)]
    hidden = [b.dense(h, width) for h in hidden]
    first = b.stage
    for layer in range(layers):
      b.stage = first + layer
      before: Tensor | None = None
      for i in range(count):
        with b.scope(f'segment_{i}/layer_{layer}'):
          above = _attention(b, hidden[i], before, weights[layer], heads)
        before, hidden[i] = hidden[i], above
    b.stage += 1
    return _joined(b, hidden)


def branches(b: Builder, x: Tensor, units: int) -> Tensor:
  """Adds cells of parallel convolutions that see the two cells before."""
  rows = x.rows * builder_lib.rounded(builder_lib.between(b.rng, 8, 800))
  columns = builder_lib.rounded(builder_lib.between(b.rng, 16, 256))
  with b.scope('cells'):
    now = b.convolution(_pixels(b, x, rows), columns, 9)
    before = now
    wide = int(b.rng.integers(2, 8))
    made, cell = 0, 0
    while made < units:
      shrinks = rows > 4 * x.rows and b.rng.random() < .15
      rows = rows // 2 if shrinks else rows
      ends = []
      with b.scope(f'cell_{cell}'):
        for branch in range(wide):
          source = before if b.rng.random() < .3 else now
          depth = 1 + int(b.rng.integers(3))
          with b.scope(f'branch_{branch}'):
            ends.append(_branch(b, source, rows, columns, depth))
          made += depth
        joined = b.one('ConcatV2', ends, (rows, wide * columns))
        before, now = now, b.convolution(joined, columns, 1)
      cell, b.stage = cell + 1, b.stage + 1
    return _pooled(b, now, x.rows)


def attention(b: Builder, x: Tensor, units: int) -> Tensor:
  """Adds a tower of attention layers."""
  width, heads = _width(b), int(b.rng.integers(2, 16))
  with b.scope('tower'):
    x = b.dense(x, width)
    for layer in range(units):
      weights = _attention_weights(b, width, layer)
      with b.scope(f'layer_{layer}'):
        x = _attention(b, x, None, weights, heads)
      b.stage += 1
    return x


def chain(b: Builder, x: Tensor, units: int) -> Tensor:
  """Adds a chain of convolutions, with gates and shortcuts."""
  rows = x.rows * builder_lib.rounded(builder_lib.between(b.rng, 8, 2000))
  columns = builder_lib.rounded(builder_lib.between(b.rng, 16, 256))
  gated, skips = b.rng.random() < .5, b.rng.random() < .5
  taken: list[Tensor] = []
  with b.scope('chain'):
    now = b.convolution(_pixels(b, x, rows), columns, 9)
    for layer in range(units):
      with b.scope(f'layer_{layer}'):
        inner = _gate(b, now, columns) if gated else _normalized(b, now, 9)
        if skips:
          taken.append(b.convolution(inner, columns, 1))
        now = b.each('AddV2', now, inner)
      b.stage += 1
    if taken:
      now = b.one('AddN', taken, now.shape)
      now = b.each('Relu', b.convolution(now, columns, 1))
    return _pooled(b, now, x.rows)


def random_layers(b: Builder, x: Tensor, units: int) -> Tensor:
  """Adds random ops that read any tensors of the last layers."""
  widest = max(int(builder_lib.between(b.rng, 1, 24)), 1)
  columns = _width(b)
  reach = int(b.rng.integers(1, 6))
  with b.scope('random'):
    layers = [[b.dense(x, columns)]]
    made = 0
    while made < units:
      known = [t for layer in layers[-reach:] for t in layer]
      with b.scope(f'layer_{len(layers)}'):
        layer = [
            _random_op(b, known, columns)
            for _ in range(int(b.rng.integers(1, widest + 1)))
        ]
      layers.append(layer)
      made += len(layer)
      b.stage += 1
    loose = _unread(b, [t for layer in layers for t in layer])
    return b.one('AddN', loose, loose[0].shape)


# From name to family, and the approximate number of ops of a training step per
# unit.
FAMILIES: dict[str, tuple[Family, float]] = {
    'grid': (grid, 52.),
    'seq2seq': (seq2seq, 60.),
    'segments': (segments, 75.),
    'branches': (branches, 14.),
    'attention': (attention, 90.),
    'chain': (chain, 39.),
    'random': (random_layers, 7.),
}


def _factor(b: Builder, units: int, most: int) -> int:
  """Draws the number of stacked units."""
  return int(
      min(builder_lib.between(b.rng, 1, most + 1), most, max(units // 2, 1)))


def _width(b: Builder) -> int:
  return builder_lib.rounded(builder_lib.between(b.rng, 64, 2048))


def _step_input(b: Builder, x: Tensor, step: int) -> Tensor:
  with b.scope(f'input_{step}'):
    return b.one('Slice', (x,), x.shape)


def _joined(b: Builder, parts: list[Tensor]) -> Tensor:
  columns = sum(part.columns for part in parts)
  return b.one('ConcatV2', parts, (parts[0].rows, columns))


def _recurrent_layers(b: Builder, inputs: list[Tensor], layers: int,
                      hidden: int) -> list[Tensor]:
  """Adds layers of LSTM cells, each of which is a stage."""
  for layer in range(layers):
    with b.scope(f'layer_{layer}'):
      inputs = _recurrent(b, inputs, hidden)
    b.stage += 1
  return inputs


def _recurrent(b: Builder, inputs: list[Tensor], hidden: int) -> list[Tensor]:
  """Adds a layer of LSTM cells, one per input, that share their variables."""
  rows = inputs[0].rows
  weights = b.variable(inputs[0].columns + hidden, 4 * hidden)
  bias = b.variable(1, 4 * hidden)
  h = c = b.one('Fill', (), (rows, hidden))
  result = []
  for step, x in enumerate(inputs):
    with b.scope(f'step_{step}'):
      both = b.one('ConcatV2', (x, h), (rows, x.columns + hidden))
      gates = b.each('BiasAdd', b.matmul(both, weights), bias)
      i, f, o, g = b.add('Split', (gates,), *[(rows, hidden)] * 4)
      i, f, o = (b.each('Sigmoid', gate) for gate in (i, f, o))
      kept = b.each('Mul', f, c)
      c = b.each('AddV2', kept, b.each('Mul', i, b.each('Tanh', g)))
      h = b.each('Mul', o, b.each('Tanh', c))
      result.append(h)
  return result


def _attention_weights(b: Builder, width: int, layer: int) -> list[Tensor]:
  inner = builder_lib.rounded(width * b.rng.choice((1, 2, 4)))
  with b.scope(f'weights_{layer}'):
    return [
        *(b.variable(width, width) for _ in range(4)),
        b.variable(width, inner),
        b.variable(inner, width),
        b.variable(1, width)
    ]


def _attention(b: Builder, x: Tensor, before: Tensor | None,
               weights: list[Tensor], heads: int) -> Tensor:
  """Adds attention to itself and the tensor before, and two products."""
  query, key, value, out, wide, narrow, scale = weights
  context = x if before is None else b.one('ConcatV2', (before, x),
                                           (before.rows + x.rows, x.columns))
  q, k, v = (b.each('Transpose', b.matmul(source, w))
             for source, w in ((x, query), (context, key), (context, value)))
  length = min(context.rows, 512)
  shape = (x.rows * heads, length)
  scores = b.one('BatchMatMulV2', (q, k), shape, 2. * q.elements * length)
  shares = b.each('Softmax', scores)
  mixed = b.one('BatchMatMulV2', (shares, v), x.shape, 2. * q.elements * length)
  mixed = b.matmul(b.each('Transpose', mixed), out)
  middle = b.each('FusedBatchNormV3', b.each('AddV2', x, mixed), scale)
  inner = b.each('Relu', b.matmul(middle, wide))
  return b.each('AddV2', middle, b.matmul(inner, narrow))


def _pixels(b: Builder, x: Tensor, rows: int) -> Tensor:
  """Adds tensors like images, one for each row of `x`."""
  narrow = b.dense(x, 4)
  return b.one('Tile', (narrow,), (rows, 4))


def _pooled(b: Builder, x: Tensor, rows: int) -> Tensor:
  return b.one('Mean', (x,), (rows, x.columns), float(x.elements))


def _normalized(b: Builder, x: Tensor, area: int) -> Tensor:
  y = b.convolution(x, x.columns, area)
  y = b.each('FusedBatchNormV3', y, b.variable(1, y.columns))
  return b.each('Relu', y)


def _gate(b: Builder, x: Tensor, columns: int) -> Tensor:
  value = b.each('Tanh', b.convolution(x, columns, 2))
  gate = b.each('Sigmoid', b.convolution(x, columns, 2))
  return b.convolution(b.each('Mul', value, gate), columns, 1)


def _branch(b: Builder, x: Tensor, rows: int, columns: int,
            depth: int) -> Tensor:
  if x.rows != rows:
    x = b.one('MaxPool', (x,), (rows, x.columns))
  for _ in range(depth):
    area = int(b.rng.choice((1, 3, 9, 25)))
    x = b.each('Relu', b.convolution(x, columns, area))
  return x


def _random_op(b: Builder, known: list[Tensor], columns: int) -> Tensor:
  x, y = (known[int(i)] for i in b.rng.integers(len(known), size=2))
  if b.rng.random() < .3:
    return b.dense(x, columns)
  if b.rng.random() < .3:
    return b.each(str(b.rng.choice(('Relu', 'Tanh', 'Softmax'))), x)
  return b.each(str(b.rng.choice(('AddV2', 'Mul', 'Sub'))), x, y)


def _unread(b: Builder, tensors: list[Tensor]) -> list[Tensor]:
  """Returns the tensors that no op reads."""
  read = {t.number for op in b.ops for t in op.inputs}
  return [t for t in tensors if t.number not in read]


def units_for(name: str, ops: float) -> int:
  """Returns how many units of a family make about the given number of ops."""
  return max(math.floor(ops / FAMILIES[name][1]), 1)


def parts_of(rng: np.random.Generator, most: int) -> list[str]:
  """Draws the names of the families of a mixture."""
  count = int(rng.integers(2, most + 1))
  return [str(name) for name in rng.choice(list(FAMILIES), count)]

"""Adds the backward pass and the updates of a graph's variables."""

from __future__ import annotations

import collections
from typing import Callable, Sequence

from gdp_grappler.workloads.synthetic import builder as builder_lib

Tensor = builder_lib.Tensor
# Inputs of an op, each with its gradient.
_Gradients = list[tuple[Tensor, Tensor]]
_Rule = Callable[[builder_lib.Builder, builder_lib.Op, Sequence[Tensor]],
                 _Gradients]
# Number of slots per variable, and operations per element of the variable.
OPTIMIZERS = {
    'ResourceApplyGradientDescent': (0, 2.),
    'ResourceApplyMomentum': (1, 4.),
    'ResourceApplyAdam': (2, 12.),
}
_SCALAR = (1, 1)  # A tensor of one number, as rows and columns.


def train(builder: builder_lib.Builder, loss: Tensor, optimizer: str,
          clips: bool, details: float) -> None:
  """Adds the backward pass and updates to the forward pass of a model.

  Args:
    builder: Builder of the graph, which has the forward pass.
    loss: Tensor to be minimized.
    optimizer: One of `OPTIMIZERS`.
    clips: Whether the norm of all gradients is limited, so that every update
      waits for every gradient.
    details: Share of the broadcasting ops whose gradients get the small ops
      that TensorFlow adds for broadcasting.
  """
  found = _backward(builder, loss, details)
  updated = {
      value: found[value.number] for value in builder.variables
      if value.number in found
  }
  scale = _clipping(builder, list(updated.values())) if clips else None
  last = []
  for value, gradient in updated.items():
    op = builder.ops[builder.variables[value].op]
    builder.stage = op.stage
    with builder.scope(f'train/update_{op.name.replace("/", "_")}'):
      if scale is not None:
        gradient = builder.one('Mul', (gradient, scale), gradient.shape)
      last.append(_update(builder, value, gradient, optimizer))
  with builder.scope('train'):
    builder.add('NoOp', (), flops=0., after=last)


def _update(builder: builder_lib.Builder, value: Tensor, gradient: Tensor,
            optimizer: str) -> int:
  """Adds the op that updates a variable, and returns its index."""
  count, flops = OPTIMIZERS[optimizer]
  handle = builder.variables[value]
  slots = [builder.handle(*value.shape, handle.op) for _ in range(count)]
  builder.add(optimizer, (handle, *slots, gradient),
              flops=flops * value.elements, group=handle.op)
  return len(builder.ops) - 1


def _clipping(builder: builder_lib.Builder,
              gradients: Sequence[Tensor]) -> Tensor:
  norms = []
  for gradient in gradients:
    builder.stage = builder.ops[gradient.op].stage
    norms.append(
        builder.one('L2Loss', (gradient,), _SCALAR, 2. * gradient.elements))
  with builder.scope('global_norm'):
    total = builder.one('AddN', norms, _SCALAR)
    return builder.each('RealDiv', builder.each('Sqrt', total))


def _backward(builder: builder_lib.Builder, loss: Tensor,
              details: float) -> dict[int, Tensor]:
  """Returns the gradients of tensors, by the numbers of the tensors."""
  parts: dict[int, list[Tensor]] = collections.defaultdict(list)
  with builder.scope('gradients'):
    parts[loss.number].append(builder.one('Fill', (), loss.shape))
  result: dict[int, Tensor] = {}
  for op in reversed(builder.ops[:loss.op + 1]):
    some = [out for out in op.outputs if out.number in parts]
    if not some:
      continue
    builder.stage = op.stage
    with builder.scope(f'gradients/{op.name}_grad'):
      for output in some:
        result[output.number] = _sum(builder, parts[output.number])
      if op.op_type in _LEAVES:
        continue
      given = [
          result.get(out.number) or builder.one('ZerosLike', (out,), out.shape)
          for out in op.outputs
      ]
      for source, gradient in _RULES[op.op_type](builder, op, given):
        if op.op_type in _BROADCASTS and builder.rng.random() < details:
          gradient = _unbroadcast(builder, source, gradient)
        parts[source.number].append(gradient)
  return result


def _sum(builder: builder_lib.Builder, parts: list[Tensor]) -> Tensor:
  if len(parts) == 1:
    return parts[0]
  return builder.one('AddN', parts, parts[0].shape,
                     float(len(parts) * parts[0].elements))


def _unbroadcast(builder: builder_lib.Builder, source: Tensor,
                 gradient: Tensor) -> Tensor:
  shape = builder.one('Shape', (source,), (1, 2), 0.)
  axes = builder.one('BroadcastGradientArgs', (shape,), (1, 2), 0.)
  total = builder.one('Sum', (gradient, axes), gradient.shape)
  return builder.one('Reshape', (total, shape), source.shape, 0.)


def _matmul(b: builder_lib.Builder, op: builder_lib.Op,
            given: Sequence[Tensor]) -> _Gradients:
  x, y = op.inputs
  return [(x, b.one(op.op_type, (given[0], y), x.shape, op.flops)),
          (y, b.one(op.op_type, (x, given[0]), y.shape, op.flops))]


def _convolution(b: builder_lib.Builder, op: builder_lib.Op,
                 given: Sequence[Tensor]) -> _Gradients:
  x, weights = op.inputs
  sizes = b.one('Const', (), (1, 4), 0.)
  return [(x,
           b.one('Conv2DBackpropInput', (sizes, weights, given[0]), x.shape,
                 op.flops)),
          (weights,
           b.one('Conv2DBackpropFilter', (x, sizes, given[0]), weights.shape,
                 op.flops))]


def _product(b: builder_lib.Builder, op: builder_lib.Op,
             given: Sequence[Tensor]) -> _Gradients:
  x, y = op.inputs
  return [(x, b.each('Mul', given[0], y)), (y, b.each('Mul', given[0], x))]


def _passed_on(b: builder_lib.Builder, op: builder_lib.Op,
               given: Sequence[Tensor]) -> _Gradients:
  del b
  return [(source, given[0]) for source in op.inputs]


def _of_output(gradient_type: str) -> _Rule:
  """Returns the rule of an activation whose gradient uses the op's output."""

  def rule(b: builder_lib.Builder, op: builder_lib.Op,
           given: Sequence[Tensor]) -> _Gradients:
    return [(op.inputs[0], b.each(gradient_type, op.outputs[0], given[0]))]

  return rule


def _bias(b: builder_lib.Builder, op: builder_lib.Op,
          given: Sequence[Tensor]) -> _Gradients:
  x, bias = op.inputs
  return [(x, given[0]),
          (bias,
           b.one('BiasAddGrad', given, bias.shape, float(given[0].elements)))]


def _concat(b: builder_lib.Builder, op: builder_lib.Op,
            given: Sequence[Tensor]) -> _Gradients:
  return [(x, b.one('Slice', given, x.shape)) for x in op.inputs]


def _split(b: builder_lib.Builder, op: builder_lib.Op,
           given: Sequence[Tensor]) -> _Gradients:
  x, = op.inputs
  return [(x, b.one('ConcatV2', given, x.shape))]


def _same_shape(op_type: str, flops: float | None = None) -> _Rule:
  """Returns the rule of an op whose gradient is one op of another type."""

  def rule(b: builder_lib.Builder, op: builder_lib.Op,
           given: Sequence[Tensor]) -> _Gradients:
    return [(op.inputs[0], b.one(op_type, given, op.inputs[0].shape, flops))]

  return rule


def _softmax(b: builder_lib.Builder, op: builder_lib.Op,
             given: Sequence[Tensor]) -> _Gradients:
  y, = op.outputs
  weighted = b.each('Mul', given[0], y)
  total = b.one('Sum', (weighted,), (y.rows, 1), float(y.elements))
  centred = b.one('Sub', (given[0], total), y.shape)
  return [(op.inputs[0], b.each('Mul', centred, y))]


def _gather(b: builder_lib.Builder, op: builder_lib.Op,
            given: Sequence[Tensor]) -> _Gradients:
  table, ids = op.inputs
  return [(table, b.one('UnsortedSegmentSum', (given[0], ids), table.shape))]


def _normalization(b: builder_lib.Builder, op: builder_lib.Op,
                   given: Sequence[Tensor]) -> _Gradients:
  x, scale = op.inputs
  return list(
      zip(
          op.inputs,
          b.add('FusedBatchNormGradV3', (given[0], x, scale), x.shape,
                scale.shape, flops=8. * x.elements)))


def _pooling(b: builder_lib.Builder, op: builder_lib.Op,
             given: Sequence[Tensor]) -> _Gradients:
  x, = op.inputs
  return [(x, b.one('MaxPoolGrad', (x, op.outputs[0], given[0]), x.shape))]


def _loss(b: builder_lib.Builder, op: builder_lib.Op,
          given: Sequence[Tensor]) -> _Gradients:
  logits, _ = op.inputs
  return [(logits, b.one('Mul', (given[0], logits), logits.shape))]


# Types of ops where backpropagation ends.
_LEAVES = frozenset(
    ('Fill', 'IteratorGetNext', 'Placeholder', 'ReadVariableOp'))
_BROADCASTS = frozenset(('AddV2', 'Mul', 'Sub'))
_RULES: dict[str, _Rule] = {
    'AddN': _passed_on,
    'AddV2': _passed_on,
    'BatchMatMulV2': _matmul,
    'BiasAdd': _bias,
    'ConcatV2': _concat,
    'Conv2D': _convolution,
    'FusedBatchNormV3': _normalization,
    'GatherV2': _gather,
    'MatMul': _matmul,
    'MaxPool': _pooling,
    'Mean': _same_shape('Tile'),
    'Mul': _product,
    'Relu': _of_output('ReluGrad'),
    'Reshape': _same_shape('Reshape', 0.),
    'Sigmoid': _of_output('SigmoidGrad'),
    'Slice': _same_shape('Pad'),
    'Softmax': _softmax,
    'SoftmaxCrossEntropyWithLogits': _loss,
    'Split': _split,
    'Sub': _passed_on,
    'Tanh': _of_output('TanhGrad'),
    'Tile': _same_shape('Sum'),
    'Transpose': _same_shape('Transpose'),
}

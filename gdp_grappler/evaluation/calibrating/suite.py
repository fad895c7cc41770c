"""The ops that a calibration times: the most frequent ops of training steps.

Each op type has sizes from small to large. `Kind.coarse` is every other size. A
calibration measures the coarse sizes first, and the sizes between them later.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, Callable

# A function that makes the inputs of one op, and returns a second function.
# Each call of the second function makes one op with these inputs.
Build = Callable[..., Callable[[], Any]]


@dataclasses.dataclass(frozen=True)
class Kind:
  """One op type with its sizes.

  Attributes:
    op_type: TensorFlow's type of the op.
    build: Function of an `inputs.Inputs` and one of the sizes.
    sizes: Arguments of `build`, from small to large ops.
  """

  op_type: str
  build: Build
  sizes: tuple[tuple[int, ...], ...]

  @property
  def coarse(self) -> tuple[tuple[int, ...], ...]:
    """Every other size, the last one among them."""
    return self.sizes[(len(self.sizes) + 1) % 2::2]

  @property
  def finer(self) -> tuple[tuple[int, ...], ...]:
    """The sizes between the coarse ones."""
    return tuple(size for size in self.sizes if size not in self.coarse)


def _matmul(make: Any, m: int, k: int, n: int) -> Callable[[], Any]:
  a, b = make.floats(m, k), make.floats(k, n)
  return lambda: make.ops.MatMul(a=a, b=b)


def _batch_matmul(make: Any, count: int, rows: int,
                  depth: int) -> Callable[[], Any]:
  a, b = make.floats(count, rows, depth), make.floats(count, depth, rows)
  return lambda: make.ops.BatchMatMulV2(x=a, y=b)


def _einsum(make: Any, batch: int, rows: int, width: int, heads: int,
            depth: int) -> Callable[[], Any]:
  """The projections of attention: [B, T, W] x [W, H, D]."""
  a, b = make.floats(batch, rows, width), make.floats(width, heads, depth)
  return lambda: make.ops.Einsum(inputs=[a, b], equation='abc,cde->abde')


def _convolution(op_type: str) -> Build:

  def build(make: Any, batch: int, side: int, channels: int, filters: int,
            width: int, stride: int) -> Callable[[], Any]:
    return _convolving(make, op_type, make.image(batch, side, channels),
                       make.image(batch, -(-side // stride), filters),
                       (width, width, channels, filters), stride)

  return build


def _depthwise(op_type: str) -> Build:

  def build(make: Any, batch: int, side: int, channels: int,
            width: int) -> Callable[[], Any]:
    shape = make.image(batch, side, channels)
    return _convolving(make, op_type, shape, shape, (width, width, channels, 1),
                       1)

  return build


def _convolving(make: Any, op_type: str, shape: tuple[int, ...],
                out: tuple[int, ...], of_kernel: tuple[int, ...],
                stride: int) -> Callable[[], Any]:
  """A convolution of an image, or one of its gradients."""
  x, y = make.floats(*shape), make.floats(*out)
  kernel = make.floats(*of_kernel)
  op = functools.partial(getattr(make.ops,
                                 op_type), strides=make.strides(stride),
                         padding='SAME', data_format=make.data_format)
  if op_type.endswith('BackpropInput'):
    return lambda: op(input_sizes=make.ints(shape), filter=kernel, out_backprop=
                      y)
  if op_type.endswith('BackpropFilter'):
    return lambda: op(input=x, filter_sizes=make.ints(of_kernel), out_backprop=y
                     )
  return lambda: op(input=x, filter=kernel)


def _cudnn_tensors(make: Any, batch: int, steps: int, inputs: int,
                   units: int) -> dict[str, Any]:
  return dict(input=make.floats(steps, batch,
                                inputs), input_h=make.floats(1, batch, units),
              input_c=make.floats(1, batch, units),
              params=make.floats(4 * units * (inputs + units + 2)),
              sequence_lengths=make.ints([steps] * batch))


def _cudnn_forward(make: Any, *size: int) -> Callable[[], Any]:
  tensors = _cudnn_tensors(make, *size)
  return lambda: make.ops.CudnnRNNV3(rnn_mode='lstm', is_training=True,
                                     time_major=True, **tensors)


def _cudnn_backward(make: Any, *size: int) -> Callable[[], Any]:
  tensors = _cudnn_tensors(make, *size)
  forward = make.ops.CudnnRNNV3(rnn_mode='lstm', is_training=True,
                                time_major=True, **tensors)
  made = dict(output=forward.output, output_h=forward.output_h,
              output_c=forward.output_c, output_backprop=forward.output,
              output_h_backprop=forward.output_h,
              output_c_backprop=forward.output_c,
              reserve_space=forward.reserve_space,
              host_reserved=forward.host_reserved)
  return lambda: make.ops.CudnnRNNBackpropV3(rnn_mode='lstm', time_major=True,
                                             **tensors, **made)


def _of_arrays(op_type: str, sizes: tuple[tuple[int, ...], ...], *arguments:
               str) -> Kind:
  """A kind whose arguments are arrays of one size."""

  def build(make: Any, count: int) -> Callable[[], Any]:
    arrays = {name: make.floats(count) for name in arguments}
    return lambda: getattr(make.ops, op_type)(**arrays)

  return Kind(op_type, build, sizes)


def _add_n(make: Any, count: int) -> Callable[[], Any]:
  terms = [make.floats(count) for _ in range(3)]
  return lambda: make.ops.AddN(inputs=terms)


def _cast(make: Any, count: int) -> Callable[[], Any]:
  x = make.floats(count)
  return lambda: make.ops.Cast(x=x, DstT='float16')


def _bias_add(make: Any, rows: int, width: int) -> Callable[[], Any]:
  x, bias = make.floats(rows, width), make.floats(width)
  return lambda: make.ops.BiasAdd(value=x, bias=bias)


def _bias_add_grad(make: Any, rows: int, width: int) -> Callable[[], Any]:
  x = make.floats(rows, width)
  return lambda: make.ops.BiasAddGrad(out_backprop=x)


def _reduction(op_type: str) -> Build:

  def build(make: Any, rows: int, width: int, axis: int) -> Callable[[], Any]:
    x, axes = make.floats(rows, width), make.ints((axis,))
    return lambda: getattr(make.ops, op_type)(input=x, axis=axes)

  return build


def _tile(make: Any, rows: int, width: int) -> Callable[[], Any]:
  x, times = make.floats(rows, 1), make.ints((1, width))
  return lambda: make.ops.Tile(input=x, multiples=times)


def _transpose(make: Any, batch: int, rows: int,
               width: int) -> Callable[[], Any]:
  x, order = make.floats(batch, rows, width), make.ints((0, 2, 1))
  return lambda: make.ops.Transpose(x=x, perm=order)


def _concat(make: Any, rows: int, width: int) -> Callable[[], Any]:
  parts = [make.floats(rows, width) for _ in range(2)]
  return lambda: make.ops.ConcatV2(values=parts, axis=make.ints(1))


def _slice(make: Any, rows: int, width: int) -> Callable[[], Any]:
  x = make.floats(rows, width)
  begin, size = make.ints((0, width // 2)), make.ints((rows, width // 2))
  return lambda: make.ops.Slice(input=x, begin=begin, size=size)


def _softmax(make: Any, rows: int, width: int) -> Callable[[], Any]:
  x = make.floats(rows, width)
  return lambda: make.ops.Softmax(logits=x)


def _cross_entropy(make: Any, rows: int, width: int) -> Callable[[], Any]:
  x, labels = make.floats(rows, width), make.rows(rows, width)
  return lambda: make.ops.SparseSoftmaxCrossEntropyWithLogits(
      features=x, labels=labels)


def _batch_norm(make: Any, batch: int, side: int,
                channels: int) -> Callable[[], Any]:
  x = make.floats(*make.image(batch, side, channels))
  scale, offset = make.floats(channels), make.floats(channels)
  return lambda: make.ops.FusedBatchNormV3(
      x=x, scale=scale, offset=offset, mean=make.none, variance=make.none,
      is_training=True, data_format=make.data_format)


def _batch_norm_grad(make: Any, batch: int, side: int,
                     channels: int) -> Callable[[], Any]:
  x, y = (make.floats(*make.image(batch, side, channels)) for _ in range(2))
  scale = make.floats(channels)
  forward = make.ops.FusedBatchNormV3(x=x, scale=scale, offset=scale,
                                      mean=make.none, variance=make.none,
                                      is_training=True,
                                      data_format=make.data_format)
  saved = dict(reserve_space_1=forward.reserve_space_1,
               reserve_space_2=forward.reserve_space_2,
               reserve_space_3=forward.reserve_space_3)
  return lambda: make.ops.FusedBatchNormGradV3(
      y_backprop=y, x=x, scale=scale, is_training=True, data_format=make.
      data_format, **saved)


def _max_pool(make: Any, batch: int, side: int,
              channels: int) -> Callable[[], Any]:
  x = make.floats(*make.image(batch, side, channels))
  return lambda: make.ops.MaxPool(input=x, ksize=make.strides(
      2), strides=make.strides(2), padding='VALID', data_format=make.data_format
                                 )


def _max_pool_grad(make: Any, batch: int, side: int,
                   channels: int) -> Callable[[], Any]:
  x = make.floats(*make.image(batch, side, channels))
  y = make.floats(*make.image(batch, side // 2, channels))
  return lambda: make.ops.MaxPoolGrad(
      orig_input=x, orig_output=y, grad=y, ksize=make.strides(2), strides=make.
      strides(2), padding='VALID', data_format=make.data_format)


def _gather(make: Any, table: int, width: int, rows: int) -> Callable[[], Any]:
  params, indices = make.floats(table, width), make.rows(rows, table)
  return lambda: make.ops.GatherV2(params=params, indices=indices, axis=make.
                                   ints(0))


def _segment_sum(make: Any, table: int, width: int,
                 rows: int) -> Callable[[], Any]:
  data, segments = make.floats(rows, width), make.rows(rows, table)
  return lambda: make.ops.UnsortedSegmentSum(data=data, segment_ids=segments,
                                             num_segments=make.ints(table))


def _random(make: Any, count: int) -> Callable[[], Any]:
  shape = make.ints((count,))
  return lambda: make.ops.RandomUniform(shape=shape, dtype='float32')


def _assign(op_type: str) -> Build:

  def build(make: Any, count: int) -> Callable[[], Any]:
    variable, value = make.variable(count), make.floats(count)
    return lambda: getattr(make.ops, op_type)(resource=variable.handle, value=
                                              value)

  return build


def _adam(make: Any, count: int) -> Callable[[], Any]:
  var, m, v = (make.variable(count) for _ in range(3))
  grad, rate = make.floats(count), make.constant(.001)
  return lambda: make.ops.ResourceApplyAdam(
      var=var.handle, m=m.handle, v=v.handle, beta1_power=rate, beta2_power=
      rate, lr=rate, beta1=rate, beta2=rate, epsilon=rate, grad=grad)


# Elements of the arrays of elementwise ops.
_COUNTS = ((1 << 8,), (1 << 12,), (1 << 16,), (1 << 20,), (1 << 23,),
           (1 << 26,))
# Rows and columns of matrices.
_ROWS = ((64, 64), (512, 256), (4096, 256), (8192, 1024), (4096, 32_000))
# Rows and columns of a matrix, and the axis over which it is reduced.
_AXES = ((64, 64, 1), (128, 64, 0), (4096, 256, 1), (4096, 256, 0),
         (65_536, 256, 0), (8192, 4096, 1), (8192, 4096, 0))
# Batch, side and channels of images.
_IMAGES = ((8, 8, 32), (16, 16, 64), (64, 28, 64), (64, 56, 64), (64, 56, 256))
# Batch, side, channels, filters, width of the kernel, and stride.
_CONVOLUTIONS = ((1, 8, 16, 16, 3, 1), (64, 32, 3, 64, 3, 1),
                 (64, 32, 64, 64, 5, 1), (64, 7, 512, 512, 3, 1),
                 (64, 14, 256, 1024, 1, 1), (64, 16, 128, 128, 3, 1),
                 (64, 56, 64, 256, 1, 1), (64, 224, 3, 64, 7, 2),
                 (64, 56, 64, 64, 3, 1), (64, 56, 128, 128, 3, 2), (64, 56, 128,
                                                                    256, 3, 1))
# Batch, side, channels, and width of the kernel.
_DEPTHWISE = ((1, 8, 32, 3), (32, 28, 144, 3), (64, 14, 384, 3),
              (64, 56, 144, 5), (64, 112, 96, 3))
# Batch, time steps, inputs and units of a recurrent layer.
_CELLS = ((8, 8, 64, 64), (64, 16, 256, 256), (64, 48, 512, 512), (20, 35, 1500,
                                                                   1500))
# Rows of the table, columns, and rows that are gathered.
_TABLES = ((1000, 16, 64), (4000, 512, 3072), (20_000, 512, 4096),
           (200_000, 128, 10_240))

# The most important kinds come first. Training steps spend the most time in
# these.
KINDS = (
    Kind('MatMul', _matmul,
         ((16, 16, 16), (64, 64, 64), (64, 1024, 10), (256, 1024, 1024),
          (256, 1024, 4096), (64, 2048, 8192), (4096, 512, 512),
          (4096, 512, 2048), (2048, 2048, 2048), (4096, 512, 20_000),
          (4096, 4096, 4096))),
    *(Kind(kind, _convolution(kind), _CONVOLUTIONS)
      for kind in ('Conv2D', 'Conv2DBackpropInput', 'Conv2DBackpropFilter')),
    _of_arrays('Mul', _COUNTS, 'x', 'y'),
    Kind('CudnnRNNV3', _cudnn_forward, _CELLS),
    Kind('CudnnRNNBackpropV3', _cudnn_backward, _CELLS),
    Kind('BatchMatMulV2', _batch_matmul,
         ((8, 16, 16), (64, 64, 64), (256, 128, 64), (64, 512, 64),
          (256, 512, 64))),
    Kind('Einsum', _einsum,
         ((2, 16, 64, 4, 16), (32, 128, 512, 8, 64), (32, 512, 512, 8, 64))),
    _of_arrays('AddV2', _COUNTS, 'x', 'y'),
    Kind('AssignAddVariableOp', _assign('AssignAddVariableOp'), _COUNTS),
    _of_arrays('Sqrt', _COUNTS, 'x'),
    _of_arrays('RealDiv', _COUNTS, 'x', 'y'),
    *(Kind(kind, _reduction(kind), _AXES) for kind in ('Sum', 'Mean')),
    Kind('Transpose', _transpose, ((1, 64, 64), (1, 1024, 1024), (64, 196, 256),
                                   (64, 3136, 64), (64, 3136, 256))),
    Kind('FusedBatchNormV3', _batch_norm, _IMAGES),
    Kind('FusedBatchNormGradV3', _batch_norm_grad, _IMAGES),
    Kind('Softmax', _softmax, _ROWS),
    Kind('BiasAdd', _bias_add, _ROWS),
    Kind('BiasAddGrad', _bias_add_grad, _ROWS),
    _of_arrays('Relu', _COUNTS, 'features'),
    _of_arrays('ReluGrad', _COUNTS, 'gradients', 'features'),
    Kind('GatherV2', _gather, _TABLES),
    Kind('UnsortedSegmentSum', _segment_sum, _TABLES),
    Kind('SparseSoftmaxCrossEntropyWithLogits', _cross_entropy, _ROWS),
    Kind('MaxPool', _max_pool, _IMAGES),
    Kind('MaxPoolGrad', _max_pool_grad, _IMAGES),
    Kind('Tile', _tile, _ROWS),
    Kind('AddN', _add_n, _COUNTS[1:5]),
    Kind('ConcatV2', _concat, _ROWS[1:]),
    Kind('Slice', _slice, _ROWS[1:]),
    _of_arrays('Pow', _COUNTS[1:5], 'x', 'y'),
    _of_arrays('Square', _COUNTS[1:5], 'x'),
    _of_arrays('Tanh', _COUNTS[1:5], 'x'),
    Kind('Cast', _cast, _COUNTS[1:5]),
    *(Kind(kind, _depthwise(kind), _DEPTHWISE)
      for kind in ('DepthwiseConv2dNative',
                   'DepthwiseConv2dNativeBackpropInput',
                   'DepthwiseConv2dNativeBackpropFilter')),
    Kind('ResourceApplyAdam', _adam, _COUNTS[1:5]),
    Kind('RandomUniform', _random, _COUNTS[1:5]),
)

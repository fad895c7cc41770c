"""Splits fused ops of Grappler's remapper and arithmetic optimizer into parts.

Each rule replaces a fused kernel of a CPU by ops with the same result that have
kernels on GPUs (tensorflow/core/kernels: matmul_op_fused.cc,
conv_ops_fused_impl.h, unary_ops_composition.cc, and mkl/).
"""

from __future__ import annotations

import math
from typing import Any, Callable, Mapping, Sequence

from tensorflow.core.framework import node_def_pb2
from tensorflow.python.framework import dtypes
from tensorflow.python.framework import tensor_util

from gdp_grappler.graph import name_parts
from gdp_grappler.graph.legality import kernels

# Attributes that TensorFlow ignores are copied to the parts. This one is not,
# because the shapes of parts may differ.
_SHAPES = '_output_shapes'
# Before parts have names, inputs refer to a part by this prefix and its number.
# No node's name begins with this prefix.
_OWN = '#'
# The first op of a fused op, and the attributes that it takes over.
_CONVOLUTION = ('strides', 'padding', 'data_format', 'dilations')
_BEGINNINGS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    '_FusedMatMul': ('MatMul', ('transpose_a', 'transpose_b')),
    '_FusedConv2D':
        ('Conv2D', (*_CONVOLUTION, 'explicit_paddings', 'use_cudnn_on_gpu')),
    '_FusedConv3D': ('Conv3D', _CONVOLUTION),
    '_FusedDepthwiseConv2dNative': ('DepthwiseConv2dNative', _CONVOLUTION),
    '_MklFusedBatchMatMulV2': ('BatchMatMulV2', ('adj_x', 'adj_y')),
}
# Attributes of fused ops that their parts cannot express.
_UNSAYABLE = ('padding_list', 'num_host_args')
# BiasAdd only has layouts of images, also for volumes.
_LAYOUTS = {
    b'NHWC': b'NHWC', b'NCHW': b'NCHW', b'NDHWC': b'NHWC', b'NCDHW': b'NCHW'
}


class _CannotSay(Exception):
  """A fused op has a part that no rule can express."""


def fused_ops(node: node_def_pb2.NodeDef) -> tuple[str, ...]:
  """Returns the ops after the first op of a fused op: ('BiasAdd', 'Relu')."""
  names = node.attr['fused_ops'].list.s if 'fused_ops' in node.attr else ()
  return tuple(name.decode(errors='replace') for name in names)


def parts(node: node_def_pb2.NodeDef,
          taken: set[str]) -> list[node_def_pb2.NodeDef] | None:
  """Returns ops that together compute the same as a fused op.

  Args:
    node: The fused op.
    taken: Names of the graph's nodes. The names of the parts are added.

  Returns:
    The parts, of which the last one has the name of the fused op; None if there
    is no rule.
  """
  rule = _RULES.get(node.op)
  if rule is None:
    return None
  made = _Parts(node)
  try:
    rule(made)
  except _CannotSay:
    return None
  return made.named(taken)


class _Parts:
  """The ops that replace a fused op.

  Attributes:
    node: The fused op.
    inputs: The tensors that it reads.
  """

  def __init__(self, node: node_def_pb2.NodeDef) -> None:
    self.node = node
    self.inputs = [t for t in node.input if not t.startswith('^')]
    self._made: list[node_def_pb2.NodeDef] = []

  def add(self, op: str, *inputs: str | int, copied: Sequence[str] = (),
          **attributes: Any) -> int:
    """Adds an op; returns the number by which others read its first output.

    Args:
      op: Type of the op.
      *inputs: Tensors of the graph, or numbers that this method returned.
      copied: Names of attributes to copy from the fused op.
      **attributes: Other attributes: bool, float, bytes, or a DataType. All ops
        other than 'Const' also have the fused op's `T`.
    """
    node = node_def_pb2.NodeDef(op=op, device=self.node.device)
    node.input.extend(t if isinstance(t, str) else f'{_OWN}{t}' for t in inputs)
    node.experimental_debug_info.CopyFrom(self.node.experimental_debug_info)
    for name, value in self.node.attr.items():
      if name.startswith('_') and name != _SHAPES or name in copied:
        node.attr[name].CopyFrom(value)
    if op != 'Const':
      node.attr['T'].CopyFrom(self.node.attr['T'])
    for name, value in attributes.items():
      _set(node, name, value)
    self._made.append(node)
    return len(self._made) - 1

  def constant(self, value: Any, dtype: int | None = None) -> int:
    """Adds a constant of the fused op's type, or of another type."""
    kind = dtype or self.node.attr['T'].type
    made = self.add('Const', f'^{name_parts.node_of(self.inputs[0])}')
    attributes = self._made[made].attr
    attributes['dtype'].type = kind
    attributes['value'].tensor.CopyFrom(
        tensor_util.make_tensor_proto(value, dtypes.as_dtype(kind)))
    return made

  def named(self, taken: set[str]) -> list[node_def_pb2.NodeDef]:
    """Returns all parts, with names and with the fused op's control inputs."""
    waits = [t for t in self.node.input if t.startswith('^')]
    names = [self._free(n.op, taken) for n in self._made[:-1]]
    names.append(self.node.name)
    for node, name in zip(self._made, names):
      node.name = name
      tensors = [
          names[int(t.removeprefix(_OWN))] if t.startswith(_OWN) else t
          for t in node.input
      ]
      del node.input[:]
      node.input.extend(
          dict.fromkeys((*tensors,
                         *waits)) if node.op == 'Const' else (*tensors, *waits))
    return self._made

  def _free(self, op: str, taken: set[str]) -> str:
    name = first = f'{self.node.name}/{op}'
    count = 0
    while name in taken:
      count += 1
      name = f'{first}_{count}'
    taken.add(name)
    return name


def _set(node: node_def_pb2.NodeDef, name: str, value: Any) -> None:
  attribute = node.attr[name]
  if isinstance(value, bool):
    attribute.b = value
  elif isinstance(value, float):
    attribute.f = value
  elif isinstance(value, bytes):
    attribute.s = value
  else:
    attribute.type = value


def _unary_composition(made: _Parts) -> None:
  """Adds a chain of ops with one input each."""
  value: str | int = made.inputs[0]
  names = made.node.attr['op_names'].list.s
  if not names:
    raise _CannotSay
  for name in names:
    op = name.decode(errors='replace')
    definition = kernels.op_def(op)
    if definition is None or len(definition.input_arg) != 1:
      raise _CannotSay
    value = made.add(op, value)


def _fused(made: _Parts) -> None:
  """Adds a product or a convolution, and the ops after it."""
  node = made.node
  beginning, copied = _BEGINNINGS[node.op]
  if any(name in node.attr and (node.attr[name].i or node.attr[name].list.i)
         for name in _UNSAYABLE):
    raise _CannotSay
  value = made.add(beginning, *made.inputs[:2], copied=copied)
  arguments = made.inputs[2:]
  for name in fused_ops(node):
    rule, taken = _STEPS.get(name, (None, 0))
    if rule is None or len(arguments) < taken:
      raise _CannotSay
    value = rule(made, value, *arguments[:taken])
    arguments = arguments[taken:]
  if arguments:
    raise _CannotSay


def _layout(made: _Parts) -> bytes:
  attributes = made.node.attr
  own = attributes['data_format'].s if 'data_format' in attributes else b''
  return _LAYOUTS.get(own, b'NHWC')


def _bias(made: _Parts, value: int, bias: str) -> int:
  return made.add('BiasAdd', value, bias, data_format=_layout(made))


def _batch_norm(made: _Parts, value: int, *arguments: str) -> int:
  return made.add('FusedBatchNormV3', value, *arguments, copied=('epsilon',),
                  data_format=_layout(made), is_training=False,
                  U=dtypes.float32.as_datatype_enum)


def _leaky_relu(made: _Parts, value: int) -> int:
  return made.add('LeakyRelu', value, alpha=made.node.attr['leakyrelu_alpha'].f)


def _swish(made: _Parts, value: str | int) -> int:
  return made.add('Mul', value, made.add('Sigmoid', value))


def _mish(made: _Parts, value: str | int) -> int:
  return made.add('Mul', value, made.add('Tanh', made.add('Softplus', value)))


def _hard_swish(made: _Parts, value: int) -> int:
  gate = made.add('Relu6', made.add('AddV2', value, made.constant(3.)))
  return made.add('Mul', made.add('Mul', value, gate), made.constant(1 / 6))


def _gelu_exact(made: _Parts, value: int) -> int:
  """Adds x / 2 (1 + erf(x / sqrt 2))."""
  shrunk = made.add('Mul', value, made.constant(math.sqrt(.5)))
  gate = made.add('AddV2', made.add('Erf', shrunk), made.constant(1.))
  return made.add('Mul', made.add('Mul', value, made.constant(.5)), gate)


def _gelu_approximate(made: _Parts, value: int) -> int:
  """Adds x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))."""
  cube = made.add('Mul', made.add('Square', value), value)
  inner = made.add('AddV2', value, made.add('Mul', cube,
                                            made.constant(.044715)))
  scaled = made.add('Mul', inner, made.constant(math.sqrt(2 / math.pi)))
  gate = made.add('AddV2', made.add('Tanh', scaled), made.constant(1.))
  return made.add('Mul', made.add('Mul', value, made.constant(.5)), gate)


def _one(op: str) -> Callable[..., int]:
  return lambda made, value, *arguments: made.add(op, value, *arguments)


_ACTIVATIONS = ('Relu', 'Relu6', 'Elu', 'Tanh', 'Sigmoid')
# By name in `fused_ops`: the rule, and the number of the fused op's tensors it
# reads.
_STEPS: Mapping[str, tuple[Callable[..., int], int]] = {
    **{name: (_one(name), 0) for name in _ACTIVATIONS}, 'BiasAdd': (_bias, 1),
    'Add': (_one('AddV2'), 1), 'Mul': (_one('Mul'), 1),
    'FusedBatchNorm': (_batch_norm, 4), 'LeakyRelu': (_leaky_relu, 0),
    '_MklSwish': (_swish, 0), '_MklFusedMish': (_mish, 0), '_FusedHardSwish':
        (_hard_swish, 0), 'GeluExact': (_gelu_exact, 0), 'GeluApproximate':
            (_gelu_approximate, 0)
}


def _normalized(made: _Parts, axes: Sequence[int], scale: str | int,
                offset: str | int) -> int:
  """Normalizes to mean 0 and variance 1 along axes, then scales and shifts."""
  value = made.inputs[0]
  along = made.constant(list(axes), dtypes.int32.as_datatype_enum)
  mean = made.add('Mean', value, along, keep_dims=True)
  squares = made.add('SquaredDifference', value, mean)
  variance = made.add('Mean', squares, along, keep_dims=True)
  epsilon = made.constant(made.node.attr['epsilon'].f)
  factor = made.add('Rsqrt', made.add('AddV2', variance, epsilon))
  centred = made.add('Mul', made.add('Sub', value, mean), factor)
  return made.add('AddV2', made.add('Mul', centred, scale), offset)


def _layer_norm(made: _Parts) -> None:
  _normalized(made, [-1], *made.inputs[1:])


def _instance_norm(made: _Parts) -> None:
  """Normalizes over pixels of each channel and image; scales per channel."""
  axes = list(made.node.attr['reduction_axes'].list.i)
  rank = len(axes) + 2
  shape = [-1 if i not in (0, *axes) else 1 for i in range(rank)]
  if shape.count(-1) != 1:
    raise _CannotSay
  scale, offset = (made.add('Reshape', t,
                            made.constant(shape, dtypes.int32.as_datatype_enum))
                   for t in made.inputs[1:])
  value = _normalized(made, axes, scale, offset)
  for name in fused_ops(made.node):
    rule, taken = _STEPS.get(name, (None, 1))
    if rule is None or taken:
      raise _CannotSay
    value = rule(made, value)


_RULES: Mapping[str, Callable[[_Parts], Any]] = {
    **dict.fromkeys(_BEGINNINGS, _fused),
    '_UnaryOpsComposition':
        _unary_composition,
    '_MklSwish':
        lambda made: _swish(made, made.inputs[0]),
    '_MklFusedMish':
        lambda made: _mish(made, made.inputs[0]),
    '_MklLayerNorm':
        _layer_norm,
    '_MklFusedInstanceNorm':
        _instance_norm,
}

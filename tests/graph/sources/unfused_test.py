"""Fused ops and their parts, run side by side on the CPU."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework import node_def_pb2

from gdp_grappler.graph.legality import kernels
from gdp_grappler.graph.sources import unfused
from gdp_grappler.processes import calls

_IMAGE, _FILTER, _BIAS = (2, 8, 8, 4), (3, 3, 4, 6), (6,)
_VIDEO, _VIDEO_FILTER = (2, 4, 8, 8, 3), (2, 3, 3, 3, 6)
_CONVOLUTION = dict(strides=[1, 2, 2, 1], padding=b'SAME', dilations=[1] * 4)
_DEPTHWISE = dict(strides=[1] * 4, padding=b'SAME', dilations=[1] * 4)
_VOLUME = dict(strides=[1] * 5, padding=b'VALID', dilations=[1] * 5)
_ACTIVATIONS = ('Relu', 'Relu6', 'Elu', 'LeakyRelu')
_STATISTICS = ((6,),) * 4

# Op, attributes, shapes of what it reads.
_CASES = [
    ('_MklSwish', {}, ((3, 5),)),
    ('_MklFusedMish', {}, ((3, 5),)),
    ('_UnaryOpsComposition', dict(op_names=['Exp', 'Log1p']), ((3, 5),)),
    ('_UnaryOpsComposition', dict(op_names=['Square', 'Sqrt', 'Tanh']), ((3,
                                                                          5),)),
    ('_UnaryOpsComposition', dict(op_names=['Neg', 'Exp']), ((3, 5),)),
    *(('_FusedMatMul', dict(fused_ops=['BiasAdd', *step]),
       ((3, 4), (4, 6), (6,))) for step in ((), *((a,) for a in _ACTIVATIONS))),
    ('_FusedMatMul', dict(fused_ops=['BiasAdd'],
                          transpose_b=True), ((3, 4), (6, 4), (6,))),
    *(('_FusedConv2D', dict(fused_ops=['BiasAdd', *step], **_CONVOLUTION),
       (_IMAGE, _FILTER, _BIAS))
      for step in ((), *((a,) for a in _ACTIVATIONS))),
    ('_FusedConv2D',
     dict(fused_ops=['FusedBatchNorm', 'Relu'], epsilon=1e-2,
          **_CONVOLUTION), (_IMAGE, _FILTER, *_STATISTICS)),
    *(('_FusedMatMul', dict(fused_ops=['BiasAdd', step]), ((3, 4), (4, 6),
                                                           (6,)))
      for step in ('Tanh', 'Sigmoid', 'GeluExact', 'GeluApproximate')),
    ('_FusedMatMul', dict(fused_ops=['BiasAdd', 'Add']), ((3, 4), (4, 6), (6,),
                                                          (3, 6))),
    *(('_FusedConv2D', dict(fused_ops=['BiasAdd', step], **_CONVOLUTION),
       (_IMAGE, _FILTER, _BIAS)) for step in ('_MklSwish', '_FusedHardSwish')),
    ('_FusedConv2D', dict(fused_ops=['BiasAdd', 'Add'], **_CONVOLUTION),
     (_IMAGE, _FILTER, _BIAS, (2, 4, 4, 6))),
    *(('_FusedConv3D', dict(fused_ops=['BiasAdd', *step], **_VOLUME),
       (_VIDEO, _VIDEO_FILTER, _BIAS)) for step in ((), ('Relu',))),
    *(('_FusedDepthwiseConv2dNative',
       dict(fused_ops=['BiasAdd', *step], **_DEPTHWISE),
       (_IMAGE, (3, 3, 4, 1), (4,))) for step in ((), ('Relu6',))),
    ('_MklFusedBatchMatMulV2', dict(fused_ops=['Mul', 'Add'], adj_y=True),
     ((2, 2, 3, 4), (2, 2, 5, 4), (), (2, 1, 3, 5))),
    ('_MklLayerNorm', dict(epsilon=1e-2), ((3, 4, 6), (6,), (6,))),
    *(('_MklFusedInstanceNorm',
       dict(fused_ops=step, reduction_axes=axes, epsilon=1e-2),
       (_IMAGE, (channels,), (channels,)))
      for axes, channels in (([1, 2], 4), ([2, 3], 8))
      for step in ([], ['Relu'], ['LeakyRelu'])),
]


def _node(op, attributes, count):
  node = node_def_pb2.NodeDef(name='x/fused', op=op,
                              input=[f'in{i}' for i in range(count)])
  node.attr['T'].type = tf.float32.as_datatype_enum
  read = {
      '_FusedMatMul': 2, '_FusedConv2D': 2, '_FusedConv3D': 2,
      '_FusedDepthwiseConv2dNative': 2, '_MklFusedBatchMatMulV2': 2
  }
  if op in read:
    node.attr['num_args'].i = count - read[op]
  if op == '_FusedConv2D':
    node.attr['TArgs'].list.type.extend([1] * (count - 2))
  for name, value in attributes.items():
    attribute = node.attr[name]
    if isinstance(value, bool):
      attribute.b = value
    elif isinstance(value, float):
      attribute.f = value
    elif isinstance(value, bytes):
      attribute.s = value
    elif value and isinstance(value[0], str):
      attribute.list.s.extend(v.encode() for v in value)
    else:
      attribute.list.i.extend(value)
  if 'LeakyRelu' in attributes.get('fused_ops', ()):
    node.attr['leakyrelu_alpha'].f = .3
  return node


@pytest.fixture(scope='module', name='computed')
def _computed():
  """For each case what its parts compute, and what the fused op does.

  The kernels of some are oneDNN's, which is on in a process of its own.
  """
  runs = []
  for case in _CASES:
    fused, parts, inputs = _case(*case)
    runs.append(([part.SerializeToString() for part in parts], inputs))
    runs.append(([fused.SerializeToString()], inputs))
  found = calls.call('helpers.fused_runs:run_all', runs, timeout_s=200.,
                     environment={'TF_ENABLE_ONEDNN_OPTS': '1'})
  return list(zip(found[::2], found[1::2]))


def _case(op, attributes, shapes):
  """The fused op, its parts, and what they are fed."""
  rng = np.random.default_rng(0)
  inputs = {
      f'in{i}': rng.uniform(.2, 2, shape).astype(np.float32) - (i == 0)
      for i, shape in enumerate(shapes)
  }
  fused = _node(op, attributes, len(shapes))
  return fused, unfused.parts(fused, {'x/fused', *inputs}), inputs


@pytest.mark.parametrize('number', range(len(_CASES)),
                         ids=[f'{c[0]}-{i}' for i, c in enumerate(_CASES)])
def test_parts_compute_what_the_fused_op_does(number, computed):
  _, parts, _ = _case(*_CASES[number])
  assert len(parts) > 1 and parts[-1].name == 'x/fused'
  assert all(kernels.allowed_types(part)[1] for part in parts)
  of_parts, of_fused = computed[number]
  np.testing.assert_allclose(of_parts, of_fused, rtol=1e-5, atol=1e-5)

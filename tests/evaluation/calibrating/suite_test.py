"""Every op of the suite can be built, and has a kernel on a GPU."""

import numpy as np
import pytest
import tensorflow as tf

from gdp_grappler.evaluation.calibrating import inputs
from gdp_grappler.evaluation.calibrating import suite
from gdp_grappler.evaluation.costs import roofline
from gdp_grappler.graph import graph_def_io
from gdp_grappler.graph import op_graph
from gdp_grappler.graph import source_graph
from gdp_grappler.graph.legality import kernels

_GPU = '/job:localhost/replica:0/task:0/device:GPU:0'
_ON_GPU = op_graph.DEVICE_TYPES.index('GPU')
# What the issue asks for, by the names of `op_families`.
_FAMILIES = {
    'matmul', 'batch_matmul', 'convolution', 'convolution_gradient',
    'depthwise', 'recurrent', 'elementwise', 'movement', 'transpose',
    'reduction', 'normalization', 'pooling', 'gather', 'scatter', 'random'
}


def _graph_of(kind, on_gpu=True):
  """A graph with one op of each size, as on a card, and these ops."""
  made = []
  with tf.Graph().as_default() as graph, tf.device(_GPU):
    make = inputs.Inputs(on_gpu)
    for size in kind.sizes:
      make.begin()
      op = kind.build(make, *size)()
      while isinstance(op, (list, tuple)):
        op = op[0]
      made.append(getattr(op, 'op', op))
  return graph, made


@pytest.mark.parametrize('kind', suite.KINDS, ids=lambda kind: kind.op_type)
def test_all_that_is_on_the_card_has_a_kernel_there(kind):
  graph, made = _graph_of(kind)
  assert {op.type for op in made} == {kind.op_type}
  lacking = [(node.name, node.op) for node in graph.as_graph_def().node
             if node.device == _GPU and not kernels.allowed_types(node)[_ON_GPU]
            ]
  assert not lacking


@pytest.mark.parametrize('kind', suite.KINDS, ids=lambda kind: kind.op_type)
def test_sizes_grow_and_are_told_apart(kind):
  graph, made = _graph_of(kind)
  names = tuple(op.name for op in made)
  read = graph_def_io.read(
      source_graph.SourceGraph('kinds', graph.as_graph_def(add_shapes=True), (),
                               names))
  rows = [read.names.index(name) for name in names]
  sizes = np.stack([read.flops[rows], read.io_bytes[rows]], 1)
  assert len(np.unique(sizes, axis=0)) == len(kind.sizes)
  work = sizes.max(1)
  assert work[-1] > 30 * work[0]


def test_all_families_are_there():
  found = {roofline.family(kind.op_type) for kind in suite.KINDS}
  assert _FAMILIES <= found


def test_coarse_sizes_are_the_ends_and_finer_ones_the_rest():
  for kind in suite.KINDS:
    assert kind.sizes[-1] in kind.coarse
    assert not set(kind.coarse) & set(kind.finer)
    assert set(kind.coarse) | set(kind.finer) == set(kind.sizes)


def test_an_op_never_reads_one_tensor_twice():
  for kind in suite.KINDS:
    _, made = _graph_of(kind)
    floats = [t.name for t in made[-1].inputs if t.dtype == tf.float32]
    if kind.op_type not in _SHARED:
      assert len(set(floats)) == len(floats), kind.op_type


# Scalars, and what the forward pass has made.
_SHARED = {'ResourceApplyAdam', 'CudnnRNNBackpropV3', 'MaxPoolGrad'}

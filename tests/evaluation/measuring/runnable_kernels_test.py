"""Whatever a runnable graph puts on a GPU has a kernel there, by the registry.

No GPU is needed: TensorFlow registers its kernels for GPUs in all builds.
"""

import functools
import pathlib
import re
import tempfile

import numpy as np
import pytest
from tensorflow.core.framework import graph_pb2
from tensorflow.core.framework import types_pb2
from tensorflow.python.framework import kernels as tf_kernels
from tensorflow.python.framework import op_def_registry

from gdp_grappler.evaluation.measuring import runnable
from gdp_grappler.evaluation.profiling import profiler
from gdp_grappler.graph import graph_def_io
from gdp_grappler.graph.sources import sources
from gdp_grappler.workloads import registry
from helpers import recorded

_TESTDATA = pathlib.Path(__file__).parents[2] / 'testdata'
_GPU = '/job:localhost/replica:0/task:0/device:GPU:0'
_HOST = '/job:localhost/replica:0/task:0/device:CPU:0'
# One of each family that is built in seconds.
_WORKLOADS = ('rnnlm-2@tiny', 'transformer-xl-2@tiny', 'inception-v3-b32@tiny',
              'amoebanet@tiny', 'wavenet-2x18@tiny', 'resnet-50@tiny')
_TRAIN_STEPS = ('dense', 'lstm')


def _source(name, folder):
  if name in recorded.NAMES:
    return recorded.source(name, folder)
  if name in _TRAIN_STEPS:
    return sources.load(str(_TESTDATA / f'{name}_train_step.pb'))
  return registry.source(name)


@functools.cache
def _read(name):
  """A graph, and what can be run of it."""
  with tempfile.TemporaryDirectory() as folder:
    source = _source(name, pathlib.Path(folder))
  return graph_def_io.read(source, unknown_dim=4), runnable.convert(source, 4)


def _kernels():
  """Op type -> its kernels that serve a GPU."""
  result = {}
  for kernel in tf_kernels.get_all_registered_kernels().kernel:
    if kernel.device_type in ('GPU', 'DEFAULT'):
      result.setdefault(kernel.op, []).append(kernel)
  return result


_KERNELS = _kernels()


def _values(node, name):
  """The types of an attribute, its default where the node has none."""
  definition = op_def_registry.get(node.op)
  default = next(a.default_value for a in definition.attr if a.name == name)
  value = node.attr[name] if name in node.attr else default
  return tuple(value.list.type) or (value.type,)


@functools.cache
def _constrained(op):
  """Names of the attributes that its kernels of a GPU constrain."""
  return sorted({
      c.name for kernel in _KERNELS.get(op, ()) for c in kernel.constraint
      if c.allowed_values.list.type
  })


@functools.cache
def _serves(op, label, types):
  """Whether a kernel of a GPU has all of these (attribute, types)."""
  types = dict(types)
  return any(kernel.label == label and all(
      types[c.name] <= set(c.allowed_values.list.type)
      for c in kernel.constraint if c.allowed_values.list.type)
             for kernel in _KERNELS.get(op, ()))


def _has_kernel(node):
  """Whether a kernel of a GPU is for the types of a node."""
  label = node.attr['_kernel'].s.decode() if '_kernel' in node.attr else ''
  types = tuple(
      (name, frozenset(_values(node, name))) for name in _constrained(node.op))
  return _serves(node.op, label, types)


def _touched(graph_def):
  """Handle -> the devices of those that touch it by name."""
  handles = {
      n.name: {n.device} for n in graph_def.node
      if n.op in ('VarHandleOp', 'VariableV2', 'Variable')
  }
  for node in graph_def.node:
    for tensor in node.input[:1]:
      if tensor.split(':')[0] in handles:
        handles[tensor.split(':')[0]].add(node.device)
  return handles


def _check(placed):
  on_gpu = [n for n in placed.node if n.device.endswith('GPU:0')]
  lacking = [(n.name, n.op) for n in on_gpu if not _has_kernel(n)]
  assert not lacking
  spread = {k: d for k, d in _touched(placed).items() if len(d - {''}) > 1}
  assert not spread
  return on_gpu


@pytest.mark.parametrize('name', (*recorded.NAMES, *_TRAIN_STEPS, *_WORKLOADS))
def test_all_that_may_be_on_a_gpu_is_there_with_a_kernel(name):
  graph, converted = _read(name)
  devices = dict(zip(graph.names, profiler.devices(graph, _GPU)))
  placed = converted.placed(devices)
  on_gpu = _check(placed)
  assert len(on_gpu) > len(placed.node) / 3


@pytest.mark.parametrize('name', recorded.NAMES)
def test_any_placement_of_what_may_move_has_kernels(name):
  """As the placers and the measurer put ops, some here, some there."""
  graph, converted = _read(name)
  both = profiler.devices(graph, _GPU)
  for seed in range(3):
    group_on_gpu = np.random.default_rng(seed).random(graph.num_groups) < .5
    devices = {
        op: device if group_on_gpu[group] else _HOST
        for op, group, device in zip(graph.names, graph.groups, both)
    }
    _check(converted.placed(devices))


def test_integers_of_a_batch_stay_on_the_host(tmp_path):
  """A variable of int32 has no kernel on a GPU: nor may its read be there."""
  source = recorded.source('cnn', tmp_path)
  graph = graph_def_io.read(source)
  placed = runnable.convert(source).placed(dict.fromkeys(graph.names, _GPU))
  devices = {n.name: n.device for n in placed.node}
  types = {
      n.name: n.attr['dtype'].type for n in placed.node if n.op == 'VarHandleOp'
  }
  inputs = [n for n in types if re.search(r'IteratorGetNext/gdp_value_\d+$', n)]
  assert {types[n] for n in inputs} == {types_pb2.DT_FLOAT, types_pb2.DT_INT32}
  for name in inputs:
    where = _HOST if types[name] == types_pb2.DT_INT32 else _GPU
    assert devices[name] == devices[f'{name}/read'] == where


def test_who_waits_for_a_variable_does_not_take_it_to_the_host():
  """A constant text, which is on the host, after a variable of a GPU."""
  graph = graph_pb2.GraphDef()
  variable = graph.node.add(name='variable', op='VarHandleOp')
  variable.attr['dtype'].type = types_pb2.DT_FLOAT
  variable.attr['shape'].shape.SetInParent()
  read = graph.node.add(name='read', op='ReadVariableOp', input=['variable'])
  read.attr['dtype'].type = types_pb2.DT_FLOAT
  text = graph.node.add(name='text', op='Const', input=['^variable'])
  text.attr['dtype'].type = types_pb2.DT_STRING
  text.attr['value'].tensor.dtype = types_pb2.DT_STRING
  names = tuple(node.name for node in graph.node)
  placed = runnable.Runnable(graph, names, (), '',
                             ('read',)).placed(dict.fromkeys(names, _GPU))
  assert [node.device for node in placed.node] == [_GPU, _GPU, _HOST]

"""Steps that a real GPU has run: none of their arithmetic goes to the CPU."""

import functools

import numpy as np
import pytest
from tensorflow.core.framework import types_pb2

from gdp_grappler.cluster import constraints
from gdp_grappler.cluster import presets
from gdp_grappler.graph import graph_def_io
from gdp_grappler.placers import registry
from helpers import problems
from helpers import recorded

# What trains a network, under whatever name.
_ARITHMETIC = ('MatMul', 'Conv', 'Mul', 'Sub', 'Sum', 'Softmax', 'BatchNorm',
               'Rsqrt', 'Relu', 'Tanh', 'RNN', 'AssignSub', 'AssignAdd')


@pytest.fixture(scope='module', params=recorded.NAMES)
def step(request, tmp_path_factory):
  return recorded.source(request.param, tmp_path_factory.mktemp('graphs'))


@pytest.fixture(scope='module')
def read(step):
  """Reads the step, each way once."""
  return functools.cache(functools.partial(graph_def_io.read, step))


@pytest.mark.parametrize('cluster', ['1xH100', '2xH100'])
@pytest.mark.parametrize('live', [False, True])
def test_float_arithmetic_of_a_gpu_step_has_gpus_only(step, read, cluster,
                                                      live):
  graph = read(live=live)
  cluster = presets.preset(cluster)
  allowed = constraints.allowed_devices(graph, cluster)[graph.groups]
  known = np.array([
      any(part in node.op for part in _ARITHMETIC) and
      types_pb2.DT_FLOAT in (node.attr['T'].type, node.attr['dtype'].type) and
      '/device:GPU:' in node.device for node in step.graph_def.node
  ])
  assert known.sum() > 50
  assert not allowed[known, 0].any()
  # What computes nothing may be anywhere.
  constants = np.array([kind == 'Const' for kind in graph.op_types])
  assert allowed[constants].all(axis=1).any()


@pytest.mark.parametrize('placer', ['random', 'cpu_only'])
def test_who_wants_the_cpu_gets_it_for_what_is_exact(read, placer):
  graph, cluster = read(), presets.preset('1xH100')
  placement = registry.create(placer).place(problems.make(graph, cluster))
  assert not constraints.changes_numbers(graph, cluster,
                                         placement.devices).any()
  assert placement.counts()['CPU:0'] > 0

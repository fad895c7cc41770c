"""Graphs that are traced for GPUs on a machine that has none."""

import collections
import functools
import json
import os
import pathlib

import pytest

from gdp_grappler.graph import op_graph
from gdp_grappler.graph import op_kinds
from gdp_grappler.graph.legality import kernels
from gdp_grappler.graph.sources import restoring
from gdp_grappler.graph.sources import sources
from helpers import forked_tracing

pytestmark = pytest.mark.e2e

_TOP = pathlib.Path(__file__).parents[3]
_ON_H100 = json.loads((_TOP / 'tests/testdata/h100_op_types.json').read_text())
_SMALL = ('denoiser', 'gelu_encoder', 'inverted_bottleneck', 'recurrent')
# What only CPUs have a kernel for, and why it is no arithmetic that moved.
_EXPLAINED = {}
_CPU_TYPE, _GPU_TYPE = (op_graph.DEVICE_TYPES.index(t) for t in ('CPU', 'GPU'))


@pytest.fixture(scope='module', autouse=True)
def _forks():
  """With oneDNN, which a CPU of the right kind switches on by itself."""
  before = os.environ.get('TF_ENABLE_ONEDNN_OPTS')
  os.environ['TF_ENABLE_ONEDNN_OPTS'] = '1'
  try:
    with forked_tracing.forks():
      yield
  finally:
    os.environ.pop('TF_ENABLE_ONEDNN_OPTS')
    if before is not None:
      os.environ['TF_ENABLE_ONEDNN_OPTS'] = before


@pytest.fixture(autouse=True)
def _in_the_tree(monkeypatch):
  monkeypatch.syspath_prepend(str(_TOP))
  monkeypatch.chdir(_TOP)


@functools.cache
def _traced(path, architecture):
  source = sources.load(path, architecture=architecture, tell=lambda _: None)
  return source, collections.Counter(n.op for n in source.graph_def.node)


@pytest.mark.parametrize('name', ['cnn', 'mlp', 'lstm', 'transformer'])
def test_ops_are_those_that_the_pass_receives_on_an_h100(name):
  source, types = _traced(f'benchmarks.keras_models:{name}', '9.0')
  real = collections.Counter(_ON_H100[name])
  differing = (types - real) + (real - types)
  assert differing.total() <= 1, differing
  assert not set(differing) - {'Const', 'NoOp'}
  on_cpu = {n.op for n in source.graph_def.node if 'GPU' not in n.device}
  assert on_cpu == {'IteratorGetNext', '_Arg'}


@pytest.mark.parametrize('name', _SMALL)
def test_no_arithmetic_lacks_a_kernel_for_gpus(name):
  source, types = _traced(f'helpers.gpu_models:{name}', '6.0')
  lacking = {
      node.op for node in source.graph_def.node
      if not kernels.allowed_types(node)[_GPU_TYPE]
  }
  assert lacking <= set(_EXPLAINED)
  assert not any(map(restoring.is_for_cpus, source.graph_def.node))
  assert types['IteratorGetNext'] == 1 and len(source.fetches) == 1


@pytest.mark.parametrize('name', _SMALL[:3])
def test_of_cpus_has_what_only_they_have_and_is_restored(name):
  """Such ops sat on CPU:0 in every plan, and nobody was told."""
  source, _ = _traced(f'helpers.gpu_models:{name}', '')
  assert any(map(restoring.is_for_cpus, source.graph_def.node))
  told = []
  restored = restoring.restored(source, told.append)
  assert len(told) == 1 and 'ops that a GPU runs replace ' in told[0]
  assert not any(map(restoring.is_for_cpus, restored.graph_def.node))
  kept = {node.name for node in source.graph_def.node}
  assert kept <= {node.name for node in restored.graph_def.node}


def test_recurrent_layers_are_those_of_cudnn_where_it_has_them():
  _, types = _traced('helpers.gpu_models:recurrent', '6.0')
  assert types['CudnnRNNV3'] == types['CudnnRNNBackpropV3'] == 2
  assert any(types[op] for op in op_kinds.MERGES)  # The third is a loop.
  _, types = _traced('helpers.gpu_models:recurrent', '')
  assert not types['CudnnRNNV3']


def test_convolutions_have_the_layout_of_the_card():
  source, types = _traced('helpers.gpu_models:denoiser', '6.0')
  layouts = {
      n.attr['data_format'].s for n in source.graph_def.node if n.op == 'Conv2D'
  }
  assert layouts == {b'NCHW'} and types['Transpose']

"""Graphs with ops that Grappler made for CPUs."""

import pytest

from gdp_grappler.graph.sources import restoring
from helpers import graph_defs

_SWISH = graph_defs.node('silu', '_MklSwish', ['x', '^before'],
                         graph_defs.CPU(0), T=graph_defs.FLOAT,
                         _gdp_variable=b'kept')
_INPUTS = (graph_defs.node('x', 'Placeholder', dtype=graph_defs.FLOAT),
           graph_defs.node('before', 'NoOp'))


def _restored(*nodes):
  told = []
  source = graph_defs.source(graph_defs.graph_def(*_INPUTS,
                                                  *nodes), feeds=('x',),
                             fetches=(nodes[-1].name,), tables=(('words', 2),))
  return source, restoring.restored(source, told.append), told


def _convolution(*fused, device=''):
  node = graph_defs.node('conv', '_FusedConv2D', ['x', 'x', 'x'], device,
                         T=graph_defs.FLOAT)
  node.attr['fused_ops'].list.s.extend(op.encode() for op in fused)
  return node


def test_readers_read_on_and_nothing_else_changes():
  reader = graph_defs.node('y', 'Identity', ['silu'], T=graph_defs.FLOAT)
  source, restored, told = _restored(_SWISH, reader)
  nodes = {n.name: n for n in restored.graph_def.node}
  assert list(nodes) == ['x', 'before', 'silu/Sigmoid', 'silu', 'y']
  assert list(nodes['silu'].input) == ['x', 'silu/Sigmoid', '^before']
  assert list(nodes['silu/Sigmoid'].input) == ['x', '^before']
  assert nodes['silu'].op == 'Mul'
  assert nodes['silu'].attr['_gdp_variable'].s == b'kept'
  assert nodes['silu'].device == nodes['silu/Sigmoid'].device == _SWISH.device
  assert (restored.feeds, restored.fetches) == (source.feeds, source.fetches)
  assert restored.tables == source.tables
  assert told == [
      'test was made without a GPU: ops that a GPU runs replace 1 op that '
      'Grappler made for CPUs (1 _MklSwish).'
  ]
  # The graph that was given is as it was.
  assert [n.op for n in source.graph_def.node][2] == '_MklSwish'


def test_a_name_that_is_taken_is_left_to_its_op():
  taken = graph_defs.node('silu/Sigmoid', 'NoOp')
  _, restored, _ = _restored(taken, _SWISH)
  names = [n.name for n in restored.graph_def.node]
  assert names == ['x', 'before', 'silu/Sigmoid', 'silu/Sigmoid_1', 'silu']


def test_a_graph_without_such_ops_is_itself():
  source, restored, told = _restored(
      graph_defs.node('y', 'Relu', ['x'], T=graph_defs.FLOAT))
  assert restored is source and not told


def test_what_is_not_known_is_told_in_one_line():
  unknown = graph_defs.node('q', '_FusedConv3D', ['x', 'x', 'x'],
                            T=graph_defs.FLOAT, fused_ops=[b'NoSuchOp'])
  strange = graph_defs.node('c', '_UnaryOpsComposition', ['x'],
                            T=graph_defs.FLOAT, op_names=[b'NoSuchOp'])
  _, restored, told = _restored(unknown, strange)
  assert [n.op for n in restored.graph_def.node
         ][2:] == ['_FusedConv3D', '_UnaryOpsComposition']
  assert len(told) == 1
  assert '2 ops that only CPUs have' in told[0]
  assert 'stay on CPU:0' in told[0] and 'on a machine with a GPU' in told[0]


def test_ops_inside_of_functions_are_told_of():
  graph_def = graph_defs.graph_def(*_INPUTS)
  function = graph_def.library.function.add()
  function.signature.name = 'body'
  function.node_def.add().CopyFrom(_SWISH)
  told = []
  restoring.restored(graph_defs.source(graph_def), told.append)
  assert len(told) == 1 and '1 _MklSwish' in told[0]


@pytest.mark.parametrize('fused, device, for_cpus', [
    (('BiasAdd', 'Relu'), graph_defs.CPU(0), False),
    (('BiasAdd',), graph_defs.CPU(0), True),
    (('BiasAdd',), '', True),
    (('BiasAdd', 'Elu'), graph_defs.CPU(0), True),
    (('BiasAdd', 'Elu'), graph_defs.GPU(0), False),
])
def test_a_kernel_that_gpus_have_but_not_for_this(fused, device, for_cpus):
  """A convolution with a bias alone fails on a GPU, where it is registered."""
  assert restoring.is_for_cpus(_convolution(*fused, device=device)) == for_cpus

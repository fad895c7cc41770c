"""Backward passes that one can write down by hand."""

from __future__ import annotations

import collections

import numpy as np
import pytest

from gdp_grappler.graph import op_graph
from gdp_grappler.workloads.synthetic import builder as builder_lib
from gdp_grappler.workloads.synthetic import gradients


def _trained(optimizer: str = 'ResourceApplyAdam', clips: bool = False,
             details: float = 0.) -> op_graph.OpGraph:
  """One product of 2 x 3 with 3 x 5, and a nonlinearity."""
  b = builder_lib.Builder(np.random.default_rng(0))
  x = b.one('Placeholder', (), (2, 3))
  loss = b.each('Tanh', b.matmul(x, b.variable(3, 5)))
  gradients.train(b, loss, optimizer, clips, details)
  return b.build('toy')[0]


def _inputs(graph: op_graph.OpGraph, name: str) -> list[str]:
  op = graph.names.index(name)
  return [graph.names[s] for s, t in graph.edges.tolist() if t == op]


def test_a_product_hands_back_two_products():
  graph = _trained()
  assert _inputs(graph, 'gradients/MatMul_grad/MatMul_1') == [
      'Placeholder', 'gradients/Tanh_grad/TanhGrad'
  ]
  products = [i for i, t in enumerate(graph.op_types) if t == 'MatMul']
  assert graph.flops[products].tolist() == [60.] * 3
  assert [graph.tensor_bytes[graph.tensor_ops == op].sum() for op in products
         ] == [40, 24, 60]


@pytest.mark.parametrize(
    'optimizer, slots',
    [(name, s) for name, (s, _) in gradients.OPTIMIZERS.items()])
def test_a_variable_stays_with_its_reads_slots_and_update(optimizer, slots):
  graph = _trained(optimizer)
  group = graph.groups[graph.names.index('VarHandleOp')]
  types = collections.Counter(
      t for t, g in zip(graph.op_types, graph.groups) if g == group)
  assert types == {'VarHandleOp': 1 + slots, 'ReadVariableOp': 1, optimizer: 1}
  assert graph.param_bytes.sum() == 60 * (1 + slots)


def test_clipping_makes_updates_wait_for_all_gradients():
  graph = _trained(clips=True)
  update = next(n for n in graph.names if n.endswith('ResourceApplyAdam'))
  scaled, = (n for n in _inputs(graph, update) if n.endswith('Mul'))
  assert 'train/global_norm/RealDiv' not in _inputs(graph, update)
  assert any('global_norm' in n for n in _inputs(graph, scaled))


def test_a_gradient_has_the_size_of_what_it_is_of():
  b = builder_lib.Builder(np.random.default_rng(0))
  x = b.dense(b.one('Placeholder', (), (4, 6)), 8)
  parts = b.add('Split', (b.each('Relu', x),), (4, 3), (4, 5))
  y = b.one('ConcatV2', (parts[0], b.each('Sigmoid', parts[1])), (4, 8))
  y = b.each('AddV2', b.each('Softmax', y), b.convolution(y, 8, 9))
  gradients.train(b, b.each('Mul', y, y), 'ResourceApplyMomentum', False, 1.)
  graph, stages = b.build('toy')
  assert len(stages) == graph.num_ops == len(graph.topological_order)
  size = graph.tensor_bytes
  for op, name in enumerate(graph.names):
    if name.endswith('/ResourceApplyMomentum'):
      inputs = graph.edge_tensors[graph.edges[:, 1] == op]
      handle = graph.edges[graph.edges[:, 1] == op, 0][0]
      assert size[inputs[-1]] == graph.param_bytes[handle]

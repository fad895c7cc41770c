import gc
import weakref

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
import numpy as np
import pytest

from gdp_grappler.graph.structure import coordinates
from helpers import graphs
from helpers import unrolled


def _agree(found, expected):
  """Whether coordinates are right wherever somebody knows them."""
  known = expected >= 0
  return (found[known] == expected[known]).mean()


@pytest.mark.parametrize('scoped', [True, False])
@pytest.mark.parametrize('layers, steps', [(2, 2), (3, 5), (6, 3), (2, 9)])
def test_layers_and_times_of_an_unrolled_net(layers, steps, scoped):
  made = unrolled.make(layers, steps, scoped)
  found = coordinates.of(made.graph)
  assert _agree(found['layer'], made.layer) == 1
  assert _agree(found['segment'], made.time) == 1
  assert _agree(found['variable'], made.layer) == 1
  assert _agree(found['repetition'], made.time) == 1


def test_variables_are_for_all_times():
  graph = unrolled.make(3, 4).graph
  found = coordinates.of(graph)
  held = graph.param_bytes > 0
  assert (found['segment'][held] == -1).all()
  assert found['variable'][held].tolist() == found['layer'][held].tolist()


def test_a_layer_used_once_has_no_time():
  found = coordinates.of(unrolled.make(3, 1).graph)
  assert (found['segment'] <= 0).all()
  assert 'layer' in found.readable and 'segment' not in found.readable


def _branches():
  """Two modules, one after the other, of three branches each."""
  names, types, edges, held = ['x'], ['Placeholder'], [], [0]
  last = 0
  for module in range(2):
    ends = []
    for branch in range(3):
      scope = f'module_{module}/branch_{branch}'
      names += [f'{scope}/kernel', f'{scope}/Conv2D']
      types += ['VariableV2', 'Conv2D']
      held += [100, 0]
      end = len(names) - 1
      edges += [(end - 1, end, 100), (last, end, 100)]
      ends.append(end)
    names.append(f'module_{module}/concat')
    types.append('ConcatV2')
    held.append(0)
    last = len(names) - 1
    edges += [(end, last, 100) for end in ends]
  return graphs.make_graph(edges, names=names, op_types=types, param_bytes=held)


def test_branches_do_not_follow_one_another():
  graph = _branches()
  found = coordinates.of(graph)
  for op, name in enumerate(graph.names):
    if name.endswith('Conv2D'):
      module, branch = name.split('/')[:2]
      assert found['layer'][op] == int(module[-1])
      assert found['branch'][op] == int(branch[-1])


def test_stacks_of_cells():
  names, edges = [], []
  for stack in range(2):
    for cell in range(3):
      names += [f'stack{stack}/cell{cell}/w', f'stack{stack}/cell{cell}/MatMul']
      end = len(names) - 1
      edges += [(end - 1, end, 8), *([(end - 2, end, 8)] if end > 1 else [])]
  graph = graphs.make_graph(edges, names=names,
                            op_types=['VariableV2', 'MatMul'] * 6,
                            param_bytes=[8, 0] * 6)
  found = coordinates.of(graph)
  assert found['layer'][1::2].tolist() == [0, 1, 2, 3, 4, 5]
  assert found['stack'][1::2].tolist() == [0, 0, 0, 1, 1, 1]
  assert found['cell'][1::2].tolist() == [0, 1, 2, 0, 1, 2]


def test_nothing_to_read():
  found = coordinates.of(graphs.chain(20))
  assert found.readable == () and (found.values == -1).all()
  assert found.values.dtype == np.int32


def test_groups_have_the_coordinates_of_their_variable():
  made = unrolled.make(2, 3)
  held = np.flatnonzero(made.graph.param_bytes)
  groups = np.arange(made.graph.num_ops)
  groups[-1] = groups[held[-1]]  # The update of the last variable's layer.
  graph = made.graph.replace(groups=np.unique(groups, return_inverse=True)[1])
  found = coordinates.of(graph)
  assert len(found.values) == graph.num_groups
  assert found['segment'][held].tolist() == [-1, -1]


def test_a_group_is_where_its_variable_is_and_not_its_slot():
  kinds = ['_Arg', '_Arg', 'ReadVariableOp', 'MatMul']
  graph = graphs.make_graph([(1, 2, 0), (2, 3, 9), (3, 7, 9), (5, 6, 0),
                             (6, 7, 9)], op_types=kinds * 2,
                            param_bytes=[9, 9, 0, 0] * 2,
                            groups=[0, 0, 0, 1, 2, 2, 2, 3])
  assert coordinates.of(graph)['variable'].tolist() == [0, 0, 1, 1]


def test_layers_of_keras_are_told_from_calls_by_variables():
  # Calls of `cell` are cell_1, cell_3, ...; of `cell_1`, cell_1_2, cell_1_4.
  made = unrolled.make(2, 4)
  calls = {(0, t): f'cell_{2 * t + 1}' for t in range(4)}
  calls |= {(1, t): f'cell_1_{2 * t + 2}' for t in range(4)}

  def renamed(name):
    for (k, t), scope in calls.items():
      name = name.replace(f'layer{k}/step{t}/', f'{scope}/')
    return name.replace('layer0/', '').replace('layer1/', '')

  names = [
      f'{i}/{renamed(name)}' if 'kernel' in name else renamed(name)
      for i, name in enumerate(made.graph.names)
  ]
  found = coordinates.of(made.graph.replace(names=names))
  assert _agree(found['layer'], made.layer) == 1
  assert _agree(found['variable'], made.layer) == 1


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(0, 1 << 20), st.integers(0, 80), st.booleans())
def test_any_graph_has_coordinates_or_none(seed, num_ops, named):
  graph = graphs.random_graph(seed, num_ops)
  if named:
    rng = np.random.default_rng(seed)
    parts = ('', '/', '.', 'a', 'b_1', 'gradients', 'c3_2', 'x_grad', '7',
             'gradient_tape')
    graph = graph.replace(names=[
        '/'.join(rng.choice(parts, rng.integers(1, 6))) + f'/{op}'
        for op in range(num_ops)
    ])
  found = coordinates.of(graph)
  assert found.values.shape == (graph.num_groups, len(coordinates.NAMES))
  assert (found.values >= -1).all()
  assert found.values.max(initial=-1) < max(num_ops, 1)
  assert coordinates.of(graph) is found


def test_graphs_are_not_kept_alive():
  graph = unrolled.make(2, 2).graph
  coordinates.of(graph)
  gone = weakref.ref(graph)
  del graph
  gc.collect()
  assert gone() is None

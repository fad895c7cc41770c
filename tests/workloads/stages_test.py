import numpy as np
import pytest

from gdp_grappler.workloads import stages
from helpers import graphs
from helpers import work


@pytest.mark.parametrize('name, stage', [
    ('stage3/lstm/step0/MatMul', 3),
    ('stage12', 12),
    ('stage2_1/add', 2),
    ('gradients/stage4/lstm/step7/MatMul_grad/MatMul_1', 4),
    ('stage5/lstm/input_kernel/Adam_1', 5),
    ('train/update_stage6/lstm/bias/ResourceApplyAdam', 6),
    ('ConstantFolding/gradients/stage7/Sum_grad/range-folded', 7),
])
def test_stage_is_in_the_name(name, stage):
  graph = graphs.make_graph(num_ops=1, names=[name])
  assert stages.of(graph).tolist() == [stage]


# Ops follow the first op that they feed, or else the op that feeds them. Ops
# far from all stages are in the first.
@pytest.mark.parametrize('edges, names, expected', [
    ([(0, 1), (1, 2),
      (1, 3)], ['a', 'b', 'stage4/c', 'stage2/d'], [4, 4, 4, 2]),
    ([(0, 2), (1, 2),
      (2, 3)], ['stage5/a', 'stage1/b', 'c', 'd'], [5, 1, 5, 5]),
    ([(0, 1)], ['a', 'b', 'stage3/c'], [0, 0, 3]),
])
def test_ops_without_a_stage(edges, names, expected):
  graph = graphs.make_graph(edges, len(names), names=names)
  assert stages.of(graph).tolist() == expected


# A group follows its largest variable, or without any most of its ops. A tie
# goes to the first op.
@pytest.mark.parametrize('of_ops, groups, param_bytes, expected', [
    ((1, 2, 2, 3), [0, 0, 0, 1], [10, 4, 4, 0], [1, 1, 1, 3]),
    ((1, 2, 2, 3), [1, 1, 1, 0], 0, [2, 2, 2, 3]),
    ((2, 1), [0, 0], 0, [2, 2]),
])
def test_stage_of_a_group(of_ops, groups, param_bytes, expected):
  names = [f'stage{stage}/{op}' for op, stage in enumerate(of_ops)]
  graph = graphs.make_graph(num_ops=len(names), names=names, groups=groups,
                            param_bytes=param_bytes)
  assert stages.of(graph).tolist() == expected


def test_graph_without_ops():
  assert stages.of(graphs.make_graph(num_ops=0)).shape == (0,)


def test_groups_agree_in_random_graphs():
  random = np.random.default_rng(0)
  for _ in range(20):
    n = 40
    graph = graphs.make_graph([
        (i, int(random.integers(i + 1, n))) for i in range(n - 1)
    ], names=[
        f'op{i}' if random.random() < .5 else f'stage{random.integers(5)}/op{i}'
        for i in range(n)
    ], param_bytes=random.integers(0, 3, n),
                              groups=np.unique(random.integers(0, 15, n),
                                               return_inverse=True)[1])
    found = stages.of(graph)
    for group in range(graph.num_groups):
      assert len(set(found[graph.groups == group])) == 1


def test_work_grows_with_the_ops():

  def calls(n: int) -> int:
    graph = graphs.make_graph(
        [(i, i + d) for i in range(n - 3) for d in (1, 3)], names=[
            f'stage{17 * i // n}/op{i}' if i % 3 else f'gradients/op{i}'
            for i in range(n)
        ])
    assert len(np.unique(stages.of(graph))) == 17
    return work.calls(lambda: stages.of(graph))

  assert calls(4000) < 2.1 * calls(2000)

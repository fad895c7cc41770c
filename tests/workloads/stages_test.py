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


def test_others_follow_the_first_op_they_feed():
  graph = graphs.make_graph([(0, 1), (1, 2), (1, 3)],
                            names=['a', 'b', 'stage4/c', 'stage2/d'])
  assert stages.of(graph).tolist() == [4, 4, 4, 2]


def test_what_feeds_nobody_follows_what_it_is_fed_by():
  graph = graphs.make_graph([(0, 2), (1, 2), (2, 3)],
                            names=['stage5/a', 'stage1/b', 'c', 'd'])
  assert stages.of(graph).tolist() == [5, 1, 5, 5]


def test_ops_far_from_all_stages_are_in_the_first():
  graph = graphs.make_graph([(0, 1)], 3, names=['a', 'b', 'stage3/c'])
  assert stages.of(graph).tolist() == [0, 0, 3]


def test_group_follows_its_largest_variable():
  graph = graphs.make_graph(
      num_ops=4, names=['stage1/a', 'stage2/b', 'stage2/c', 'stage3/d'],
      param_bytes=[10, 4, 4, 0], groups=[0, 0, 0, 1])
  assert stages.of(graph).tolist() == [1, 1, 1, 3]


def test_group_without_variables_follows_most_of_its_ops():
  graph = graphs.make_graph(
      num_ops=4, names=['stage1/a', 'stage2/b', 'stage2/c', 'stage3/d'],
      groups=[1, 1, 1, 0])
  assert stages.of(graph).tolist() == [2, 2, 2, 3]


def test_tie_in_a_group_goes_to_the_first_op():
  graph = graphs.make_graph(num_ops=2, names=['stage2/a', 'stage1/b'],
                            groups=[0, 0])
  assert stages.of(graph).tolist() == [2, 2]


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

import numpy as np
import pytest

from gdp_grappler import errors
from gdp_grappler.placers.simple import human_expert
from helpers import graphs
from helpers import problems


def _place(graph, expert, seconds=1):
  expert = None if expert is None else np.array(expert)
  return problems.placed(human_expert.HumanExpertPlacer(), graph,
                         seconds=seconds, expert_devices=expert).tolist()


def test_the_expert_is_obeyed():
  assert _place(graphs.chain(4), [2, 1, 0, 2]) == [2, 1, 0, 2]


def test_most_seconds_decide_for_a_group():
  graph = graphs.chain(3, groups=[0, 0, 0])
  assert _place(graph, [1, 2, 2], [5, 1, 1]) == [1, 1, 1]
  assert _place(graph, [1, 2, 2], [5, 3, 3]) == [2, 2, 2]


def test_seconds_are_those_on_the_device_in_question():
  graph = graphs.chain(2, groups=[0, 0])
  assert _place(graph, [0, 1], [[9, 1, 1], [1, 4, 1]]) == [0, 0]
  assert _place(graph, [0, 1], [[3, 9, 9], [9, 4, 1]]) == [1, 1]


def test_ops_that_take_no_time_are_counted():
  graph = graphs.chain(3, groups=[0, 0, 0])
  assert _place(graph, [1, 2, 2], 0) == [2, 2, 2]


def test_what_is_not_allowed_has_no_vote():
  graph = graphs.chain(3, groups=[0, 0, 1], pins=['', 'GPU:1', ''],
                       allowed_types=[[1, 1], [1, 1], [1, 0]])
  # The pinned group has one device. The op without a kernel goes to the host.
  assert _place(graph, [1, 1, 2]) == [2, 2, 0]


def test_where_not_even_the_host_is_allowed():
  graph = graphs.chain(1, pins=['GPU:1'], allowed_types=[[0, 1]])
  assert _place(graph, [1]) == [2]


@pytest.mark.parametrize(
    'expert, message',
    [(None, 'no human expert.s placement of graph "test"'),
     ([0, 1], r'int64 \[2\]; give one integer for each of its 3 ops'),
     ([0., 1., 1.], 'float64'),
     ([0, 1, 3], 'names devices 0 to 3; cluster "test" has 0 to 2'),
     ([-1, 1, 1], 'names devices -1 to 1')])
def test_no_expert_or_a_strange_one(expert, message):
  with pytest.raises(errors.InfeasiblePlacementError, match=message) as error:
    _place(graphs.chain(3), expert)
  assert '\n' not in str(error.value)

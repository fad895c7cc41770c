"""Where groups go that are placed anew: by a naive oracle and by hand."""

from __future__ import annotations

import dataclasses

import hypothesis
from hypothesis import strategies as st
import numpy as np
import pytest

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.evaluation.costs import fixed_costs
from gdp_grappler.features.moves import featurizer
from gdp_grappler.graph import op_graph
from helpers import clusters
from helpers import graphs
from helpers import naive_rescheduling

_MANY = 10**6


@dataclasses.dataclass(frozen=True)
class _Case:
  """K moves of any graph on any cluster."""

  graph: op_graph.OpGraph
  cluster: cluster_lib.Cluster
  seconds: np.ndarray
  priorities: np.ndarray | None
  devices: np.ndarray
  allowed: np.ndarray
  rows: np.ndarray
  weights: np.ndarray

  def features(self) -> featurizer.MoveFeaturizer:
    """That look at where the moves begin."""
    result = featurizer.MoveFeaturizer(self.graph, self.cluster,
                                       fixed_costs.FixedCostModel(self.seconds))
    result.observe(self.devices, self.priorities)
    return result

  def replaced(self, places: object = True,
               most: int = _MANY) -> tuple[np.ndarray, np.ndarray]:
    """bool [K], which were placed anew, and int32 [K, G], where all lead."""
    rows = self.rows.copy()
    done = self.features().reschedule(rows, np.broadcast_to(places, len(rows)),
                                      self.allowed, self.weights, most)
    return done, rows


def _cluster(rng: np.random.Generator, graph: op_graph.OpGraph,
             scale_s: float) -> cluster_lib.Cluster:
  """A CPU, with one thread or several, and GPUs that may share what they are.

  Args:
    rng: Of everything.
    graph: What is to have about enough memory.
    scale_s: What latencies and the like are about.
  """
  total = int(graph.param_bytes.sum() + graph.tensor_bytes.sum())
  cluster = clusters.make_cluster(
      3, latency_s=rng.exponential(scale_s),
      bandwidth_bytes_per_s=rng.choice([1e4, 1e6, 1e8]) / scale_s,
      memory_bytes=1 + int(total * rng.choice([.1, .4, 2.])),
      compute=['cpu', 'a', 'b', rng.choice(['b', 'c'])],
      memory=['cpu', 'a', rng.choice(['a', 'b']), 'c'])
  launch = rng.choice([cluster_lib.SYNCHRONOUS, cluster_lib.ASYNCHRONOUS])
  return dataclasses.replace(
      cluster, devices=tuple(
          dataclasses.replace(device, slots=int(rng.choice([1, 4]))
                             ) if device.type == 'CPU' else dataclasses.
          replace(device, launch=launch, callback_s=rng.exponential(scale_s))
          for device in cluster.devices))


def _any_case(seed: int, num_ops: int, scale_s: float = 1.,
              count: int = 6) -> _Case:
  """Some groups have ops that run early and late, some may be in few places."""
  rng = np.random.default_rng(seed)
  graph = graphs.random_graph(seed, num_ops, window=rng.choice([3, 40]))
  if rng.random() < .5:
    labels = rng.integers(1 + num_ops // 2, size=num_ops)
    graph = dataclasses.replace(
        graph, groups=np.unique(labels, return_inverse=True)[1])
  cluster = _cluster(rng, graph, scale_s)
  seconds = rng.exponential(size=(num_ops, cluster.num_devices))
  seconds *= rng.random((num_ops, 1)) < rng.choice([.8, .8, 0])
  allowed = rng.random((graph.num_groups, cluster.num_devices)) < .7
  allowed[np.arange(len(allowed)), rng.integers(4, size=len(allowed))] = True
  odds = np.where(allowed, rng.random((1 + count, *allowed.shape)), -1)
  devices, *rows = odds.argmax(axis=2).astype(np.int32)
  if rng.random() < .3:  # Steps without a transfer, however slow those are.
    devices[:] = 1
    allowed[:, 1] = True
  stays = rng.random((count, graph.num_groups)) < rng.random((count, 1))
  weights = 10.**rng.uniform(-2, 1, size=(count, 3))
  weights[rng.random(count) < .3, 0] = 0
  return _Case(graph, cluster, seconds,
               rng.random(num_ops) if rng.random() < .5 else None, devices,
               allowed, np.where(stays, devices, rows), weights)


def _regrets(case: _Case, rows: np.ndarray) -> list[list[float]]:
  """[K], of groups that are placed in another way."""
  naive = naive_rescheduling.NaiveRescheduling(case.graph, case.cluster,
                                               case.seconds, case.devices,
                                               case.priorities)
  return [
      naive.regrets(drawn, taken, case.allowed, weights)
      for drawn, taken, weights in zip(case.rows, rows, case.weights.tolist())
  ]


@hypothesis.settings(max_examples=100, deadline=None)
@hypothesis.given(seed=st.integers(0, 1 << 30), num_ops=st.integers(2, 40),
                  scale_s=st.sampled_from([.01, 1., 1e12]))
def test_groups_go_where_the_naive_rules_say(seed, num_ops, scale_s):
  case = _any_case(seed, num_ops, scale_s)
  done, rows = case.replaced()
  for k, regrets in enumerate(_regrets(case, rows)):
    assert done[k] == (len(regrets) > 1)
    assert not done[k] or max(regrets) < 1e-9
    assert done[k] or (rows[k] == case.rows[k]).all()
    assert case.allowed[np.arange(len(rows[k])), rows[k]].all()


def test_the_naive_rules_notice_another_choice():
  noticed = []
  for seed in range(30):
    case = _any_case(seed, 12, count=1)
    done, rows = case.replaced()
    moved = np.flatnonzero(case.rows[0] != case.devices)
    if not done[0]:
      continue
    group = moved[seed % len(moved)]
    others = np.flatnonzero(case.allowed[group])
    rows[0, group] = others[seed % len(others)]
    noticed.append(max(_regrets(case, rows)[0]) > 1e-9)
  assert np.mean(noticed) > .4


@hypothesis.settings(max_examples=20, deadline=None)
@hypothesis.given(seed=st.integers(0, 1 << 30))
def test_what_else_is_asked_does_not_matter(seed):
  case = _any_case(seed, 30)
  done, rows = case.replaced()
  features = case.features()
  for k in (3, 0, 5, 3):
    row = case.rows[k:k + 1].copy()
    assert features.reschedule(row, [True], case.allowed, case.weights[k:k + 1],
                               _MANY).tolist() == [done[k]]
    assert row.tolist() == [rows[k].tolist()]


def _gpus_alone(graph: op_graph.OpGraph, moved: list[int],
                cluster: cluster_lib.Cluster, seconds: object = 1.,
                weights: tuple[float, float, float] = (1e-6, 1e-6, 1e-9),
                priorities: list[float] | None = None) -> _Case:
  """All is on GPU:0; some groups are drawn to GPU:1, and may be on any GPU."""
  devices = np.ones(graph.num_groups, np.int32)
  row = devices.copy()
  row[moved] = 2
  allowed = np.tile(np.arange(cluster.num_devices) > 0, (len(devices), 1))
  return _Case(graph, cluster,
               np.broadcast_to(seconds, (graph.num_ops, cluster.num_devices)),
               None if priorities is None else np.array(priorities), devices,
               allowed, row[None], np.array([weights]))


def _two_chains(weights: tuple[float, float, float]) -> _Case:
  """Of two ops each, behind one op that stays on GPU:0."""
  graph = graphs.make_graph([(0, 1, 1), (1, 2, 1), (0, 3, 1), (3, 4, 1)])
  return _gpus_alone(graph, [1, 2, 3, 4],
                     clusters.make_cluster(2, latency_s=.1), weights=weights)


def test_two_chains_are_divided_between_two_devices():
  # op3 would end after 3 s beside op1, and after 2.11 s on the other one.
  assert _two_chains(
      (1e-6, 1e-6, 1e-9)).replaced()[1].tolist() == [[1, 1, 1, 2, 2]]


def test_they_stay_where_their_input_is_if_sending_is_dear():
  assert _two_chains((1e-6, 100., 1e-9)).replaced()[1].tolist() == [[1] * 5]


def test_they_leave_a_device_that_is_busy_if_that_is_dear():
  # op0 stays there, so that all others have less to wait for elsewhere.
  assert _two_chains(
      (1e-6, 1e-6, 100.)).replaced()[1][0].tolist() in ([1, 2, 1, 2,
                                                         1], [1, 2, 2, 1, 1],
                                                        [1, 2, 1, 1, 2])


@pytest.mark.parametrize('late, device', [(0., 2), (10., 1)])
def test_outputs_may_be_late_for_who_does_not_care(late, device):
  # op0 takes half the time on GPU:1, and its output two seconds from there; op1
  # starts after 1.5 s.
  case = _gpus_alone(graphs.make_graph([(0, 1, 0)], 3), [0, 2],
                     clusters.make_cluster(2, latency_s=2.),
                     [[1., 1., .5], [1., 1., 1.], [.5, .5, .5]],
                     (late, 1e-6, 1e-9), [3., 1., 2.])
  assert case.replaced()[1][0, 0] == device


@pytest.mark.parametrize(
    'memory_bytes, device',
    [
        (1000, 1),
        (100, 2),  # Slow, but there is room for a second one.
        (50, 1),  # It fits nowhere.
    ])
def test_what_does_not_fit_goes_where_there_is_room(memory_bytes, device):
  graph = graphs.make_graph(num_ops=2, param_bytes=60)
  case = _gpus_alone(graph, [0, 1],
                     clusters.make_cluster(2, memory_bytes=memory_bytes),
                     [[1., 1., 99.]] * 2)
  assert case.replaced()[1].tolist() == [[1, device]]


@pytest.mark.parametrize('cards, devices', [('abc', [1, 2]), ('aab', [1, 3])])
def test_devices_of_one_card_take_turns(cards, devices):
  # Beside the first op, the second would end after 2 s; GPU:2 takes 1.5 s.
  cluster = clusters.make_cluster(3, compute=['cpu', *cards])
  case = _gpus_alone(graphs.make_graph(num_ops=2), [0, 1], cluster,
                     [[1., 1., 1., 1.5]] * 2)
  assert sorted(case.replaced()[1][0]) == devices


def test_what_comes_long_after_the_step_leaves_its_beginning_free():
  # op1 may be on GPU:1 alone, 1e10 steps later; op2 has that to itself now, and
  # is a little slower on GPU:2.
  case = _gpus_alone(graphs.make_graph([(0, 1, 0)], 3), [1, 2],
                     clusters.make_cluster(3, latency_s=3e10),
                     [[1., 1., 1., 1.], [1., 1., 1., 1.], [1., 1., .1, .11]],
                     priorities=[3., 2., 1.])
  case.allowed[1] = np.arange(4) == 2
  assert case.replaced()[1].tolist() == [[1, 2, 2]]


def test_rows_that_are_not_marked_stay():
  case = _any_case(5, 30)
  everywhere, anywhere = case.replaced()
  marked = np.arange(len(case.rows)) % 2 == 0
  done, rows = case.replaced(marked)
  assert everywhere.all() and (anywhere != case.rows).any(axis=1).all()
  assert done.tolist() == marked.tolist()
  assert rows.tolist() == np.where(marked[:, None], anywhere,
                                   case.rows).tolist()


def test_one_group_alone_goes_where_it_was_drawn_to():
  case = _gpus_alone(graphs.chain(4), [2], clusters.make_cluster(2))
  done, rows = case.replaced()
  assert not done.any() and rows.tolist() == case.rows.tolist()


@pytest.mark.parametrize('most, placed', [(4, True), (3, False), (-1, False),
                                          (1 << 40, True)])
def test_more_groups_than_allowed_stay(most, placed):
  case = _two_chains((1e-6, 1e-6, 1e-9))
  done, rows = case.replaced(most=most)
  assert done.tolist() == [placed]
  assert (rows == case.rows).all() != placed


def test_what_cannot_be_written_or_read_is_refused():
  case = _two_chains((1., 1., 1.))
  rows = case.rows.copy()
  with pytest.raises(AssertionError):  # C++ would read what is behind it.
    case.features().reschedule(rows, [True], case.allowed[:2], case.weights, 9)
  rows.setflags(write=False)
  with pytest.raises(AssertionError):
    case.features().reschedule(rows, [True], case.allowed, case.weights, 9)

import json
import math
import os
import threading

import numpy as np
import pytest
import tensorflow as tf

from gdp_grappler import deadlines
from gdp_grappler import errors
from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.features import schema
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers import registry
from gdp_grappler.placers.policy import eager_thread
from gdp_grappler.placers.policy import learned
from gdp_grappler.placers.policy import shipped_policy
from helpers import clusters
from helpers import graphs
from helpers import problems
from helpers import processes


class _Policy(tf.Module):
  """Strongly prefers one device; no device if `favourite` is -1."""

  def __init__(self, favourite):
    super().__init__()
    self._favourite = favourite

  @tf.function(input_signature=[
      tf.TensorSpec([None], tf.string),
      tf.TensorSpec([None, len(schema.UNIT_FEATURES)], tf.float32),
      tf.TensorSpec([None, 2], tf.int32),
      tf.TensorSpec([None], tf.float32),
      tf.TensorSpec([None, None], tf.bool),
      tf.TensorSpec([None, len(schema.DEVICE_FEATURES)], tf.float32)
  ])
  def place(self, op_types, units, edges, edge_bytes, allowed, devices):
    del op_types, edges, edge_bytes, allowed
    favourite = tf.cast(
        tf.equal(tf.range(tf.shape(devices)[0]), self._favourite), tf.float32)
    return 100.0 * favourite + tf.fill([tf.shape(units)[0], 1], 0.0)


def _export(folder, favourite, **metadata):
  tf.saved_model.save(_Policy(favourite), str(folder))
  (folder / 'policy.json').write_text(
      json.dumps({'schema': schema.fingerprint(), **metadata}))
  return str(folder)


@pytest.fixture(scope='module')
def gpu_1(tmp_path_factory):
  return _export(tmp_path_factory.mktemp('gpu_1'), 2)


def test_places_where_the_policy_says_and_may(gpu_1):
  graph = graphs.make_graph([(0, 1, 8), (1, 2, 8),
                             (2, 3, 8)], allowed_types=[[1, 1], [1, 0], [1, 1],
                                                        [1, 1]],
                            pins=['', '', 'GPU:0', ''])
  # Other devices are so slow that no single device gives a shorter step.
  problem = problems.make(graph, seconds=[[9, 9, 1]] * 4)
  placement = registry.create('gdp_one_shot', gpu_1).place(problem)
  assert placement.devices.tolist() == [2, 0, 1, 2]


def test_places_inside_a_graph_and_a_device_scope(gpu_1):
  """The policy once ran in the user's graph, where a result has no value."""
  problem = problems.make(graphs.chain(3), seconds=[[9, 9, 1]] * 3)
  with tf.Graph().as_default() as graph, tf.device('/GPU:7'):
    placement = registry.create('gdp_one_shot', gpu_1).place(problem)
  assert placement.devices.tolist() == [2, 2, 2]
  assert not graph.get_operations()


def test_no_slower_than_one_device(gpu_1):
  problem = problems.make(graphs.chain(3), seconds=[[9, 1, 2]] * 3)
  placer = registry.create('gdp_one_shot', gpu_1)
  assert placer.candidates(problem).tolist() == [[2, 2, 2]] * 16
  assert placer.place(problem).devices.tolist() == [1, 1, 1]


def test_what_does_not_fit_is_made_to(gpu_1):
  graph = graphs.make_graph(num_ops=3, param_bytes=40)
  problem = problems.make(graph, clusters.make_cluster(2, memory_bytes=100),
                          seconds=[[9, 1, 1]] * 3)
  placement = registry.create('gdp_one_shot', gpu_1).place(problem)
  # All ops on the host would fit, too, but slowly.
  assert sorted(placement.devices.tolist()) in ([1, 1, 2], [1, 2, 2])


@pytest.mark.parametrize('units', ['fine', 'coarse', 'nested'])
@pytest.mark.parametrize('seed', [0, 1])
def test_legal_and_repeatable(tmp_path, units, seed):
  policy = _export(tmp_path, -1, units=units)
  problem = problems.make(graphs.random_graph(seed, 700), seed=seed)
  placement = registry.create('gdp_one_shot', policy).place(problem)
  assert not placement.violations(problem.graph)
  again = registry.create('gdp_one_shot', policy).place(problem)
  assert placement.devices.tolist() == again.devices.tolist()


def test_the_cheapest_candidate_wins(tmp_path):
  policy = _export(tmp_path, -1)
  # The most likely placement has all ops on one device. Some samples do not.
  problem = problems.make(graphs.make_graph(num_ops=6, flops=1e9))
  chosen = registry.create('gdp_one_shot', policy).place(problem)
  price = problems.seconds_of(problem, chosen)
  one_device = problem.evaluator.price(problem.graph, np.zeros(
      (1, 6), np.int32)).seconds[0]
  assert price < one_device


class _Watched(simulator.Simulator):
  """Keeps its prices."""

  prices = None

  def price(self, graph, devices, priorities=None, ceiling_s=math.inf):
    prices = super().price(graph, devices, priorities, ceiling_s)
    self.prices = self.prices.followed_by(prices) if self.prices else prices
    return prices


def test_where_nothing_fits_the_least_overflow_wins(tmp_path):
  policy = _export(tmp_path, -1)
  cluster = clusters.make_cluster(2, memory_bytes=50)
  watched = _Watched(cluster)
  # All ops on one device are fastest, and overflow most.
  graph = graphs.make_graph([(i, i + 1, 1) for i in range(7)],
                            param_bytes=[100] * 8)
  placement = registry.create('gdp_one_shot', policy).place(
      placer_lib.Problem(graph, cluster, watched))
  prices = watched.prices
  assert not prices.valid.any()
  assert len(set(prices.overflow_bytes.tolist())) > 1
  found = watched.price(graph, placement.devices[None])
  assert found.overflow_bytes[0] == prices.overflow_bytes.min()
  assert found.seconds[0] > prices.seconds.min()


def test_the_environment_names_a_policy(gpu_1, monkeypatch):
  monkeypatch.setenv('GDP_POLICY', gpu_1)
  placer = registry.create('gdp_one_shot')
  placement = placer.place(problems.make(graphs.chain(3)))
  assert placement.devices.tolist() == [2, 2, 2]


def test_loaded_ahead_once_and_whoever_wants_it_waits(tmp_path, monkeypatch):
  folder, go, begun = _export(tmp_path, 2), threading.Event(), []
  stock = learned._load

  def slow(path):
    begun.append(path)
    assert go.wait(20) and eager_thread.is_current()
    return stock(path)

  monkeypatch.setattr(learned, '_load', slow)
  learned.load_ahead(folder)
  learned.load_ahead(folder)
  go.set()
  placement = registry.create('gdp_one_shot',
                              folder).place(problems.make(graphs.chain(3)))
  assert placement.devices.tolist() == [2, 2, 2] and len(begun) == 1


def test_waiting_for_a_policy_counts_as_loading(tmp_path, monkeypatch):
  watch = deadlines.Stopwatch()
  monkeypatch.setattr(deadlines, 'LOADING', watch)
  stock, during = learned._load, []

  def watched(path):
    # The placer already waits for the policy.
    processes.wait_until(lambda: watch.seconds > 0)
    during.append(watch.seconds)
    return stock(path)

  monkeypatch.setattr(learned, '_load', watched)
  placer = registry.create('gdp_one_shot', _export(tmp_path, 2))
  waited = watch.seconds
  assert waited >= during[0] > 0
  placer.place(problems.make(graphs.chain(3)))
  assert watch.seconds == waited


def test_loading_ahead_what_is_none_tells_whoever_wants_it(tmp_path):
  learned.load_ahead(str(tmp_path))
  for _ in range(2):
    with pytest.raises(errors.PolicyMismatchError, match='is not a policy'):
      registry.create('gdp_one_shot', str(tmp_path))
  # After a repair of the folder, the policy is loaded.
  folder = _export(tmp_path, 1)
  assert registry.create('gdp_one_shot', folder)


def test_a_child_loads_what_the_parent_had_begun_to(tmp_path, monkeypatch):
  folder, go = _export(tmp_path, 2), threading.Event()
  stock = learned._load
  monkeypatch.setattr(learned, '_load',
                      lambda path: go.wait(20) and stock(path))
  learned.load_ahead(folder)
  child = os.fork()
  if not child:
    # TensorFlow's threads do not run in the child, so nothing is loaded here.
    known = learned._cache._loading.get(str(tmp_path.resolve()))
    os._exit(7 if known is None else 1)
  assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
  go.set()
  registry.create('gdp_one_shot', folder)


def test_no_policy_is_installed(monkeypatch):
  monkeypatch.delenv('GDP_POLICY', raising=False)
  monkeypatch.setattr(shipped_policy, 'folder', lambda: None)
  with pytest.raises(errors.PolicyMismatchError, match='Train one with'):
    registry.create('gdp_one_shot')


def _spoil(folder, what):
  if what == 'missing':
    return folder / 'gone'
  text = {
      'no JSON': '{', 'no schema': '{}', 'a list': '[]',
      'other schema': '{"schema": "0123"}'
  }.get(what)
  if text is None:
    text = json.dumps({'schema': schema.fingerprint()})
    if what == 'damaged':
      (folder / 'saved_model.pb').write_bytes(b'\x00broken')
  (folder / 'policy.json').write_text(text)
  return folder


@pytest.mark.parametrize(
    'what, message',
    [('missing', r'its policy.json cannot be read \(No such file or dir'),
     ('no JSON', r'its policy.json is damaged \(Expecting'),
     ('no schema', 'is not a policy: its policy.json has no "schema"'),
     ('a list', 'is not a policy: its policy.json has no "schema"'),
     ('other schema', 'trained for other features .schema 0123'),
     ('no model', 'is damaged'), ('damaged', 'is damaged')])
def test_policies_that_are_none(tmp_path, what, message):
  with pytest.raises(errors.PolicyMismatchError, match=message) as error:
    registry.create('gdp_one_shot', str(_spoil(tmp_path, what)))
  assert '\n' not in str(error.value)

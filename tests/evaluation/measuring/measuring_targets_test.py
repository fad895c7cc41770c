"""Measuring on TensorFlow servers: somebody's, or workers of our own."""

import math
import os
import pathlib
import signal
import threading

import numpy as np
import pytest
import tensorflow as tf

from gdp_grappler import errors
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import constraints
from gdp_grappler.cluster import local_devices
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation.measuring import bench as bench_lib
from gdp_grappler.evaluation.measuring import local_workers as local_workers_lib
from gdp_grappler.evaluation.measuring import measure_config
from gdp_grappler.evaluation.measuring import measurer as measurer_lib
from gdp_grappler.evaluation.measuring import measuring_worker
from gdp_grappler.graph import graph_def_io
from gdp_grappler.graph.sources import sources
from gdp_grappler.processes import messages
from gdp_grappler.processes import worker_process
from helpers import measured
from helpers import processes

# Not with Bazel's unit tests.
pytestmark = pytest.mark.e2e
QUICK = measured.QUICK

tf1 = tf.compat.v1
TESTDATA = pathlib.Path(__file__).parents[2] / 'testdata'
CLUSTER = local_workers_lib.cluster(2)


@pytest.fixture(scope='module')
def workers():
  with local_workers_lib.LocalWorkers(2) as result:
    yield result


@pytest.fixture(scope='module')
def trained():
  source = sources.load(str(TESTDATA / 'dense_train_step.pb'))
  return source, graph_def_io.read(source)


def rows(graph, count, cluster=CLUSTER):
  """int32 [K, N], random legal devices."""
  generator = np.random.default_rng(0)
  allowed = constraints.allowed_devices(graph, cluster)
  return np.array([[generator.choice(np.flatnonzero(a)) for a in allowed]
                   for _ in range(count)])[:, graph.groups]


def evaluated(measurer, graph, devices):
  """[K], what is said of each after all have run."""
  measurer.price(graph, devices)
  return [
      measurer.evaluate(graph, placement_lib.Placement(row, CLUSTER))
      for row in devices
  ]


def test_training_steps_on_local_workers_and_a_later_run(
    trained, tmp_path, monkeypatch):
  source, graph = trained
  devices = rows(graph, 2)
  settings = dict(local_workers=2, cache_dir=tmp_path / 'cache', **QUICK)
  before = processes.children(os.getpid())
  with measurer_lib.Measurer(source, CLUSTER, **settings) as measurer:
    first = evaluated(measurer, graph, devices)
    for result in first:
      assert result.valid and not result.simulated
      assert 0 < result.step_time_s < 10 and result.spread_s > 0
      assert len(result.peak_bytes) == 2 and min(result.peak_bytes) > 0
    pids = set(processes.children(os.getpid())) - set(before)
    assert len(pids) == 3
  assert processes.ended(pids)

  def refuse(*unused_arguments, **unused_options):
    raise AssertionError('a process was started')

  monkeypatch.setattr(worker_process, 'WorkerProcess', refuse)
  with measurer_lib.Measurer(source, CLUSTER, **settings) as measurer:
    assert evaluated(measurer, graph, devices) == first
  # Another way to measure is another measurement.
  other = {**settings, 'steps': 4}
  with measurer_lib.Measurer(source, CLUSTER, **other) as measurer:
    with pytest.raises(AssertionError, match='was started'):
      evaluated(measurer, graph, devices[:1])


def test_training_steps_on_a_target(trained, workers):
  source, graph = trained
  with measurer_lib.Measurer(source, CLUSTER, target=workers.target,
                             **QUICK) as measurer:
    assert measurer.price(graph, rows(graph, 2)).valid.all()


def test_variables_do_not_outlive_their_placement(workers):

  def big():
    weights = tf1.get_variable('w', (3000, 3500), use_resource=True)
    return weights.assign_add(tf.ones((3000, 3500))).op

  source, graph = measured.build(big)
  with measurer_lib.Measurer(source, CLUSTER, target=workers.target, steps=1,
                             warmup=0, budget_s=0) as measurer:
    sizes = []
    for k in range(12):
      measurer._known._known.clear()
      devices = np.full((1, graph.num_ops), k % 2)
      assert measurer.price(graph, devices).valid.all()
      sizes.append(resident_bytes([s.pid for s in workers.servers]))
  with tf1.Session(workers.target, graph=tf.Graph()) as session:
    handle = tf.raw_ops.VarHandleOp
    with session.graph.as_default():
      exists = [
          tf.raw_ops.VarIsInitializedOp(
              resource=handle(dtype=tf.float32, shape=(
                  3000, 3500), shared_name='w')).op.outputs[0]
      ]
    assert session.run(exists) == [False]
  # One value has 42 MB, too much for what malloc keeps; ten would be kept.
  assert sizes[-1] - sizes[1] < 210e6


def resident_bytes(pids):
  pages = sum(
      int(pathlib.Path(f'/proc/{pid}/statm').read_text().split()[1])
      for pid in pids)
  return pages * os.sysconf('SC_PAGE_SIZE')


def test_wrong_device_names(trained, workers):
  source, graph = trained
  local = local_devices.local_cluster([cluster_lib.local_name('CPU', 0)])
  for where in (dict(target=workers.target), dict(local_workers=1)):
    with measurer_lib.Measurer(source, local, **where, **QUICK) as measurer:
      with pytest.raises(
          errors.MeasurementError,
          match='grpc://.* has no device /job:localhost.*'
          'it has /job:worker'):
        measurer.price(graph, rows(graph, 1, local))


def test_a_target_that_cannot_be_reached(trained):
  source, graph = trained
  with measurer_lib.Measurer(source, CLUSTER, target='grpc://localhost:1',
                             connect_s=2, **QUICK) as measurer:
    with pytest.raises(errors.MeasurementError,
                       match='grpc://localhost:1 cannot be reached'):
      measurer.price(graph, rows(graph, 1))


def test_a_target_that_goes_away(trained):
  source, graph = trained
  with local_workers_lib.LocalWorkers(2) as workers:
    with measurer_lib.Measurer(source, CLUSTER, target=workers.target,
                               connect_s=3, timeout_s=20, **QUICK) as measurer:
      devices = rows(graph, 2)
      assert measurer.price(graph, devices[:1]).valid.all()
      workers.close()
      with pytest.raises(errors.MeasurementError, match='cannot be reached'):
        measurer.price(graph, devices)


def test_a_server_that_crashes_is_a_violation_of_the_placement_only():

  def wrong():
    return tf.group(tf.raw_ops.Abort(error_msg='bang'))

  source, graph = measured.build(wrong)
  with measurer_lib.Measurer(source, CLUSTER, local_workers=2,
                             **QUICK) as measurer:
    for device in range(2):
      result, = evaluated(measurer, graph, np.full((1, graph.num_ops), device))
      assert [v.kind for v in result.violations] == ['run']
      assert 'SIGABRT' in result.violations[0].message
      assert math.isinf(result.step_time_s)


def test_a_hang_is_a_violation_at_once():
  source, graph = measured.build(measured.endless)
  with measurer_lib.Measurer(source, CLUSTER, local_workers=2, timeout_s=3,
                             **QUICK) as measurer:
    result, = evaluated(measurer, graph, np.zeros((1, graph.num_ops), int))
  assert 'no answer within 3 s' in result.violations[0].message


class _Killed:
  """A client whose processes are always killed."""

  def __init__(self):
    self.tries = 0

  def send(self, unused_message):
    self.tries += 1

  def receive(self, *unused):
    raise worker_process.Died('killed', killed=True)

  def close(self):
    pass


@pytest.mark.parametrize('oom_kills, tries', [(lambda: 0, 10),
                                              (iter(range(99)).__next__, 3),
                                              (lambda: None, 3)])
def test_what_is_killed_again_and_again_is_a_violation(monkeypatch, oom_kills,
                                                       tries):
  monkeypatch.setattr(bench_lib, '_oom_kills', oom_kills)
  setup = measuring_worker.Setup(None, (), (), (), '', 1., 1., None)
  bench, client = bench_lib.Bench(setup), _Killed()
  monkeypatch.setattr(bench, '_start_what_is_missing',
                      lambda: setattr(bench, '_client', client))
  answer = bench.measure(measuring_worker.Request(np.zeros(0)))
  assert isinstance(answer, messages.Failure) and answer.lost
  assert client.tries == tries


def test_control_edges_make_an_order():

  def race():
    x = tf1.placeholder(tf.float32, (), 'x')
    slow = tf.raw_ops.Abort(error_msg='late', exit_without_error=False)
    with tf.control_dependencies([x]):
      return tf.group(slow, tf.identity(x, name='fast'))

  source, graph = measured.build(race)
  setup_edges = []

  def edges(graph, placement):
    setup_edges.append(placement.priorities.tolist())
    return np.array([[graph.names.index('x'), graph.names.index('fast')]])

  cluster = local_devices.local_cluster([cluster_lib.local_name('CPU', 0)])
  with measurer_lib.Measurer(source, cluster, control_edges=edges,
                             **QUICK) as measurer:
    placement = placement_lib.Placement(np.zeros(graph.num_ops), cluster,
                                        np.arange(graph.num_ops))
    assert 'SIGABRT' in measurer.evaluate(graph,
                                          placement).violations[0].message
    request = measurer._request(graph, placement)
    assert request.control_edges == (('x', 'fast'),)
    placed = measurer._graph.placed(dict.fromkeys(graph.names, ''),
                                    request.control_edges)
  fast, = [n for n in placed.node if n.name == 'fast']
  assert '^x' in fast.input
  assert setup_edges[0] == list(range(graph.num_ops))


def test_contradictions_in_the_configuration():
  with pytest.raises(errors.MeasurementError, match='Both a target'):
    measure_config.MeasureConfig(target='grpc://host:1', local_workers=2)
  with pytest.raises(errors.MeasurementError, match='steps is 0'):
    measure_config.MeasureConfig(steps=0)
  with pytest.raises(errors.MeasurementError, match='local_workers is -1'):
    measure_config.MeasureConfig(local_workers=-1)


def test_the_client_shares_the_cores_of_the_first_worker(monkeypatch):
  monkeypatch.setattr(os, 'sched_getaffinity', lambda _: set(range(8)))
  config = measure_config.MeasureConfig
  assert measure_config.divided_cores(config()) == ([], [])
  assert measure_config.divided_cores(config(target='grpc://h:1')) == ([], [])
  assert measure_config.divided_cores(
      config(local_workers=2)) == ([[0, 1, 2, 3], [4, 5, 6, 7]], [0, 1, 2, 3])


def test_who_is_killed_during_a_step_is_made_good(trained, monkeypatch):
  source, graph = trained
  before = set(processes.children(os.getpid()))
  victims, seen = [0, 2], []  # The client, a server.

  def ours():
    return [p for p in processes.children(os.getpid()) if p not in before]

  def kill():
    seen.append(ours())
    os.kill(seen[-1][victims.pop()], signal.SIGKILL)

  send = worker_process.WorkerProcess.send

  def send_and_kill(self, message):
    send(self, message)
    if isinstance(message, measuring_worker.Request) and victims:
      timer = threading.Timer(1., kill)
      timer.start()

  monkeypatch.setattr(worker_process.WorkerProcess, 'send', send_and_kill)
  with measurer_lib.Measurer(source, CLUSTER, local_workers=2, steps=3,
                             warmup=0, budget_s=3., tolerance=0.) as measurer:
    result, = evaluated(measurer, graph, rows(graph, 1))
    seen.append(ours())
  assert result.valid and math.isfinite(result.step_time_s)
  # Servers and sessions go together: each time all three are new.
  assert [len(pids) for pids in seen] == [3] * 3
  assert len(set().union(*seen)) == 9

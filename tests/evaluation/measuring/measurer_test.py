"""Tests of gdp_grappler.evaluation.measuring.measurer."""

import contextlib
import dataclasses
import math
import os
import pathlib
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import tensorflow as tf

from gdp_grappler import errors
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import constraints
from gdp_grappler.cluster import local_devices
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.cluster import presets
from gdp_grappler.evaluation.measuring import measurer as measurer_lib
from gdp_grappler.evaluation.measuring import measuring_worker
from gdp_grappler.graph import graph_def_io
from gdp_grappler.graph.sources import sources
from gdp_grappler.processes import messages
from helpers import fresh
from helpers import measured
from helpers import processes
from helpers import warm

# Not with Bazel's unit tests.
pytestmark = pytest.mark.e2e
QUICK = measured.QUICK

tf1 = tf.compat.v1
TESTDATA = pathlib.Path(__file__).parents[2] / 'testdata'


def local_cluster(number=3):
  return local_devices.local_cluster(
      [cluster_lib.local_name('CPU', i) for i in range(number)])


def on(graph, cluster, device=0):
  """Every group on one device if it may, else on the host."""
  allowed = constraints.allowed_devices(graph, cluster)
  return placement_lib.from_groups(
      graph, np.where(allowed[:, device], device, cluster.host), cluster)


@contextlib.contextmanager
def measuring(name):
  """A training step, a cluster, and who measures it."""
  source = sources.load(str(TESTDATA / f'{name}_train_step.pb'))
  cluster = local_cluster()
  with measurer_lib.Measurer(source, cluster, **QUICK) as measurer:
    yield graph_def_io.read(source), cluster, measurer


@pytest.fixture(scope='module')
def trained():
  with measuring('dense') as result:
    yield result


def test_training_steps_are_timed_on_several_devices(trained):
  check_timed(*trained)


def test_training_steps_with_loops_are_timed():
  with measuring('lstm') as looping:
    check_timed(*looping)


def check_timed(graph, cluster, measurer):
  """Two placements run, at prices that stay."""
  allowed = constraints.allowed_devices(graph, cluster)
  generator = np.random.default_rng(0)
  rows = [
      np.array([generator.choice(np.flatnonzero(a)) for a in allowed])
      for _ in range(2)
  ]
  prices = measurer.price_groups(graph, np.stack(rows))
  for step_time_s, row in zip(prices.seconds, rows):
    result = measurer.evaluate(graph,
                               placement_lib.from_groups(graph, row, cluster))
    assert result.step_time_s == step_time_s
    assert result.valid and not result.simulated
    assert 0 < result.step_time_s < 10
    assert 0 < result.spread_s < 10
    assert len(result.peak_bytes) == len(cluster.pool_bytes)
    assert result.peak_bytes[0] > graph.param_bytes.sum()


def test_a_placement_is_measured_once(trained):
  graph, cluster, measurer = trained
  first = measurer.evaluate(graph, on(graph, cluster, 1))
  assert measurer.evaluate(graph, on(graph, cluster, 1)) is first


def test_a_process_that_died_is_replaced(trained):
  graph, cluster, measurer = trained
  for end in (False, True):
    if end:
      worker = processes.children(os.getpid())[-1]
      os.kill(worker, signal.SIGKILL)
      assert processes.ended([worker])
    placement = on(graph, cluster, 2)
    devices = placement.devices.copy()
    loose = np.flatnonzero(constraints.allowed_devices(graph, cluster)[:, 1])
    devices[graph.groups == loose[-1 - end]] = 1
    assert measurer.evaluate(graph, placement_lib.Placement(devices,
                                                            cluster)).valid


def test_another_graph_is_refused(trained):
  graph, cluster, measurer = trained
  other = graph.replace(names=tuple(f'{n}_2' for n in graph.names))
  with pytest.raises(errors.MeasurementError, match='lacks op|not the one'):
    measurer.evaluate(other, on(graph, cluster))


def test_more_work_takes_longer_and_more_memory():

  def product(size):
    value = tf.ones((size, size)) * tf1.placeholder(tf.float32, (), 'x')
    for _ in range(6):
      value = tf.matmul(value, value)
    return tf.identity(value, name='y')

  results = []
  for size in (8, 700):
    source, graph = measured.build(lambda size=size: product(size))
    cluster = local_cluster(1)
    with measurer_lib.Measurer(source, cluster, **QUICK) as measurer:
      results.append(measurer.evaluate(graph, on(graph, cluster)))
  small, large = results
  assert large.step_time_s > 3 * small.step_time_s
  assert large.peak_bytes[0] >= 2 * 700 * 700 * 4 > small.peak_bytes[0]


def test_memory_is_counted_where_it_is():

  def product():
    weights = tf1.get_variable('w', (100, 200), use_resource=True)
    return tf.matmul(weights, weights, transpose_b=True, name='y')

  source, graph = measured.build(product)
  local = local_cluster(2)
  cluster = cluster_lib.Cluster(
      'apart',
      tuple(dataclasses.replace(d, memory=d.name) for d in local.devices),
      local.links)
  with measurer_lib.Measurer(source, cluster, **QUICK) as measurer:
    peaks = measurer.evaluate(graph, on(graph, cluster, 1)).peak_bytes
  assert peaks[0] < 20_000 and peaks[1] >= 80_000


def test_a_keras_model_that_a_function_returns(tmp_path, monkeypatch):
  (tmp_path / 'small_model.py').write_text(
      textwrap.dedent('''
      import keras

      def build():
        return keras.Sequential([
            keras.Input((12,)), keras.layers.Dense(8, 'relu'),
            keras.layers.Dense(3, 'softmax')])
      '''))
  monkeypatch.syspath_prepend(str(tmp_path))
  source = sources.load('small_model:build', batch_size=4)
  graph, cluster = graph_def_io.read(source, unknown_dim=4), local_cluster(2)
  with measurer_lib.Measurer(source, cluster, batch_size=4,
                             **QUICK) as measurer:
    result = measurer.evaluate(graph, on(graph, cluster, 1))
  assert not result.violations
  assert 0 < result.step_time_s < math.inf


def test_a_crash_is_a_violation_of_the_placement_only():
  source, graph = measured.build(
      lambda: tf.group(tf.raw_ops.Abort(error_msg='bang')))
  cluster = local_cluster(2)
  with measurer_lib.Measurer(source, cluster, **QUICK) as measurer:
    for device in range(2):
      result = measurer.evaluate(graph, on(graph, cluster, device))
      assert [v.kind for v in result.violations] == ['run']
      assert 'SIGABRT' in result.violations[0].message
      assert '\n' not in result.violations[0].message
      assert math.isinf(result.step_time_s)


def test_an_op_that_fails_is_a_violation():

  def wrong():
    index = tf1.placeholder(tf.int32, (3,), 'index')
    return tf.gather(tf.constant([1., 2.]), index + 5, name='y')

  source, graph = measured.build(wrong)
  cluster = local_cluster(1)
  with measurer_lib.Measurer(source, cluster, **QUICK) as measurer:
    result = measurer.evaluate(graph, on(graph, cluster))
  assert result.violations[0].kind == 'run'
  assert 'not in [0, 2)' in result.violations[0].message


def test_a_hang_is_a_violation_that_more_patience_may_mend(tmp_path):
  source, graph = measured.build(measured.endless)
  cluster = local_cluster(1)
  with measurer_lib.Measurer(source, cluster, timeout_s=3, cache_dir=tmp_path,
                             **QUICK) as measurer:
    result = measurer.evaluate(graph, on(graph, cluster))
  assert result.violations[0].kind == 'run'
  assert 'no answer within 3 s' in result.violations[0].message
  assert not list(tmp_path.iterdir())
  assert math.isinf(result.step_time_s)


def test_a_device_that_the_machine_lacks():
  source, graph = measured.build(
      lambda: tf.constant(1.) * tf1.placeholder(tf.float32, (), 'x'))
  cluster = presets.preset('2xP100')
  if tf.config.list_physical_devices('GPU'):
    pytest.skip('the machine may have it')
  with measurer_lib.Measurer(source, cluster, **QUICK) as measurer:
    with pytest.raises(errors.MeasurementError, match='has no device.*GPU:0'):
      measurer.evaluate(graph, on(graph, cluster, 1))


@pytest.mark.parametrize('kind', [signal.SIGINT, signal.SIGKILL])
def test_the_process_ends_with_its_parent(tmp_path, kind):
  source, _ = measured.build(measured.endless)
  path = tmp_path / 'measured.endless.pb'
  path.write_bytes(source.to_meta_graph().SerializeToString())
  # Whoever runs the tests in the background may have Ctrl-C ignored.
  program = warm.MARK + textwrap.dedent(f'''
      import signal
      signal.signal(signal.SIGINT, signal.default_int_handler)
      from gdp_grappler.cluster import local_devices, placement
      from gdp_grappler.evaluation.measuring import measurer
      from gdp_grappler.graph import graph_def_io
      from gdp_grappler.graph.sources import sources
      source = sources.load({str(path)!r})
      graph = graph_def_io.read(source)
      cluster = local_devices.local_cluster(
          ['/job:localhost/replica:0/task:0/device:CPU:0'])
      measurer.Measurer(source, cluster).evaluate(
          graph, placement.Placement([0] * graph.num_ops, cluster))
      ''')
  # The worker is a fork of the parent's, which is like it.
  parent = subprocess.Popen([sys.executable, '-c', program],
                            env=fresh.environment(GDP_DISABLE='1'),
                            stderr=subprocess.DEVNULL)
  with parent:
    try:
      worker = _worker(parent)
    except AssertionError:
      parent.kill()
      raise
    parent.send_signal(kind)
    parent.wait(60)
  assert processes.ended([worker])


def _worker(parent):
  """The process that measures, when TensorFlow has started its threads."""
  found = []

  def is_there():
    for child in processes.children(parent.pid):
      with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        if len(list(pathlib.Path(f'/proc/{child}/task').iterdir())) > 4:
          found.append(child)
    return found

  processes.wait_until(is_there, parent)
  return found[0]


def test_logical_gpus_of_one_card():
  assert measurer_lib.gpu_splits(presets.preset('2xP100')) == ()
  halved = presets.preset('2xH100:2')
  size = halved.devices[halved.accelerators[0]].memory_bytes
  assert measurer_lib.gpu_splits(halved) == ((size, size), (size, size))


def test_messages_survive_a_pipe(tmp_path):
  with open(tmp_path / 'pipe', 'w+b') as file:
    for message in (None, measuring_worker.Timing(.5, .1, 3, (1, 2))):
      file.seek(0)
      messages.send(file, message)
      file.seek(0)
      assert messages.receive(file.read) == message
    for size in (20, 4, 0):
      file.truncate(size)
      file.seek(0)
      with pytest.raises(EOFError):
        messages.receive(file.read)

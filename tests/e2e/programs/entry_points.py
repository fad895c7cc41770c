"""All ways to run a graph, with placement off, on, off and on again."""

import queue
import sys
import tempfile
import threading

import common
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
common.make_devices()
WEIGHTS = tf.Variable(np.eye(8, dtype=np.float32) * 0.5)
X = tf.constant(np.arange(32, dtype=np.float32).reshape(4, 8) / 32)


def body(x):
  for _ in range(6):
    x = tf.nn.relu(tf.matmul(x, WEIGHTS) + x * 0.1)
  return x


def switching():
  """Calls one traced function under changing options."""
  traces = []

  @tf.function
  def function(x):
    traces.append(1)
    return body(x)

  steps = []
  for option in (False, common.RANDOM, False, common.RANDOM, None):
    common.set_option(option)
    y = function(X)
    _, devices = common.devices_used(lambda: function(X))
    steps.append({'devices': devices, 'sum': float(tf.reduce_sum(y))})
  return {'steps': steps, 'traces': len(traces)}


def old_threads():
  """Calls a function in a thread before another thread sets the option."""
  function, calls, done = tf.function(body), queue.Queue(), queue.Queue()

  def work():
    while calls.get():
      done.put(common.devices_used(lambda: function(X))[1])

  worker = threading.Thread(target=work)
  worker.start()
  devices = []
  for option in (False, common.RANDOM, False, common.RANDOM):
    common.set_option(option)
    calls.put(True)
    devices.append(done.get(timeout=60))
  calls.put(False)
  worker.join()
  return devices


def planned():
  """Calls a function with two scopes, which a plan puts on two devices."""

  @tf.function
  def function(x):
    for scope in ('left', 'right'):
      with tf.name_scope(scope):
        for _ in range(6):
          x = tf.nn.relu(tf.matmul(x, WEIGHTS))
    return x

  stock = float(tf.reduce_sum(function(X)))
  common.set_option({'plan': {'left': 'CPU:1', 'right/*': 'CPU:2'}})
  y, devices = common.devices_used(lambda: function(X))
  return {'stock': stock, 'placed': float(tf.reduce_sum(y)), 'devices': devices}


def threads():
  """Runs functions for the first time in several threads at once."""
  common.set_option(common.RANDOM)
  functions = [tf.function(lambda x, k=k: body(x) * k) for k in range(4)]
  sums = {}

  def run(k):
    sums[k] = float(tf.reduce_sum(functions[k](X)))

  workers = [threading.Thread(target=run, args=(k,)) for k in range(4)]
  for worker in workers:
    worker.start()
  for worker in workers:
    worker.join()
  return [sums[k] for k in range(4)]


def session(option, config, monitored=False):
  """Trains a v1 graph with both kinds of variables."""
  common.set_option(option)
  with tf.Graph().as_default():
    x = tf1.placeholder(tf.float32, (4, 8), name='x')
    y = x
    for i in range(3):
      weights = tf1.get_variable(f'w{i}', use_resource=bool(i % 2),
                                 initializer=np.eye(8, dtype=np.float32) * 2)
      y = tf.nn.relu(tf.matmul(y, weights) + 1.)
    loss = tf.reduce_mean(y)
    step = tf1.train.AdamOptimizer(0.1).minimize(loss)
    before = config.SerializeToString() if config else None
    if monitored:
      tf1.train.create_global_step()
      new_session = tf1.train.MonitoredSession(
          tf1.train.ChiefSessionCreator(config=config))
    else:
      new_session = tf1.Session(config=config)
      new_session.run(tf1.global_variables_initializer())
    with new_session as sess:
      options = tf1.RunOptions(output_partition_graphs=True)
      metadata = tf1.RunMetadata()
      losses = [
          float(
              sess.run([loss, step], {x: X_VALUE}, options=options,
                       run_metadata=metadata)[0]) for _ in range(3)
      ]
  return {
      'losses': losses, 'devices': common.count(metadata.partition_graphs),
      'untouched': not config or config.SerializeToString() == before
  }


def sessions():
  config = tf1.ConfigProto(device_count={'CPU': 3})
  return {
      'stock': session(False, config),
      'own_config': session(common.RANDOM, config),
      'no_config': session(common.RANDOM, None),
      'monitored': session(common.RANDOM, config, monitored=True),
  }


def one_thread():
  """Runs a session whose executor has one thread and no reference variables."""
  config = tf1.ConfigProto(device_count={'CPU': 3})
  config.experimental.executor_type = 'SINGLE_THREADED_EXECUTOR'
  results = []
  for option in (False, common.RANDOM):
    common.set_option(option)
    metadata = tf1.RunMetadata()
    with tf.Graph().as_default(), tf1.Session(config=config) as sess:
      y = tf1.placeholder_with_default(X_VALUE, X_VALUE.shape)
      for _ in range(6):
        y = tf.sin(y) + tf.cos(y)
      value = sess.run(tf.reduce_sum(y), None,
                       tf1.RunOptions(output_partition_graphs=True), metadata)
    results.append({
        'sum': float(value), 'devices': common.count(metadata.partition_graphs)
    })
  return results


def one_thread_function():
  """Calls a function in an executor that has one thread, and afterwards."""
  function = tf.function(body)
  common.set_option(common.RANDOM)
  with tf.experimental.function_executor_type('SINGLE_THREADED_EXECUTOR'):
    _, devices = common.devices_used(lambda: function(X))
  return {
      'in_scope': devices, 'after': common.devices_used(lambda: function(X))[1]
  }


class Module(tf.Module):

  def __init__(self):
    super().__init__()
    self.weights = tf.Variable(np.eye(8, dtype=np.float32))

  @tf.function(input_signature=[tf.TensorSpec((None, 8))])
  def serve(self, x):
    for _ in range(6):
      x = tf.nn.relu(tf.matmul(x, self.weights) + x * 0.1)
    return x


def saved_model():
  results = {}
  module = Module()
  with tempfile.TemporaryDirectory() as directory:
    tf.saved_model.save(module, directory, signatures=module.serve)
    for name, option in (('stock', False), ('placed', common.RANDOM)):
      common.set_option(option)
      signature = tf.saved_model.load(directory).signatures['serving_default']
      y, devices = common.devices_used(lambda s=signature: s(X))
      results[name] = {
          'sum': float(tf.reduce_sum(list(y.values())[0])), 'devices': devices
      }
  return results


def dataset():
  """Runs a dataset. Its functions are large enough, but the pass skips them."""
  common.set_option(common.RANDOM)
  before = len(ASKED)
  inner = tf.function(body)
  batches = tf.data.Dataset.from_tensors(X).repeat(3).map(body).map(
      inner, num_parallel_calls=2).filter(lambda x: tf.reduce_sum(body(x)) > 0)
  return {
      'sums': [float(tf.reduce_sum(batch)) for batch in batches],
      'asked': ASKED[before:]
  }


def with_while_and_gradient():
  """Runs a loop and its gradient on all devices."""

  @tf.function
  def function(x):
    with tf.GradientTape() as tape:
      tape.watch(x)
      y = x
      i = tf.constant(0)
      while i < 3:
        y = tf.tanh(tf.matmul(y, WEIGHTS) + tf.sin(x))
        i += 1
      loss = tf.reduce_sum(y * tf.cos(y) + tf.exp(y))
    return tape.gradient(loss, x)

  results = []
  for option in (False, common.RANDOM):
    common.set_option(option)
    y, devices = common.devices_used(lambda: function(X))
    results.append({'values': y.numpy().ravel().tolist(), 'devices': devices})
  return results


def listen():
  """Records the ids of all graphs that reach Python, in `ASKED`.

  The function has to be called before the pass is connected.
  """
  from gdp_grappler.plugin import host
  answer = host.Host.answer

  def heard(self, query):
    ASKED.append(query.graph_id)
    return answer(self, query)

  host.Host.answer = heard


X_VALUE = X.numpy()
ASKED = []


def main():
  assert 'gdp_grappler.plugin.hook' in sys.modules
  assert 'gdp_grappler.plugin.host' not in sys.modules
  listen()
  common.finish(switching=switching(), old_threads=old_threads(),
                threads=threads(), planned=planned(), sessions=sessions(),
                one_thread=one_thread(),
                one_thread_function=one_thread_function(),
                saved_model=saved_model(), dataset=dataset(),
                loop=with_while_and_gradient())


if __name__ == '__main__':
  main()

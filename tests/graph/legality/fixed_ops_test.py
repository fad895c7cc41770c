"""What is fixed, where several rules meet; `graph_def_io_test` has the rest."""

import pytest
import tensorflow as tf

from gdp_grappler.cluster import constraints
from gdp_grappler.cluster import presets
from gdp_grappler.graph import graph_def_io
from gdp_grappler.graph.legality import asked
from helpers import graph_defs


def _read(make, live=False):
  source = graph_defs.source(graph_defs.built(make))
  return graph_def_io.read(asked.of_file(source), live=live)


def _pins(graph):
  return {
      name: (pin, bool(user))
      for name, pin, user in zip(graph.names, graph.pins, graph.user_pins)
      if pin
  }


def test_what_was_asked_for_is_a_pin():

  def make():
    with tf.device('/gpu:1'):
      x = tf.ones((2, 2), name='a') * 2.
    tf.sin(x, name='b')

  found = _pins(_read(make))
  assert found['mul'] == ('/device:GPU:1', True)
  assert 'b' not in found


def test_variable_is_pinned_and_its_reads_ask_for_nothing():

  def make():
    with tf.device('/gpu:1'):
      v = tf.compat.v1.get_variable('v', (2,), use_resource=True)
    with tf.device('/gpu:0'):
      tf.sin(v, name='used')

  graph = _read(make)
  found = _pins(graph)
  assert found['v'] == ('/device:GPU:1', True)
  assert found['used'] == ('/device:GPU:0', True)
  reads = [n for n, op in zip(graph.names, graph.op_types) if 'Read' in op]
  assert reads and not any(user for name in reads
                           for _, user in [found.get(name, ('', False))])


def test_loop_that_is_torn_asks_for_nothing():
  """A loop is one group: its cells cannot be on several devices."""

  def make():
    tf.compat.v1.disable_control_flow_v2()

    def body(i, x):
      with tf.device('/gpu:0'):
        x = tf.sin(x)
      with tf.device('/gpu:1'):
        return i + 1, tf.cos(x)

    tf.compat.v1.while_loop(lambda i, x: i < 3, body, [0, tf.ones((2, 2))])

  try:
    graph = _read(make)
  finally:
    tf.compat.v1.enable_control_flow_v2()
  assert not graph.user_pins.any()
  assert any(op == 'Sin' for op in graph.op_types)


def _jitted(device):
  """Adds a variable on a device and a call that XLA compiles."""
  with tf.device(device):
    weight = tf.compat.v1.get_variable('weight', (8, 8), use_resource=True)
  tf.function(lambda x: tf.matmul(x, weight), jit_compile=True)(tf.ones((8, 8)))


def _call(graph):
  return next(i for i, op in enumerate(graph.op_types) if 'Call' in op)


def test_call_compiled_by_xla_is_on_the_first_gpu():
  """The call and its variables were on the CPU of a cluster with GPUs."""
  graph = _read(lambda: _jitted(None))
  call = _call(graph)
  assert graph.pins[call] == '/device:GPU:0' and not graph.user_pins[call]
  assert graph.groups[call] == graph.groups[graph.names.index('weight')]


def test_call_follows_the_pin_of_its_variable():
  """The call was on the CPU, so the device of the variable was dropped."""
  graph = _read(lambda: _jitted('/gpu:1'))
  found = _pins(graph)
  assert found['weight'] == ('/device:GPU:1', True)
  assert graph.names[_call(graph)] not in found


def test_variable_of_the_caller_is_on_the_first_gpu():
  """The graph of a function read all its variables on the CPU."""
  weight = tf.Variable(tf.ones((8, 8)))
  function = tf.function(lambda x: tf.matmul(x, weight)).get_concrete_function(
      tf.TensorSpec((8, 8)))
  graph = graph_def_io.read(graph_defs.source(function.graph.as_graph_def()))
  read = graph.groups[graph.op_types.index('ReadVariableOp')]
  pins = {pin for group, pin in zip(graph.groups, graph.pins) if group == read}
  assert pins == {'', '/device:GPU:0'}


@pytest.mark.parametrize('device', ['/gpu:1', '/device:GPU:1'])
def test_devices_in_a_file_do_not_tie_what_the_caller_feeds_or_fetches(device):
  """One device was slower, as the fetched ops of a placed graph stayed."""

  def make():
    x = tf.compat.v1.placeholder(tf.float32, (8, 8), name='x')
    tf.matmul(x, x, name='y')

  free = graph_defs.source(graph_defs.built(make), feeds=('x',), fetches=('y',))
  placed = graph_defs.source(graph_defs.built(make), feeds=('x',),
                             fetches=('y',))
  for node in placed.graph_def.node:
    node.device = device
  for source in (free, placed):
    found = _pins(graph_def_io.read(asked.of_file(source)))
    assert found == {'x': ('CPU:0', False)}


def test_graph_that_ran_keeps_what_its_caller_fetches():
  """The pass that will place it leaves such ops where they are."""
  source = graph_defs.source(
      graph_defs.built(lambda: tf.ones((8, 8), name='y')), fetches=('y',),
      devices=('/device:CPU:0', '/device:GPU:1'))
  source.graph_def.node[0].device = '/device:GPU:1'
  assert _pins(graph_def_io.read(source)) == {'y': ('/device:GPU:1', False)}


def test_task_without_a_device_has_a_gpu():
  """A task alone is no device of a cluster, so the op was on the host."""

  def make():
    with tf.device('/job:worker/task:1'):
      tf.debugging.check_numerics(tf.ones(8), '', name='op')

  graph = _read(make)
  assert graph.pins[graph.names.index(
      'op')] == '/job:worker/task:1/device:GPU:0'


def test_call_with_a_table_of_the_host_is_there():

  def make():
    table = tf.lookup.experimental.MutableHashTable(tf.int64, tf.int64, 0)
    tf.function(lambda x: table.lookup(x), jit_compile=True)(tf.ones((8,),
                                                                     tf.int64))

  graph = _read(make)
  assert graph.pins[_call(graph)] == '/device:CPU:0'


_GPUS = ['/gpu:0', '/gpu:5', '/job:worker/task:1/gpu:0']


@pytest.mark.parametrize('device', _GPUS)
@pytest.mark.parametrize('make', [
    lambda: tf.strings.as_string(tf.ones(8), name='op'),
    lambda: tf.compat.v1.py_func(lambda: 1., [], tf.float64, name='op'),
    lambda: tf.raw_ops.MutableHashTableV2(key_dtype=tf.int64, value_dtype=tf.
                                          int64, name='op'),
], ids=['string', 'python', 'table'])
def test_op_of_the_host_in_the_scope_of_a_gpu_is_on_the_host(make, device):
  """No device suited such an op, so the graph was refused."""

  def asks():
    with tf.device(device):
      make()

  graph = _read(asks)
  op = graph.names.index('op')
  task = '/job:worker/task:1' if 'job' in device else ''
  assert graph.pins[op] == f'{task}/device:CPU:0' and not graph.user_pins[op]
  allowed = constraints.allowed_devices(graph, presets.preset('2xP100'))
  assert allowed[graph.groups[op]].tolist() == [True, False, False]


@pytest.mark.parametrize('device', _GPUS)
def test_loop_with_an_op_of_the_host_is_there(device):
  """An op that stayed on a GPU tore the loop, so the graph was refused."""

  def body(i, x):
    with tf.device(device):
      x = tf.debugging.check_numerics(x, '', name='op')
    return i + tf.strings.length(tf.strings.as_string(i)), x

  def make():
    tf.compat.v1.disable_control_flow_v2()
    tf.compat.v1.while_loop(lambda i, x: i < 3, body, [0, tf.ones((2, 2))])

  try:
    graph = _read(make)
  finally:
    tf.compat.v1.enable_control_flow_v2()
  op = graph.op_types.index('CheckNumerics')
  allowed = constraints.allowed_devices(graph, presets.preset('2xP100'))
  assert allowed[graph.groups[op]].tolist() == [True, False, False]


@pytest.mark.parametrize('make, expected', [
    (lambda: tf.debugging.check_numerics(tf.ones(8), '', name='op'),
     '/device:GPU:0'),
    (lambda: tf.py_function(lambda: 1., [], tf.float32, name='op'),
     '/device:GPU:0'),
    (lambda: tf.compat.v1.py_func(lambda: 1., [], tf.float64, name='op'),
     '/device:CPU:0'),
])
def test_op_that_stays_is_where_its_kernels_are(make, expected):
  """An op that stays was on the CPU, whatever its kernels were."""
  graph = _read(make)
  assert graph.pins[graph.names.index('op')] == expected

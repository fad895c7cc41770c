"""What is fixed, where several rules meet; `graph_def_io_test` has the rest."""

import tensorflow as tf

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

import pytest
import tensorflow as tf

from gdp_grappler.graph.legality import asked
from gdp_grappler.plugin import asked_devices
from gdp_grappler.plugin import settings
from helpers import graph_defs
from helpers import strategies

_DEVICES = tuple(
    f'/job:localhost/replica:0/task:0/device:CPU:{i}' for i in range(2))


@pytest.fixture(name='warnings')
def _warnings(monkeypatch):
  result = []
  monkeypatch.setattr(asked_devices.notices, 'warn_once', result.append)
  monkeypatch.setattr(asked_devices, '_warned', set())
  return result


def _kept(*nodes, **option):
  """The requests that are kept, of nodes given as (request, device)."""
  graph_def = graph_defs.graph_def(*[
      graph_defs.node(f'n{i}', 'NoOp', device=device)
      for i, (_, device) in enumerate(nodes)
  ])
  for node, (wish, _) in zip(graph_def.node, nodes):
    node.attr[asked.ATTRIBUTE].s = wish.encode()
  source = graph_defs.source(graph_def, devices=_DEVICES)
  found = asked_devices.with_feasible_requests(source,
                                               settings.Settings(**option))
  return [asked.device(node) for node in found.graph_def.node]


def test_what_tensorflow_did_is_kept(warnings):
  assert _kept(('/device:CPU:1', _DEVICES[1])) == [_DEVICES[1]]
  assert not warnings


def test_what_tensorflow_could_not_do_is_not(warnings):
  assert _kept(('/device:CPU:1', _DEVICES[0])) == ['']
  assert _kept(('/device:GPU:*', _DEVICES[0])) == ['']
  assert not warnings


def test_missing_device_is_told_once(warnings):
  missing = ('/device:GPU:7', _DEVICES[0])
  assert _kept(missing, missing) == ['', '']
  line, = warnings
  assert line == (
      'tf.device asks for GPU:7, which this program does not have '
      '(first by "n0"): ops that ask for it are placed as if they did not')


def test_device_of_a_cluster_that_is_reported_for(warnings):
  assert _kept(('/device:GPU:1', _DEVICES[0]), cluster='2xP100',
               mode='report') == ['/device:GPU:1']
  assert not warnings
  assert _kept(('/device:CPU:1', _DEVICES[1]), cluster='2xP100',
               mode='report') == ['']
  assert 'cluster "2xP100" does not have' in warnings[0]


def test_function_session_and_what_nobody_knows():
  function = tf.function(lambda x: tf.sin(x))
  name = function.get_concrete_function(tf.constant(1.)).name.decode()
  assert asked_devices.of(name).is_known
  assert not asked_devices.of('of_another_process').is_known
  with tf.Graph().as_default() as graph, tf.device('/cpu:1'):
    tf.constant(1., name='a')

  class Session:

    def __init__(self):
      self.graph = graph

    def run(self):
      return asked_devices.of('a_graph').devices

  assert asked_devices.in_session(Session.run, Session()) == {
      ('a_graph', 'a'): '/device:CPU:1'
  }
  assert not asked_devices.of('a_graph').is_known


@pytest.mark.parametrize('make, device',
                         [(tf.distribute.OneDeviceStrategy, '/cpu:0'),
                          (tf.distribute.MirroredStrategy, ['/cpu:0'])])
def test_a_strategy_is_named_beside_tf_device(make, device):
  """Once the line named tf.device in a program that has only a strategy."""
  assert asked_devices.request_source() == 'tf.device'
  with strategies.made(lambda: make(device)):
    said = asked_devices.request_source()
  assert said == f'{make.__name__} or tf.device'

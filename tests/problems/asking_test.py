import pytest

from gdp_grappler.cluster import resolve
from gdp_grappler.graph.legality import asked
from gdp_grappler.problems import asking
from helpers import graph_defs
from helpers import graphs


@pytest.fixture(name='source')
def _source():
  return asked.of_file(
      graph_defs.source(
          graph_defs.graph_def(
              graph_defs.node('a', 'NoOp'), *[
                  graph_defs.node(device, 'NoOp', device=device)
                  for device in ('/gpu:1', '/device:GPU:3', '/device:GPU:*')
              ])))


def _kept(source, pins):
  lines = []
  found = asking.kept(source, pins, resolve.resolve('2xP100'), lines.append)
  return [asked.device(node) for node in found.graph_def.node], lines


def test_kept_are_devices_of_the_cluster(source):
  found, lines = _kept(source, 'keep')
  assert found == ['', '/device:GPU:1', '', '']
  assert '1 op asks for GPU:3, which cluster "2xP100" does not' in lines[0]
  assert len(lines) == 1


def test_ignored_without_a_word(source):
  assert _kept(source, 'ignore') == ([''] * 4, [])


def test_graph_that_asks_for_nothing_is_itself():
  source = graph_defs.source(graph_defs.graph_def(graph_defs.node('a', 'NoOp')))
  assert asking.kept(source, 'keep', resolve.resolve('2xP100'), print) is source


def test_a_host_that_the_cluster_lacks_is_told():
  """Names without a replica, as users of v1 write them, got no line."""
  source = asked.of_file(
      graph_defs.source(
          graph_defs.graph_def(*[
              graph_defs.node(name, 'NoOp', device=device)
              for name, device in [(
                  'a', ''), (
                      'b', '/job:ps/task:3/device:GPU:1'
                  ), ('c', '/job:localhost/task:0/device:GPU:1'
                     ), ('d', '/job:localhost/replica:0/task:0/device:GPU:7')]
          ])))
  found, lines = _kept(source, 'keep')
  assert [device[-5:] for device in found] == ['', '', 'GPU:1', '']
  assert '1 op asks for ps/3/GPU:1, which cluster "2xP100"' in lines[0]
  assert '1 op asks for GPU:7, which cluster "2xP100"' in lines[1]


def test_only_ops_that_stay_are_told():
  """Requests that cannot be granted were counted, too."""
  graph = graphs.chain(3, user_pins=[True, False, True],
                       pins=['/device:GPU:0'] * 3)
  lines = []
  asking.tell_kept(graph, lines.append)
  line, = lines
  assert '2 ops stay on the device' in line and "pins='ignore'" in line
  asking.tell_kept(graphs.chain(3), pytest.fail)

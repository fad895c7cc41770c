"""Without communication, the simulator agrees with Grappler's scheduler.

`Cluster.MeasureCosts` runs TensorFlow's VirtualScheduler
(tensorflow/core/grappler/costs/virtual_scheduler.cc) on devices that need not
be there. It is an oracle that nobody here wrote. To compare the schedules and
nothing else,

* both charge what Grappler's estimator charges for each op, as its StepStats
  report it;
* transfers take no time: the simulator's links are infinitely fast, and
  Grappler's devices have so much bandwidth that each _Send and _Recv takes its
  shortest time, 1 ns, where the ops of a graph take milliseconds;
* every op that nobody reads is a target, so that Grappler drops nothing; its
  colocation constraints are off, because the placement obeys them already;
* the simulator's Exits do not wait for the iterations of their loop: Grappler
  runs a Merge as soon as one input is there, runs both outputs of a Switch,
  and therefore leaves a loop without waiting for its body.

Two rules remain that are Grappler's own. Its _Recv waits in the queue of the
receiving device like any op, so that what reads a received tensor queues up
only after that; in TensorFlow, and in the simulator, it does not. And of ops
that become ready at the very same moment its FirstReadyManager takes the one
with the lowest name, the simulator the first in topological order. So the
comparison is made twice. Given these two rules, by a _Recv in the graph and
the topological order in which Grappler ran, every makespan has to agree. By
its own rules the simulator has to agree within 2 % in the mean over the
placements of a graph, and within 5 % always.
"""

import pathlib

import numpy as np
import pytest
import tensorflow as tf

from gdp_grappler.cluster import constraints
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.graph import graph_def_io
from gdp_grappler.graph import source_graph
from gdp_grappler.graph.sources import sources
from helpers import clusters
from helpers import graphs
from helpers import grappler_schedule

_TESTDATA = pathlib.Path(__file__).parents[2] / 'testdata'


def _stored(name):
  return lambda: sources.load(str(_TESTDATA / f'{name}_train_step.pb'))


def _branching_cnn():

  def make():
    x = tf.compat.v1.placeholder(tf.float32, [8, 32, 32, 16])
    losses = []
    for block in range(3):
      branches = []
      for size in (1, 3, 5):
        kernel = tf.compat.v1.get_variable(f'k{block}_{size}',
                                           [size, size, x.shape[-1], 8 + size])
        branches.append(tf.nn.relu(tf.nn.conv2d(x, kernel, 1, 'SAME')))
      x = tf.concat(branches + [tf.nn.max_pool2d(x, 3, 1, 'SAME')], -1)
      losses.append(tf.reduce_mean(x))
    return losses

  return _training('cnn', make)


def _attention():

  def make():
    x = tf.compat.v1.placeholder(tf.float32, [4, 32, 64])
    for layer in range(2):
      heads = []
      for head in range(4):
        q, k, v = (x @ tf.compat.v1.get_variable(f'{n}{layer}{head}', [64, 16])
                   for n in 'qkv')
        weights = tf.nn.softmax(tf.matmul(q, k, transpose_b=True))
        heads.append(weights @ v)
      x = tf.nn.relu(x + tf.concat(heads, -1))
    return [tf.reduce_mean(x)]

  return _training('attention', make)


def _training(name, make):
  with tf.Graph().as_default() as graph:
    losses = make()
    variables = tf.compat.v1.trainable_variables()
    gradients = tf.gradients(losses, variables)
    for variable, gradient in zip(variables, gradients):
      variable.assign_sub(gradient * .1)
  return source_graph.SourceGraph(name, graph.as_graph_def())


_SOURCES = {
    'dense': _stored('dense'), 'lstm': _stored('lstm'), 'cnn': _branching_cnn,
    'attention': _attention
}


def _placement(graph, cluster, seed):
  """GPUs drawn for each group, the CPU for what has no kernel there."""
  rng = np.random.default_rng(seed)
  devices = []
  for allowed in constraints.allowed_devices(graph, cluster):
    choices = np.flatnonzero(allowed)
    on_gpu = choices[choices != cluster.host]
    devices.append(rng.choice(on_gpu if on_gpu.size else choices))
  return placement_lib.Placement(np.array(devices)[graph.groups], cluster)


def _without_waiting_exits(graph):
  types = np.array(graph.op_types, object)
  source, target = graph.edges.T
  kept = ~((graph.edge_tensors < 0) & (types[source] == 'NextIteration')
           & (types[target] == 'Exit'))
  return graph.replace(edges=graph.edges[kept],
                       edge_tensors=graph.edge_tensors[kept],
                       read_on_host=graph.read_on_host[kept])


def _by_grapplers_rules(graph, placement, schedule):
  """The graph with its _Recv ops, in Grappler's order; devices and costs."""
  names = placement.cluster.device_names
  devices, seconds = placement.devices.tolist(), schedule.seconds.tolist()
  start_s, edges = schedule.start_s.tolist(), []
  first = np.searchsorted(graph.tensor_ops, np.arange(graph.num_ops))
  received = {}
  for (source, target), tensor in zip(graph.edges.tolist(),
                                      graph.edge_tensors.tolist()):
    device, output = devices[target], tensor - first[source]
    message = graph.names[source], output, names[device]
    # What Grappler ran has no _Recv for a control edge.
    if tensor >= 0 and devices[source] != device:
      if message not in received:
        received[message] = len(devices)
        edges.append((source, received[message]))
        devices.append(device)
        seconds.append(grappler_schedule.RECEIVE_S)
        start_s.append(schedule.receives_s[message])
      source = received[message]
    edges.append((source, target))
  result = graphs.make_graph(edges, len(devices))
  order = np.argsort(start_s, kind='stable').astype(np.int32)
  position = np.argsort(order)
  assert (position[result.edges[:, 0]] < position[result.edges[:, 1]]).all()
  vars(result)['topological_order'] = order
  return result, np.array(devices), seconds


@pytest.mark.parametrize('name', _SOURCES)
def test_makespan_is_within_two_percent_of_grapplers(name):
  source = _SOURCES[name]()
  graph = _without_waiting_exits(graph_def_io.read(source))
  errors, overlap = [], []
  for gpus, seed in ((1, 0), (2, 0), (2, 1), (3, 2), (4, 3), (4, 4)):
    cluster = clusters.make_cluster(gpus, latency_s=0.,
                                    bandwidth_bytes_per_s=1e18)
    placement = _placement(graph, cluster, seed)
    theirs = grappler_schedule.run(source.graph_def, placement.device_strings())
    assert (theirs.start_s >= 0).all()
    price = simulator.Simulator(cluster, clusters.FixedCosts(theirs.seconds))
    ours = price.evaluate(graph, placement)
    same, devices, seconds = _by_grapplers_rules(graph, placement, theirs)
    by_their_rules = simulator.Simulator(cluster,
                                         clusters.FixedCosts(seconds)).evaluate(
                                             same,
                                             placement_lib.Placement(
                                                 devices, cluster))
    assert ours.valid and theirs.transfer_s < 1e-3 * theirs.makespan_s
    assert by_their_rules.step_time_s == pytest.approx(theirs.makespan_s,
                                                       rel=0.005)
    errors.append(abs(ours.step_time_s / theirs.makespan_s - 1))
    overlap.append(theirs.seconds.sum() / theirs.makespan_s)
  assert np.mean(errors) < 0.02 and max(errors) < 0.05
  # Ops do run side by side: agreement is more than two equal sums.
  assert overlap[0] == pytest.approx(1, rel=0.02) and max(overlap) > 1.1

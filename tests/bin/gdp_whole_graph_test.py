"""Tests of `gdp place` on GraphDefs with more than a step."""

import json
import re

import pytest
import tensorflow as tf
from tensorflow.core.framework import graph_pb2

from gdp_grappler.bin import gdp
from gdp_grappler.cluster import cluster_file
from gdp_grappler.cluster import presets
from gdp_grappler.graph.sources import sources
from helpers import clusters
from helpers import graph_defs

tf1 = tf.compat.v1


def _train():
  inputs = tf1.placeholder(tf.float32, [None, 64], 'inputs')
  hidden = inputs
  for i in range(3):
    weight = tf1.get_variable(f'w{i}', [64, 64], use_resource=True)
    hidden = tf.nn.relu(hidden @ weight)
  tf1.train.MomentumOptimizer(.1, .9).minimize(tf.reduce_sum(hidden),
                                               name='train')
  tf1.global_variables_initializer()


@pytest.fixture(scope='module')
def paths(tmp_path_factory):
  """A graph with initializers, and a plan for its step."""
  folder = tmp_path_factory.mktemp('graphs')
  (folder / 'v1.pb').write_bytes(graph_defs.built(_train).SerializeToString())
  arguments = str(folder / 'v1.pb'), '--cluster=2xP100'
  assert gdp.run([
      'place', *arguments, '--placer=random', '--seed=4',
      f'--output={folder}/plan.json'
  ]) == 0
  return arguments, folder / 'plan.json'


def _place(paths, tmp_path, *arguments):
  output = tmp_path / 'placed.pb'
  assert gdp.run(['place', *paths[0], f'--output={output}', *arguments]) == 0
  return {
      node.name: node
      for node in graph_pb2.GraphDef.FromString(output.read_bytes()).node
  }


def test_a_plan_of_the_step_places_the_whole_graph(paths, tmp_path):
  nodes = _place(paths, tmp_path, f'--plan={paths[1]}')
  devices = json.loads(paths[1].read_text())['devices']
  assert len(nodes) > len(devices)
  for op, device in devices.items():
    assert nodes[op].device.endswith(device)
  for i in range(3):
    assert nodes[f'w{i}/Assign'].device == nodes[f'w{i}'].device
  assert nodes['init'].device.endswith('CPU:0')
  assert len({nodes[f'w{i}'].device for i in range(3)}) > 1


def _asks():
  with tf.device('/GPU:1'):
    weight = tf1.get_variable('w', [64, 64], use_resource=True)
    inputs = tf1.placeholder(tf.float32, [None, 64], 'inputs')
    tf.nn.relu(inputs @ weight, 'result')
  tf1.global_variables_initializer()


def test_a_map_overrides_the_devices_of_the_graph(tmp_path):
  """It did so for a plan, and not for a GraphDef."""
  graph, output = tmp_path / 'v1.pb', tmp_path / 'placed.pb'
  graph.write_bytes(graph_defs.built(_asks).SerializeToString())
  layers = tmp_path / 'map.json'
  layers.write_text('{"*": "GPU:0"}')
  assert gdp.run([
      'place',
      str(graph), '--cluster=2xP100', f'--plan={layers}', f'--output={output}'
  ]) == 0
  nodes = {
      node.name: node
      for node in graph_pb2.GraphDef.FromString(output.read_bytes()).node
  }
  # What is fed and fetched stays.
  for name in ('w', 'w/Assign', 'matmul'):
    assert nodes[name].device.endswith('GPU:0')


def test_what_was_placed_is_the_same_step_again(tmp_path):
  """A GraphDef has no fetches, so ops that no step runs were read as well."""
  path, output = str(tmp_path / 'v1.meta'), str(tmp_path / 'placed.pb')
  with tf.Graph().as_default() as graph:
    _train()
    tf.square(graph.get_tensor_by_name('inputs:0'), 'unused')
    graph.add_to_collection('train_op', graph.get_operation_by_name('train'))
    tf1.train.export_meta_graph(path)
  assert gdp.run([
      'place', path, '--cluster=2xP100', '--placer=random', f'--output={output}'
  ]) == 0
  first, again = sources.load(path), sources.load(output)
  assert again.fetches == first.fetches == ('train',)
  assert {node.name for node in again.graph_def.node
         } == {node.name for node in first.graph_def.node}
  # A program may use such an op after all.
  graph_def = graph_pb2.GraphDef.FromString(
      (tmp_path / 'placed.pb').read_bytes())
  graph_def.node.append(
      graph_defs.node('used', 'Sin', ['unused'], T=graph_defs.FLOAT))
  (tmp_path / 'more.pb').write_bytes(graph_def.SerializeToString())
  assert sources.load(str(tmp_path / 'more.pb')).fetches == ('train', 'used')


def test_another_step_of_a_placed_graph_is_read_whole(tmp_path):
  """Ops that the first step did not need were missing in the second step."""

  def make():
    inputs = tf1.placeholder(tf.float32, [64, 64], 'inputs')
    hidden = tf.nn.relu(inputs)
    tf.square(hidden @ hidden, 'first')
    tf.sin(hidden @ hidden, 'second')

  definition, path = graph_defs.built(make), str(tmp_path / 'step.meta')
  for step in ('first', 'second'):
    with tf.Graph().as_default() as graph:
      tf.import_graph_def(definition, name='')
      graph.add_to_collection('train_op', graph.get_operation_by_name(step))
      tf1.train.export_meta_graph(path)
    output = tmp_path / f'{step}.pb'
    assert gdp.run([
        'place', path, '--cluster=2xP100', '--placer=random',
        f'--output={output}'
    ]) == 0
    assert sources.load(str(output)).fetches == (step,)
    definition = graph_pb2.GraphDef.FromString(output.read_bytes())


def test_tensorflow_runs_what_was_placed(paths, tmp_path):
  nodes = _place(paths, tmp_path, '--placer=random')
  for node in nodes.values():
    node.device = node.device.replace('GPU:0',
                                      'CPU:1').replace('GPU:1', 'CPU:2')
  with tf.Graph().as_default() as graph:
    tf.import_graph_def(graph_pb2.GraphDef(node=nodes.values()), name='')
  config = tf1.ConfigProto(device_count={'CPU': 3}, allow_soft_placement=False)
  with tf1.Session(graph=graph, config=config) as session:
    session.run('init')
    before = session.run('w0/Read/ReadVariableOp:0')
    session.run('train', {'inputs:0': [[1.] * 64]})
    assert (session.run('w0/Read/ReadVariableOp:0') != before).any()


def test_control_edges_are_between_ops_of_the_step(paths, tmp_path, capsys):
  step = json.loads(paths[1].read_text())['devices']
  # Of GPUs that run ahead hardly an order of so small a step pays.
  waiting = str(tmp_path / 'cluster.json')
  cluster_file.write(waiting, clusters.synchronous(presets.preset('2xP100')))
  added = []
  for seed in range(4):
    fifo, ordered = (_place(paths, tmp_path, '--placer=random',
                            f'--cluster={waiting}', f'--seed={seed}',
                            f'--order={order}')
                     for order in ('fifo', 'critical_path'))
    for name, node in ordered.items():
      assert node.device == fifo[name].device
      added += [(ordered[first[1:]], node)
                for first in set(node.input) - set(fifo[name].input)]
  assert added and 'control edge' in capsys.readouterr().out
  for first, then in added:
    assert first.name in step and then.name in step
    assert first.device == then.device


def _placed(said):
  """What is where, and the step; not who did it, nor what to do next."""
  return re.sub(' by [^:]*:|ms .*', '', said.splitlines()[0])


def test_plan_and_graph_have_the_same_price(paths, tmp_path, capsys):
  lines = []
  for arguments in (['--placer=random', '--seed=4'], [f'--plan={paths[1]}'],
                    [f'--plan={paths[1]}', '--order=critical_path']):
    _place(paths, tmp_path, *arguments)
    line = capsys.readouterr().out
    assert line.count(' ms') == 2 + ('; ordered by ' in line)
    assert ' ms on one device' in line
    lines.append(_placed(line))
  assert gdp.run([
      'place', *paths[0], f'--plan={paths[1]}',
      f'--output={tmp_path}/again.json'
  ]) == 0
  lines.append(_placed(capsys.readouterr().out))
  assert 'cut' in lines[0] and len(set(lines)) == 1

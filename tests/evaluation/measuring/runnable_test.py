"""Tests of gdp_grappler.evaluation.measuring.runnable."""

import pathlib

from google.protobuf import text_format
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework import graph_pb2
from tensorflow.core.protobuf import config_pb2

from gdp_grappler import errors
from gdp_grappler.evaluation.measuring import runnable
from gdp_grappler.graph import source_graph
from gdp_grappler.graph.sources import sources

tf1 = tf.compat.v1
TESTDATA = pathlib.Path(__file__).parents[2] / 'testdata'
CPUS = [f'/job:localhost/replica:0/task:0/device:CPU:{i}' for i in range(3)]


def load(name):
  return sources.load(str(TESTDATA / f'{name}_train_step.pb'))


def session(runnable_graph, devices):
  """A session with three CPUs that holds the initialized graph."""
  graph = tf.Graph()
  with graph.as_default():
    tf.graph_util.import_graph_def(runnable_graph.placed(devices), name='')
  config = tf1.ConfigProto(device_count={'CPU': 3}, allow_soft_placement=False)
  config.graph_options.rewrite_options.disable_meta_optimizer = True
  config.graph_options.optimizer_options.opt_level = -1
  result = tf1.Session(graph=graph, config=config)
  result.run(graph.get_operation_by_name(runnable_graph.initializer))
  return result


def all_on(source, device=CPUS[0]):
  return {node.name: device for node in source.graph_def.node}


def node_source(text, *fetches):
  return source_graph.SourceGraph('test',
                                  text_format.Parse(text, graph_pb2.GraphDef()),
                                  (), fetches)


def test_names_stay_and_function_ops_go():
  source = load('dense')
  nodes = {n.name: n.op for n in runnable.convert(source).graph_def.node}
  assert nodes['unknown'] == 'VarHandleOp'
  assert nodes['IteratorGetNext'] == 'IdentityN'
  assert nodes['identity_RetVal'] == 'Identity'
  assert 'iterator' not in nodes
  assert {n.name for n in source.graph_def.node} - set(nodes) == {'iterator'}


def test_the_source_is_not_changed():
  source = load('dense')
  before = source.graph_def.SerializeToString(deterministic=True)
  runnable.convert(source)
  assert source.graph_def.SerializeToString(deterministic=True) == before


@pytest.mark.parametrize('name, loss', [('dense', 'StatefulPartitionedCall/'),
                                        ('lstm', '')])
def test_training_steps_run_and_stay_finite(name, loss):
  source = load(name)
  converted = runnable.convert(source)
  with session(converted, all_on(source)) as run:
    losses = [run.run(f'{loss}div_no_nan:0') for _ in range(4)]
    step = run.graph.get_operation_by_name(converted.targets[0])
    for _ in range(4):
      run.run(step)
    losses.append(run.run(f'{loss}div_no_nan:0'))
    for variable in converted.variables:
      if variable.dtype.is_floating and not variable.is_input:
        with run.graph.as_default():
          value = tf.raw_ops.ReadVariableOp(
              resource=run.graph.get_tensor_by_name(f'{variable.name}:0'),
              dtype=variable.dtype)
        assert np.isfinite(run.run(value)).all(), variable.name
  assert np.isfinite(losses).all()


def test_every_op_runs_where_it_is_placed():
  source = load('dense')
  converted = runnable.convert(source)
  devices = all_on(source)
  on_second = {
      n.name for n in source.graph_def.node
      if n.op in ('MatMul', '_FusedMatMul')
  }
  devices.update({name: CPUS[1] for name in on_second})
  metadata = config_pb2.RunMetadata()
  with session(converted, devices) as run:
    run.run(run.graph.get_operation_by_name(converted.targets[0]),
            options=config_pb2.RunOptions(trace_level=3), run_metadata=metadata)
  seen = {
      node.node_name: stats.device for stats in metadata.step_stats.dev_stats
      for node in stats.node_stats
  }
  assert {n for n, d in seen.items() if d == CPUS[1] and n in devices
         } == on_second
  assert CPUS[2] not in seen.values()


def test_values_are_the_same_in_every_run():
  source = load('dense')
  values = []
  for _ in range(2):
    with session(runnable.convert(source), all_on(source)) as run:
      values.append(run.run(['IteratorGetNext:0', 'IteratorGetNext:1']))
  np.testing.assert_array_equal(values[0][0], values[1][0])
  assert values[0][0].shape == (32, 32)
  assert set(np.unique(values[0][1])) <= {0, 1}


def test_unknown_dimensions():
  source = node_source(
      'node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: '
      'DT_FLOAT } } attr { key: "shape" value { shape { dim { size: -1 } dim {'
      ' size: -1 } dim { size: 3 } } } } } '
      'node { name: "y" op: "Neg" input: "x" attr { key: "T" value { type: '
      'DT_FLOAT } } }', 'y')
  converted = runnable.convert(source, batch_size=7)
  assert [v.shape for v in converted.variables] == [(7, 7, 3)]
  assert converted.variables[0].size_bytes == 7 * 7 * 3 * 4
  with session(converted, all_on(source)) as run:
    assert run.run('y:0').shape == (7, 7, 3)


def test_v1_variables_of_both_kinds_get_values():
  graph = tf.Graph()
  with graph.as_default():
    old = tf1.get_variable('old', (2, 3), use_resource=False)
    new = tf1.get_variable('new', (3,), use_resource=True)
    count = tf1.get_variable('count', (), tf.int64, use_resource=False,
                             initializer=tf1.zeros_initializer())
    tf.identity(old + new + tf.cast(count, tf.float32), name='sum')
  source = source_graph.SourceGraph('v1', graph.as_graph_def(), (), ('sum',))
  converted = runnable.convert(source)
  assert {v.name for v in converted.variables} == {'old', 'new', 'count'}
  with session(converted, all_on(source)) as run:
    assert (run.run('sum:0') > 0).all()
    assert run.run('count:0') == 0


def test_what_the_fetches_do_not_need_is_left_out():
  source = node_source(
      'node { name: "x" op: "NoOp" } node { name: "y" op: "NoOp" }', 'y')
  names = [n.name for n in runnable.convert(source).graph_def.node]
  assert 'y' in names and 'x' not in names


@pytest.mark.parametrize('nodes, fetch, said', [
    ('node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: '
     'DT_FLOAT } } attr { key: "shape" value { shape { unknown_rank: true } }'
     ' } }', 'x', 'shape of "x" is unknown'),
    ('node { name: "table" op: "_Arg" attr { key: "T" value { type: '
     'DT_RESOURCE } } attr { key: "index" value { i: 0 } } } '
     'node { name: "size" op: "LookupTableSizeV2" input: "table" }', 'size',
     '"table" is a resource'),
], ids=['unknown rank', 'resource that is no variable'])
def test_inputs_without_synthetic_values(nodes, fetch, said):
  with pytest.raises(errors.MeasurementError, match=said):
    runnable.convert(node_source(nodes, fetch))


def test_arguments_and_results_of_a_function_whose_devices_are_settled():
  source = node_source(
      'node { name: "x" op: "_DeviceArg" attr { key: "T" value { type: '
      'DT_FLOAT } } attr { key: "index" value { i: 0 } } attr { key: '
      '"_output_shapes" value { list { shape { dim { size: 3 } } } } } } '
      'node { name: "y" op: "Neg" input: "x" attr { key: "T" value { type: '
      'DT_FLOAT } } } '
      'node { name: "y_RetVal" op: "_DeviceRetval" input: "y" attr { key: "T" '
      'value { type: DT_FLOAT } } attr { key: "index" value { i: 0 } } }')
  converted = runnable.convert(source)
  assert converted.targets == ('y_RetVal',)
  with session(converted, all_on(source)) as run:
    assert run.run('y_RetVal:0').shape == (3,)


def test_op_without_a_device():
  source = load('dense')
  devices = all_on(source)
  del devices['unknown']
  with pytest.raises(errors.MeasurementError, match='no device for "unknown"'):
    runnable.convert(source).placed(devices)

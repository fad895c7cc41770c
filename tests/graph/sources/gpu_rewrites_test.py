"""Grappler's rewrites for a card that is not there."""

import collections

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import rewriter_config_pb2

from gdp_grappler import errors
from gdp_grappler.graph.sources import gpu_rewrites
from helpers import graph_defs

tf1 = tf.compat.v1


def _types(graph_def):
  return collections.Counter(node.op for node in graph_def.node)


def _convolutions(dtype):

  def build():
    x = tf1.placeholder(dtype, (2, 16, 16, 8), name='x')
    for _ in range(2):
      filters = tf.constant(np.full((3, 3, 8, 8), .01), dtype)
      x = tf.nn.conv2d(x, filters, 1, 'SAME')
    tf.identity(x, name='out')

  return graph_defs.built(build)


@pytest.mark.parametrize('dtype, architecture, layout',
                         [(tf.float32, '6.0', b'NCHW'),
                          (tf.float32, '9.0', b'NHWC'),
                          (tf.float16, '6.0', b'NCHW'),
                          (tf.float16, '7.0', b'NHWC')])
def test_convolutions_have_the_layout_that_the_card_wants(
    dtype, architecture, layout):
  rewritten = gpu_rewrites.rewritten(_convolutions(dtype), ('out',),
                                     architecture, 'test')
  assert {n.attr['data_format'].s for n in rewritten.node if n.op == 'Conv2D'
         } == {layout}
  assert _types(rewritten)['Transpose'] == (2 if layout == b'NCHW' else 0)


def test_activations_stay_apart():
  """On a CPU they become `_MklSwish` and `_UnaryOpsComposition`."""

  def build():
    x = tf1.placeholder(tf.float32, (4, 4), name='x')
    product = tf.nn.bias_add(x @ x, tf.ones(4))
    tf.identity(tf.exp(-product * tf.sigmoid(product)) + 1, name='out')

  types = _types(
      gpu_rewrites.rewritten(graph_defs.built(build), ('out',), '8.0', 'test'))
  assert {'MatMul', 'BiasAdd', 'Sigmoid', 'Mul', 'Neg', 'Exp'} <= set(types)
  assert not any(op.startswith('_') for op in types)


def test_a_body_that_was_traced_for_other_shapes_is_no_obstacle():
  """A CTC loss could not be placed for two lengths of labels in one process."""

  @tf.function
  def loop(x):
    return tf.raw_ops.While(input=[x], cond=_once.get_concrete_function(x),
                            body=_twice.get_concrete_function(x),
                            parallel_iterations=1)

  @tf.function
  def _once(x):
    return tf.reduce_sum(x) < 4.

  @tf.function
  def _twice(x):
    return [x * 2.]

  graph_def = loop.get_concrete_function(tf.ones(
      [2, 3])).graph.as_graph_def(add_shapes=True)
  for function in graph_def.library.function:
    for argument in function.arg_attr.values():
      for shape in argument.attr['_output_shapes'].list.shape:
        shape.dim[-1].size = 5
  rewritten = gpu_rewrites.rewritten(graph_def, ('Identity',), '6.0', 'test')
  assert _types(rewritten)['While'] == 1


def test_what_was_asked_of_grappler_holds():
  asked = rewriter_config_pb2.RewriterConfig(
      layout_optimizer=rewriter_config_pb2.RewriterConfig.OFF,
      disable_meta_optimizer=True)
  rewritten = gpu_rewrites.rewritten(_convolutions(tf.float32), ('out',), '6.0',
                                     'test', asked)
  assert not _types(rewritten)['Transpose']
  assert asked.disable_meta_optimizer  # It is not changed.


def test_devices_are_those_of_a_program_with_a_gpu():

  def build():
    x = tf1.placeholder(tf.float32, (4, 4), name='x')
    text = tf.strings.as_string(x)  # GPUs have no strings.
    tf.identity(tf.exp(x), name='out')
    tf.identity(tf.strings.length(text), name='length')

  rewritten = gpu_rewrites.rewritten(graph_defs.built(build), ('out', 'length'),
                                     '8.0', 'test')
  devices = {n.op: n.device for n in rewritten.node}
  assert devices['Exp'] == graph_defs.GPU(0)
  assert devices['AsString'] == graph_defs.CPU(0)


def test_a_lookup_table_that_a_function_receives_is_on_the_host():
  """It was on the GPU, and its lookups on the host: no device suited both."""
  table = tf.lookup.StaticHashTable(
      tf.lookup.KeyValueTensorInitializer(['a', 'b'], [1, 2]), 0)

  @tf.function(input_signature=[tf.TensorSpec((4,), tf.string)])
  def look_up(words):
    return tf.cast(table.lookup(words), tf.float32) * 2

  graph_def = look_up.get_concrete_function().graph.as_graph_def()
  for index, node in enumerate(
      n for n in graph_def.node if n.op == 'Placeholder'):
    node.op = '_Arg'
    node.attr['T'].type = node.attr['dtype'].type
    node.attr['index'].i = index
    del node.attr['shape'], node.attr['dtype']
    if node.attr['T'].type == tf.resource.as_datatype_enum:
      handle = node.name
  # An inlined function begins with such nodes.
  graph_def.node.append(
      graph_defs.node('border', 'Identity', [handle],
                      T={'type': tf.resource.as_datatype_enum}))
  for node in graph_def.node:
    if node.op == 'LookupTableFindV2':
      node.input[0] = 'border'
  rewritten = gpu_rewrites.rewritten(graph_def, ('Identity',), '6.0', 'test')
  devices = {n.op: n.device for n in rewritten.node}
  assert devices['LookupTableFindV2'] == devices['_Arg'] == graph_defs.CPU(0)
  assert devices['Mul'] == graph_defs.GPU(0)
  arguments = [n for n in rewritten.node if n.op == '_Arg']
  assert len(arguments) == 2
  assert {n.device for n in arguments} == {graph_defs.CPU(0)}


def test_results_and_effects_are_kept():
  nodes = (graph_defs.node('v', 'VarHandleOp', dtype=graph_defs.FLOAT),
           graph_defs.node('c', 'Const', dtype=graph_defs.FLOAT),
           graph_defs.node('a', 'AssignVariableOp', ['v', 'c'],
                           dtype=graph_defs.FLOAT),
           graph_defs.node('lost', 'Neg', ['c'], T=graph_defs.FLOAT),
           graph_defs.node('r', '_Retval', ['c'], T=graph_defs.FLOAT))
  assert gpu_rewrites.kept(graph_defs.graph_def(*nodes)) == ('a', 'r')


@pytest.mark.parametrize('architecture, generation', [('', ''), ('3.5', '6.0'),
                                                      ('7.5', '7.0'),
                                                      ('8.0', '8.0'),
                                                      ('12.0', '8.0'),
                                                      ('gfx90a', '6.0')])
def test_cards_that_grappler_treats_alike(architecture, generation):
  assert gpu_rewrites.generation(architecture) == generation


def test_a_graph_that_is_not_whole_is_one_line():
  with pytest.raises(errors.InvalidGraphError,
                     match='my_graph is not usable: "a" reads "gone"'):
    gpu_rewrites.rewritten(
        graph_defs.graph_def(graph_defs.node('a', 'Identity', ['gone'])),
        ('a',), '8.0', 'my_graph')


def test_shapes_of_what_a_function_receives_are_known():
  """Those of constants that a function captures were forgotten."""

  @tf.function(input_signature=[tf.TensorSpec((2, 16, 16, 8), tf.float32)])
  def convolved(x):
    return tf.nn.conv2d(x, tf.fill((3, 3, 8, 8), x[0, 0, 0, 0]), 1, 'SAME')

  graph_def = convolved.get_concrete_function().graph.as_graph_def()
  for node in graph_def.node:
    if node.op == 'Placeholder':
      shape = node.attr['shape'].shape
      node.op = '_Arg'
      node.attr['_output_shapes'].list.shape.add().CopyFrom(shape)
      node.attr['T'].type = tf.float32.as_datatype_enum
      node.attr['index'].i = 0
      del node.attr['shape'], node.attr['dtype']
  rewritten = gpu_rewrites.rewritten(graph_def, ('Identity',), '6.0', 'test')
  argument, = (n for n in rewritten.node if n.op == '_Arg')
  assert argument.attr['_output_shapes'].list.shape
  assert _types(rewritten)['Transpose'] and not _types(rewritten)['Placeholder']

"""What a call stands for, run by TensorFlow and compared with the call."""

import pytest
import tensorflow as tf
from tensorflow.core.framework import function_pb2

from gdp_grappler.graph.control_flow import call_bodies
from helpers import graph_defs

tf1 = tf.compat.v1


def _called(make, op):
  """Bodies of the library of a graph, and its one node of a type."""
  graph = graph_defs.built(make)
  functions = {f.signature.name: f for f in graph.library.function}
  node, = (node for node in graph.node if node.op.endswith(op))
  return call_bodies.Bodies(functions), node


def _constants(*values):
  """Nodes of constants, of the types that their Python values have."""

  def make():
    for value in values:
      tf.constant(value)

  return graph_defs.built(make).node


def _run(nodes):
  """What the nodes return, each from what it reads."""
  returns = [node for node in nodes if node.op == '_Retval']
  config = tf1.ConfigProto()
  config.graph_options.rewrite_options.disable_meta_optimizer = True
  with tf.Graph().as_default():
    tf1.import_graph_def(
        graph_defs.graph_def(*(n for n in nodes if n.op != '_Retval')), name='')
    with tf1.Session(config=config) as session:
      return session.run([
          node.input[0] if ':' in node.input[0] else f'{node.input[0]}:0'
          for node in returns
      ])


@tf.function
def _both(x, y):
  return x - y, x * y


def test_a_body_computes_what_its_function_does():
  bodies, node = _called(lambda: _both(tf.constant(0.), tf.constant(0.)),
                         'PartitionedCall')
  nodes = bodies.body(node.attr['f'].func.name, _constants(7., 2.))
  assert _run(nodes) == [5., 14.]
  names = [node.name for node in nodes]
  assert names[:2] == ['argument_0', 'argument_1']
  assert names[-2:] == ['return_0', 'return_1']
  assert all(name.startswith('call/') for name in names[2:-2])


@tf.function
def _parts(x):
  first, second = tf.raw_ops.IdentityN(input=tf.split(x, 2))
  return first, *tf.math.top_k(second)


def test_all_outputs_of_an_op_are_told_apart():
  bodies, node = _called(lambda: _parts(tf.constant([0.] * 4)),
                         'PartitionedCall')
  first, largest, place = _run(
      bodies.body(node.attr['f'].func.name, _constants([7., 1., 2., 9.])))
  assert (first.tolist(), largest, place) == ([7., 1.], 9., 1)


def test_an_op_that_tensorflow_does_not_know_is_named():
  strange = function_pb2.FunctionDef()
  strange.node_def.add(name='it', op='Strange')
  bodies = call_bodies.Bodies({'f': strange})
  with pytest.raises(ValueError, match='does not know the op "Strange"'):
    bodies.body('f', [])


def test_what_is_not_known_stays_an_argument_of_the_declared_type():
  bodies, node = _called(lambda: _both(tf.constant(0.), tf.constant(0.)),
                         'PartitionedCall')
  unknown = graph_defs.node('anything', '_Arg')
  first, second, *_ = bodies.body(node.attr['f'].func.name, [unknown] * 2)
  assert (first.attr['index'].i, second.attr['index'].i) == (0, 1)
  assert first.attr['T'].type == tf.float32.as_datatype_enum


def _loop():
  """Adds 3 as long as the sum is below 10; counts."""
  tf.while_loop(lambda i, s, _: s < 10, lambda i, s, step:
                (i + 1, s + step, step), [0, 0, 3])


def _lowered(*arguments):
  bodies, node = _called(_loop, 'While')
  by_type = {
      'cond': node.attr['cond'].func.name, 'body': node.attr['body'].func.name
  }
  return bodies.loop('frame', **by_type, arguments=_constants(*arguments))


# The first two are what TensorFlow itself counts: iterations, and their limit.
def test_a_loop_runs_as_long_as_its_condition_holds():
  assert _run(_lowered(0, -1, 0, 0, 3))[2:] == [4, 12, 3]
  assert _run(_lowered(0, -1, 5, 9, 1))[2:] == [6, 10, 1]
  assert _run(_lowered(0, -1, 5, 10, 1))[2:] == [5, 10, 1]


def test_what_no_iteration_changes_enters_as_a_constant():
  nodes = _lowered(0, -1, 0, 0, 3)
  enters = [node for node in nodes if node.op == 'Enter']
  assert [node.attr['is_constant'].b for node in enters
         ] == [False, True, False, False, True]
  assert {node.attr['frame_name'].s for node in enters} == {b'frame'}
  assert sum(node.op == 'Exit' for node in nodes) == 3


def test_nodes_without_inputs_wait_for_the_iteration():
  lonely = [
      node for node in _lowered(0, -1, 0, 0, 3)
      if node.op == 'Const' and node.name.startswith(('cond/', 'body/'))
  ]
  assert lonely
  for node in lonely:
    pivot, = node.input
    assert pivot == ('^loop/pivot'
                     if node.name.startswith('body/') else '^loop/merge_0')


def test_a_loop_that_changes_nothing_has_no_end():
  same = function_pb2.FunctionDef(ret={'y': 'x'})
  same.signature.input_arg.add(name='x', type=tf.int32.as_datatype_enum)
  same.signature.output_arg.add(name='y', type=tf.int32.as_datatype_enum)
  bodies = call_bodies.Bodies({'same': same})
  with pytest.raises(ValueError, match='no variable of the loop ever changes'):
    bodies.loop('frame', 'cond', 'same', _constants(1))

import tensorflow as tf

from gdp_grappler.graph.legality import node_types
from helpers import graph_defs

_FLOAT = node_types.ArgType(tf.float32.as_datatype_enum, False)
_INT = node_types.ArgType(tf.int32.as_datatype_enum, False)


def _nodes(make):
  return {n.name: n for n in graph_defs.built(make).node}


def test_plain_and_repeated_and_listed_types():

  def make():
    a = tf.compat.v1.placeholder(tf.float32, [2], 'a')
    tf.concat([a, a, a], 0, name='concat')
    tf.identity_n([a, tf.constant(1)], name='many')

  nodes = _nodes(make)
  concat = node_types.signature(nodes['concat'])
  assert concat == node_types.Signature((_FLOAT,) * 3 + (_INT,), (_FLOAT,))
  many = node_types.signature(nodes['many'])
  assert many.inputs == many.outputs == (_FLOAT, _INT)


def test_references():

  def make():
    v = tf.compat.v1.Variable([1.0], use_resource=False, name='v')
    v.assign([2.0], name='assign')

  nodes = _nodes(make)
  variable = node_types.signature(nodes['v']).outputs[0]
  assert variable == node_types.ArgType(_FLOAT.dtype, True)
  assert node_types.is_handle(variable)
  assert not node_types.is_handle(_FLOAT)
  assert node_types.signature(nodes['v/Assign']).inputs[0].is_ref


def test_a_reference_passed_on_by_type():
  ref = {'type': tf.float32.as_datatype_enum + 100}
  node = graph_defs.node('r', '_Retval', ['v'], T=ref)
  assert node_types.signature(node).inputs == (node_types.ArgType(
      _FLOAT.dtype, True),)


def test_resources_and_variants_are_handles():
  handle = node_types.signature(graph_defs.node('v', 'VarHandleOp'))
  listed = node_types.signature(graph_defs.node('l', 'EmptyTensorList'))
  assert node_types.is_handle(handle.outputs[0])
  assert node_types.is_handle(listed.outputs[0])


def test_left_out_attributes_have_their_default():
  node = graph_defs.node('a', 'ArgMax', ['x', 'd'], T=graph_defs.FLOAT)
  assert node_types.signature(node).outputs[0].dtype == (
      tf.int64.as_datatype_enum)


def test_calls_of_own_functions_have_no_types():
  node = graph_defs.node('call', '__inference_layer_12', ['x'])
  assert node_types.signature(node) == node_types.Signature((), ())

import pytest
import tensorflow as tf

from gdp_grappler.graph.legality import node_types
from gdp_grappler.graph.legality import pins
from helpers import graph_defs

_STRING = {'type': tf.string.as_datatype_enum}
_RESOURCE = {'type': tf.resource.as_datatype_enum}


def _pin(node):
  return pins.device_pin(node, node_types.signature(node))


def _node(op, **attributes):
  return graph_defs.node('n', op, ['a'], device='/device:CPU:1', **attributes)


@pytest.mark.parametrize('op, attributes', [
    ('_Arg', {'T': graph_defs.FLOAT}),
    ('_Arg', {'T': _RESOURCE}),
    ('_Retval', {'T': graph_defs.FLOAT}),
    ('_DeviceRetval', {}),
    ('_Recv', {}),
    ('_Send', {'T': graph_defs.FLOAT}),
    ('_HostSend', {}),
    ('Placeholder', {'dtype': graph_defs.FLOAT}),
    ('RangeDataset', {}),
    ('IteratorGetNext', {}),
    ('AnonymousIteratorV3', {}),
    ('OptionalNone', {}),
    ('PyFunc', {}),
    ('EagerPyFunc', {}),
    ('PartitionedCall', {}),
    ('StatefulPartitionedCall', {}),
    ('StatelessIf', {}),
    ('While', {}),
    ('Case', {}),
    ('CollectiveReduce', {}),
    ('NcclAllReduce', {}),
    ('XlaLaunch', {}),
    ('TPUExecute', {}),
    ('FIFOQueueV2', {}),
    ('HashTableV2', {}),
    ('LookupTableFindV2', {}),
    ('Stage', {}),
    ('Assert', {}),
    ('PrintV2', {}),
    ('StringUpper', {}),
    ('Identity', {'T': _STRING}),
    ('MatchingFiles', {}),
    ('__inference_layer_3', {}),
    ('BatchFunction', {}),
    ('MatMul', {'T': graph_defs.FLOAT, '_XlaMustCompile': {'b': True}}),
    ('CudnnRNNV3', {'T': graph_defs.FLOAT, 'dropout': {'f': .5}}),
    ('CudnnRNNBackpropV3', {'T': graph_defs.FLOAT}),
])
def test_ops_that_stay(op, attributes):
  assert _pin(_node(op, **attributes)) == ('/device:CPU:1', False)


@pytest.mark.parametrize('op, attributes', [
    ('MatMul', {'T': graph_defs.FLOAT}),
    ('Const', {'dtype': graph_defs.FLOAT}),
    ('VarHandleOp', {}),
    ('ReadVariableOp', {}),
    ('AssignVariableOp', {}),
    ('ResourceApplyAdam', {}),
    ('RandomUniform', {}),
    ('TensorArrayV3', {}),
    ('TensorListSetItem', {}),
    ('StackPushV2', {}),
    ('Switch', {}),
    ('VariableV2', {}),
    ('AssignAdd', {'T': graph_defs.FLOAT}),
    ('NoOp', {}),
    ('StatefulUniform', {}),
    ('TemporaryVariable', {}),
    ('_FusedMatMul', {'T': graph_defs.FLOAT}),
    ('CudnnRNNV3', {'T': graph_defs.FLOAT}),
    ('CudnnRNNV3', {'T': graph_defs.FLOAT, 'dropout': {'f': 0.}}),
])
def test_ops_that_move(op, attributes):
  assert _pin(_node(op, **attributes)) == ('', False)


def test_an_argument_that_is_a_variable_moves_with_its_group():
  node = _node('_Arg', T=_RESOURCE)
  node.attr['_handle_dtypes'].list.type.append(1)
  assert pins.is_variable_argument(node)
  assert _pin(node) == ('', False)
  iterator = _node('_Arg', T=_RESOURCE)
  iterator.attr['_handle_dtypes'].list.type.append(0)
  assert not pins.is_variable_argument(iterator)
  assert _pin(iterator) == ('/device:CPU:1', False)


@pytest.mark.parametrize('op, attributes', [
    ('Placeholder', {}),
    ('_Arg', {'T': graph_defs.FLOAT}),
    ('IteratorGetNext', {}),
    ('Identity', {'T': _STRING}),
    ('PartitionedCall',
     {'Tin': {'list': {'type': [tf.string.as_datatype_enum]}}}),
])
def test_values_of_the_host_are_there(op, attributes):
  assert _pin(graph_defs.node('n', op, **attributes)) == ('CPU:0', False)


def test_string_of_a_task_is_on_the_host_of_the_task():
  """A task alone is no device of a cluster, so the string had another host."""
  node = graph_defs.node('n', 'Identity', device='/job:worker/task:1',
                         T=_STRING)
  assert _pin(node) == ('/job:worker/task:1/device:CPU:0', False)


@pytest.mark.parametrize('device, task', [
    ('/job:w/task:1/device:GPU:0', '/job:w/task:1'),
    ('/job:w/task:1', '/job:w/task:1'),
    ('/gpu:0', ''),
    ('GPU:0', ''),
    ('', ''),
])
def test_task_of_a_device(device, task):
  assert pins.task_of(device) == task


@pytest.mark.parametrize('op, attributes', [
    ('PartitionedCall', {}),
    ('__inference_layer_3', {}),
    ('XlaCallModule', {}),
    ('Placeholder', {'dtype': _RESOURCE}),
    ('_Arg', {'T': _RESOURCE}),
    ('CheckNumerics', {'T': graph_defs.FLOAT}),
    ('CudnnRNNV3', {'T': graph_defs.FLOAT, 'dropout': {'f': .5}}),
    ('NcclAllReduce', {'T': graph_defs.FLOAT}),
    ('MatMul', {'T': graph_defs.FLOAT, '_gdp_leave_alone': {'b': True}}),
])
def test_the_group_decides_on_an_op_without_device(op, attributes):
  node = graph_defs.node('n', op, **attributes)
  assert pins.by_default(node, node_types.signature(node))
  assert _pin(node) == ('', False)
  node.device = '/job:worker/task:1'
  assert _pin(node) == ('', False)
  assert _pin(_node(op, **attributes)) == ('/device:CPU:1', False)


def test_an_op_that_is_free_has_no_default():
  node = graph_defs.node('n', 'MatMul', T=graph_defs.FLOAT)
  assert not pins.by_default(node, node_types.signature(node))


def test_users_come_first():
  node = _node('MatMul', T=graph_defs.FLOAT, _gdp_pin=b'GPU:1',
               _gdp_leave_alone={'b': True})
  assert _pin(node) == ('GPU:1', True)
  alone = _node('MatMul', T=graph_defs.FLOAT, _gdp_leave_alone={'b': True})
  assert _pin(alone) == ('/device:CPU:1', False)


@pytest.mark.parametrize('op, expected', [('VarHandleOp', True),
                                          ('VariableV2', True),
                                          ('HashTableV2', True),
                                          ('TensorArrayV3', False),
                                          ('StackV2', False),
                                          ('TemporaryVariable', False),
                                          ('Const', False),
                                          ('ReadVariableOp', False),
                                          ('NoOp', False)])
def test_holders_of_state(op, expected):
  node = graph_defs.node('n', op)
  assert pins.holds_state(node, node_types.signature(node)) == expected


def test_kernels_made_for_one_type():
  assert pins.keeps_type(_node('_FusedConv2D'))
  assert pins.keeps_type(_node('_Arg'))
  assert pins.keeps_type(_node('Conv2D', data_format=b'NCHW'))
  assert not pins.keeps_type(_node('Conv2D', data_format=b'NHWC'))
  assert not pins.keeps_type(_node('MatMul'))

import pytest
import tensorflow as tf

from gdp_grappler.plugin.fitting import counters

_COUNTING = {'counter', 'read', 'one', 'sum', 'assign'}


def _nodes(batch_op='IteratorGetNext', shape=(), after='', dtype=tf.int64,
           is_trained=False):
  """A step that increments a counter, and adds the batch to a weight.

  Args:
    batch_op: Type of the op that outputs the batch.
    shape: Shape of the counter; None if unknown.
    after: A further input of the op that increments the counter.
    dtype: Type of the counter.
    is_trained: Whether the step also adds the batch to the counter.
  """
  graph_def = tf.compat.v1.GraphDef()

  def add(name, op, *inputs):
    return graph_def.node.add(name=name, op=op, input=inputs)

  def variable(name, shape):
    node = add(name, '_Arg')
    node.attr['T'].type = tf.resource.as_datatype_enum
    node.attr['_handle_dtypes'].list.type.append(dtype.as_datatype_enum)
    node.attr['_handle_shapes'].list.shape.append(
        tf.TensorShape(shape).as_proto())

  # Nodes of a GraphDef come in any order.
  add('assign', 'AssignVariableOp', 'counter', 'sum:0', '^read',
      *filter(None, [after]))
  add('sum', 'AddV2', 'read', 'one')
  add('read', 'ReadVariableOp', 'counter')
  add('one', 'Const')
  variable('counter', shape)
  variable('weight', ())
  add('batch', batch_op, 'iterator')
  add('scaled', 'Mul', 'batch:1', 'read')
  add('update', 'AssignAddVariableOp', 'weight', 'scaled')
  add('iterator', '_Arg')
  if is_trained:
    add('trained', 'AssignAddVariableOp', 'counter', 'batch:1')
  return graph_def.node


@pytest.mark.parametrize('case', [
    dict(),
    dict(shape=(2,)),
    dict(shape=(64, 64)),
    dict(shape=None),
    dict(dtype=tf.float32),
])
def test_updates_without_the_batch_are_found_with_all_that_they_need(case):
  """Once counters on another device than the iterator missed a step."""
  assert counters.ops(_nodes(**case)) == _COUNTING


@pytest.mark.parametrize('case', [
    dict(after='^batch'),
    dict(after='^scaled'),
    dict(batch_op='Identity'),
    dict(shape=None, dtype=tf.float32),
])
def test_other_updates_are_left_out(case):
  """The update needs the batch, or may be of a weight, or has no iterator."""
  assert not counters.ops(_nodes(**case))


@pytest.mark.parametrize('case', [
    dict(shape=(2,)),
    dict(shape=(1, 1)),
    dict(is_trained=True),
], ids=str)
def test_a_small_weight_is_no_counter(case):
  """Once the bias of a small layer stayed, against the plan of the user."""
  assert not counters.ops(_nodes(dtype=tf.float32, **case))


def test_an_op_without_inputs_changes_no_counter():
  """Once the missing input raised an error."""
  nodes = _nodes()
  nodes.add(name='sums', op='ResourceConditionalAccumulator')
  assert counters.ops(nodes) == _COUNTING

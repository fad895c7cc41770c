"""Whether TensorFlow does with buffers what the sets of ops say."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework import kernels as tf_kernels
from tensorflow.python.framework import op_def_registry

from gdp_grappler.graph import op_kinds

tf1 = tf.compat.v1
raw = tf.raw_ops
_SHAPE = (4, 16)
_ROW = ((0,), ((1.,) * 16,))
_BOTH = (op_kinds.ALIASES, op_kinds.NO_KERNEL)

# Of a tensor that somebody else reads as well.
_OF_A_TENSOR = {
    'Bitcast':
        lambda x: raw.Bitcast(input=x, type=tf.int32), 'CheckNumerics':
            lambda x: raw.CheckNumerics(tensor=x, message=''),
    'CheckNumericsV2':
        lambda x: raw.CheckNumericsV2(tensor=x, message=''), 'EnsureShape':
            lambda x: raw.EnsureShape(input=x, shape=_SHAPE), 'Enter':
                lambda x: raw.Exit(data=raw.Enter(data=x, frame_name='loop')),
    'ExpandDims':
        lambda x: raw.ExpandDims(input=x, axis=0), 'GuaranteeConst':
            lambda x: raw.GuaranteeConst(input=x), 'Identity':
                lambda x: raw.Identity(input=x), 'InplaceAdd':
                    lambda x: raw.InplaceAdd(x=x, i=_ROW[0], v=_ROW[1]),
    'InplaceSub':
        lambda x: raw.InplaceSub(x=x, i=_ROW[0], v=_ROW[1]), 'InplaceUpdate':
            lambda x: raw.InplaceUpdate(x=x, i=_ROW[0], v=_ROW[1]),
    'Merge':
        lambda x: raw.Merge(inputs=[x, raw.Switch(data=x, pred=True)[0]])[0],
    'PlaceholderWithDefault':
        lambda x: raw.PlaceholderWithDefault(input=x, shape=_SHAPE),
    'PreventGradient':
        lambda x: raw.PreventGradient(input=x), 'Print':
            lambda x: raw.Print(input=x, data=[x], first_n=0), 'Reshape':
                lambda x: raw.Reshape(tensor=x, shape=[-1]), 'Squeeze':
                    lambda x: raw.Squeeze(input=x), 'StopGradient':
                        lambda x: raw.StopGradient(input=x), 'Switch':
                            lambda x: raw.Switch(data=x, pred=True)[1],
    'TensorListPushBack':
        lambda x: _popped(
            raw.TensorListPushBack(input_handle=_list(0), tensor=x)),
    'TensorListResize':
        lambda x: _popped(
            raw.TensorListResize(
                input_handle=raw.TensorListResize(
                    input_handle=raw.TensorListPushBack(input_handle=_list(
                        0), tensor=x), size=2), size=1)),
    'TensorListSetItem':
        lambda x: _popped(
            raw.TensorListSetItem(input_handle=_list(1), index=0, item=x))
}
_COPIES = {
    'AddN':
        lambda x: raw.AddN(inputs=[x, x]), 'DeepCopy':
            lambda x: raw.DeepCopy(x=x), 'Relu':
                lambda x: raw.Relu(features=x), 'Snapshot':
                    lambda x: raw.Snapshot(input=x),
    'TensorListFromTensor':
        lambda x: raw.TensorListGetItem(
            input_handle=raw.TensorListFromTensor(tensor=x, element_shape=[16]),
            index=0, element_shape=[16], element_dtype=tf.float32)
}
# It depends on shapes and types whether these copy.
_EITHER = {
    'Cast': (lambda x: raw.Cast(x=x, DstT=tf.float32),
             lambda x: raw.Cast(x=x, DstT=tf.float64)),
    'Slice': (lambda x: raw.Slice(input=x, begin=[0, 0], size=[2, 16]),
              lambda x: raw.Slice(input=x, begin=[0, 0], size=[2, 8])),
    'Split': (lambda x: raw.Split(axis=0, value=x, num_split=2)[0],
              lambda x: raw.Split(axis=1, value=x, num_split=2)[0]),
    'Transpose': (lambda x: raw.Transpose(x=x, perm=[0, 1]),
                  lambda x: raw.Transpose(x=x, perm=[1, 0]))
}
_OF_A_REFERENCE = {
    'ApplyGradientDescent':
        lambda v: raw.ApplyGradientDescent(var=v, alpha=.1, delta=tf.ones(
            _SHAPE)), 'Assign':
                lambda v: raw.Assign(ref=v, value=tf.ones(_SHAPE)), 'AssignAdd':
                    lambda v: raw.AssignAdd(ref=v, value=tf.ones(_SHAPE)),
    'AssignSub':
        lambda v: raw.AssignSub(ref=v, value=tf.ones(_SHAPE)), 'RefEnter':
            lambda v: raw.RefExit(data=raw.RefEnter(data=v, frame_name='loop')),
    'RefIdentity':
        lambda v: raw.RefIdentity(input=v), 'RefMerge':
            lambda v: raw.RefMerge(inputs=
                                   [v, raw.RefSwitch(data=v, pred=True)[0]])[0],
    'RefSwitch':
        lambda v: raw.RefSwitch(data=v, pred=True)[1], 'ScatterUpdate':
            lambda v: raw.ScatterUpdate(ref=v, indices=_ROW[0], updates=_ROW[1])
}


def _list(size):
  return raw.TensorListReserve(element_shape=_SHAPE, num_elements=size,
                               element_dtype=tf.float32)


def _popped(handle):
  return raw.TensorListPopBack(input_handle=handle, element_shape=_SHAPE,
                               element_dtype=tf.float32)[1]


def _share(make):
  """Whether two tensors of a graph are one buffer, in a session."""
  found = []

  def look(*tensors):
    found.extend(np.asarray(memoryview(t)).ctypes.data for t in tensors)
    return True

  config = tf1.ConfigProto()
  config.graph_options.rewrite_options.disable_meta_optimizer = True
  config.graph_options.optimizer_options.opt_level = -1
  with tf.Graph().as_default():
    done = tf.py_function(look, make(), tf.bool)
    with tf1.Session(config=config) as session:
      session.run(tf1.global_variables_initializer())
      session.run(done)
  first, second = found
  return first == second


def _of_a_tensor(make):

  def both():
    x = tf1.random_uniform(_SHAPE, seed=1)
    return x, make(x)

  return _share(both)


@pytest.mark.parametrize('op_type', _OF_A_TENSOR)
def test_aliases_hand_on_the_buffer_that_others_read(op_type):
  assert op_type in op_kinds.ALIASES
  assert _of_a_tensor(_OF_A_TENSOR[op_type])


@pytest.mark.parametrize('op_type', ['TensorListGetItem', 'TensorListPopBack'])
def test_elements_of_lists_are_handed_on(op_type):
  """Lists of references were priced as copies of their elements."""
  read = {
      'TensorListPopBack':
          _popped, 'TensorListGetItem':
              lambda handle: raw.
              TensorListGetItem(input_handle=handle, index=0, element_shape=
                                _SHAPE, element_dtype=tf.float32)
  }
  assert op_type in op_kinds.NO_KERNEL
  assert _of_a_tensor(lambda x: read[op_type]
                      (raw.TensorListPushBack(input_handle=_list(0), tensor=x)))


def _through_a_stack(x):
  stack = raw.StackV2(max_size=-1, elem_type=tf.float32, stack_name='')
  with tf.control_dependencies([raw.StackPushV2(handle=stack, elem=x)]):
    return raw.StackPopV2(handle=stack, elem_type=tf.float32)


def _through_an_array(x):
  array, flow = raw.TensorArrayV3(size=1, dtype=tf.float32)
  flow = raw.TensorArrayWriteV3(handle=array, index=0, value=x, flow_in=flow)
  return raw.TensorArrayReadV3(handle=array, index=0, flow_in=flow,
                               dtype=tf.float32)


@pytest.mark.parametrize('make, names',
                         [(_through_a_stack, ('StackPush', 'StackPop')),
                          (_through_an_array,
                           ('TensorArrayWrite', 'TensorArrayRead'))],
                         ids=['stack', 'array'])
def test_stacks_and_arrays_hold_references(make, names):
  """Loops of TensorFlow 1 were priced as if they copied what they store."""
  for kind in tf_kernels.get_all_registered_kernels().kernel:
    if kind.op.rstrip('V23') in names:
      assert kind.op in op_kinds.NO_KERNEL
  assert _of_a_tensor(make)


def test_lists_are_changed_without_a_kernel():
  """Each was priced as a launch and a copy."""
  assert op_kinds.NEW_LISTS | op_kinds.LIST_CHANGES <= op_kinds.NO_KERNEL


@pytest.mark.parametrize('op_type', _COPIES)
def test_copies_are_no_aliases(op_type):
  assert not any(op_type in kinds for kinds in _BOTH)
  assert not _of_a_tensor(_COPIES[op_type])


@pytest.mark.parametrize('op_type', _EITHER)
def test_what_sometimes_copies_is_no_alias(op_type):
  assert not any(op_type in kinds for kinds in _BOTH)
  assert [_of_a_tensor(make) for make in _EITHER[op_type]] == [True, False]


@pytest.mark.parametrize('op_type', _OF_A_REFERENCE)
def test_references_stay_the_variable(op_type):
  assert op_type in op_kinds.ALIASES

  def make():
    variable = tf1.Variable(tf.zeros(_SHAPE), use_resource=False)
    with tf.control_dependencies([variable.initializer]):
      changed = _OF_A_REFERENCE[op_type](variable._ref())
    with tf.control_dependencies([changed]):
      return tf.identity(variable._ref()), changed

  assert _share(make)


def test_reading_a_variable_copies_nothing():

  def make():
    variable = tf1.Variable(tf.zeros(_SHAPE), use_resource=True)
    return [
        raw.ReadVariableOp(resource=variable.handle, dtype=tf.float32)
        for _ in range(2)
    ]

  assert 'ReadVariableOp' in op_kinds.ALIASES
  assert _share(make)


def test_identity_of_many_hands_on_each_input_of_its_own():
  assert 'IdentityN' not in op_kinds.ALIASES

  def make():
    x = [tf1.random_uniform(_SHAPE, seed=seed) for seed in (1, 2)]
    return x[1], raw.IdentityN(input=x)[1]

  assert _share(make)


def test_every_op_that_hands_on_its_first_reference_is_an_alias():
  for op_type in {k.op for k in tf_kernels.get_all_registered_kernels().kernel}:
    definition = op_def_registry.get(op_type)
    if (definition and definition.input_arg and definition.output_arg and
        definition.input_arg[0].is_ref and definition.output_arg[0].is_ref and
        not op_type.startswith('Debug')):
      assert op_type in op_kinds.ALIASES, op_type


def test_all_ops_exist():
  kinds = {
      name: value for name, value in vars(op_kinds).items()
      if isinstance(value, frozenset)
  }
  assert len(kinds) > 20
  for name, kind in kinds.items():
    for op_type in kind:
      assert op_def_registry.get(op_type) is not None, (name, op_type)

"""Whether each type of op is known to round, or not to, and does what is said.

Says for TensorFlow's whole registry why a type may change its kind of device.
Whoever gets here with a new TensorFlow: look at the kernels of the types that
are named, on CPUs and on GPUs, and enter each in `rounding_kinds`, as exact
only if nothing is computed.
"""

import collections
import functools

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework import types_pb2
from tensorflow.python.framework import kernels as tf_kernels
from tensorflow.python.framework import op_def_registry

from gdp_grappler.graph import op_kinds
from gdp_grappler.graph import rounding_kinds
from gdp_grappler.graph.legality import node_types
from gdp_grappler.graph.legality import pins
from gdp_grappler.graph.legality import rounding
from helpers import exact_ops

raw = tf.raw_ops
_EXACT = frozenset().union(*rounding_kinds.EXACT.values())
_ROUNDS = frozenset().union(*rounding_kinds.ROUNDS.values())
_WHOLE = rounding._WITHOUT_FLOATS


def _types(op_def, attribute):
  """DataTypes that a type attribute may have."""
  found = next(a for a in op_def.attr if a.name == attribute)
  return set(
      found.allowed_values.list.type) or set(types_pb2.DataType.values()) - {0}


def _with_kernel(kernels, attribute):
  """Those that some kernel takes; None for all."""
  result = set()
  for kernel in kernels:
    constraint = next((c for c in kernel.constraint if c.name == attribute),
                      None)
    if constraint is None or not constraint.allowed_values.list.type:
      return None
    result.update(constraint.allowed_values.list.type)
  return result


def _may_hold_floats(op_def, by_device):
  """Whether an argument may be of floats on CPUs and on GPUs."""
  for arg in (*op_def.input_arg, *op_def.output_arg):
    attribute = arg.type_attr or arg.type_list_attr
    types = _types(op_def, attribute) if attribute else {arg.type % 100}
    for kernels in by_device if attribute else ():
      with_kernel = _with_kernel(kernels, attribute)
      types = types if with_kernel is None else types & with_kernel
    if types - _WHOLE:
      return True
  return False


@functools.cache
def _on_both():
  """Types of ops with kernels for floats on CPUs and on GPUs."""
  kernels = collections.defaultdict(lambda: collections.defaultdict(list))
  for kernel in tf_kernels.get_all_registered_kernels().kernel:
    kernels[kernel.op][kernel.device_type].append(kernel)
  result = set()
  for op_type, by_device in kernels.items():
    op_def = op_def_registry.get(op_type)
    own = [by_device[d] + by_device['DEFAULT'] for d in ('CPU', 'GPU')]
    if op_def is not None and all(own) and _may_hold_floats(op_def, own):
      result.add(op_type)
  return frozenset(result)


def _is_tied(op_type):
  """Whether no placement moves an op, so that it does not matter."""
  definition = op_def_registry.get(op_type)
  texts = tuple(
      node_types.ArgType(arg.type, False)
      for arg in (*definition.input_arg, *definition.output_arg)
      if arg.type == types_pb2.DT_STRING)
  return bool(
      pins._ties(op_type) or
      pins._ties_of_kind(op_type, node_types.Signature(texts, ())))


def test_the_registry_knows_kernels_for_gpus():
  """Else all that follows says nothing."""
  assert len(_on_both()) > 600
  assert {'MatMul', 'Conv2D', 'ResourceApplyAdam'} <= _on_both()


def test_every_type_with_floats_on_both_kinds_is_classified():
  unknown = {
      op_type for op_type in _on_both() - _EXACT - _ROUNDS
      if not _is_tied(op_type)
  }
  assert not unknown, (
      f'Nobody has looked at the kernels of {sorted(unknown)}: enter them in '
      'rounding_kinds.EXACT or .ROUNDS.')


def test_nothing_is_classified_that_is_not_there():
  known = {
      kernel.op for kernel in tf_kernels.get_all_registered_kernels().kernel
  }
  assert not (_EXACT | _ROUNDS) - known - op_kinds.HANDED_ON
  # Arithmetic that only one kind of device has needs no entry.
  assert not _ROUNDS - _on_both()


def test_no_type_is_in_two_sets():
  for sets in (rounding_kinds.EXACT, rounding_kinds.ROUNDS):
    assert sum(map(len,
                   sets.values())) == len(frozenset().union(*sets.values()))
  assert not _EXACT & _ROUNDS
  assert rounding_kinds.ALSO_INTEGERS <= _ROUNDS
  assert rounding_kinds.CASTS <= _ROUNDS


def test_reasons_are_clauses():
  for why in (*rounding_kinds.EXACT, *rounding_kinds.ROUNDS):
    assert why.startswith('it ') and not why.endswith('.')


# Why others are not run here -> types.
_NOT_RUN = {
    'op_kinds_test runs them, and sees their buffer come out':
        op_kinds.HANDED_ON | op_kinds.CONTROL_FLOW
        | op_kinds.REFERENCE_VARIABLES | {'Assign', 'TensorListResize'},
    'they make what others read':
        op_kinds.LIST_MAKERS | {
            'StackPush', 'StackPushV2', 'TensorArray', 'TensorArrayGrad',
            'TensorArrayGradV2', 'TensorArrayGradV3',
            'TensorArrayGradWithShape', 'TensorArrayV2', 'TensorArrayV3',
            'TensorListPushBackBatch', 'VarHandleOp', '_VarHandlesOp'
        },
    'they have no value but what a program or another op gives them': {
        'Const', 'DestroyTemporaryVariable', 'Empty', 'FakeParam', 'HostConst',
        'StackPop', 'StackPopV2', 'TemporaryVariable'
    },
    'TensorFlow puts them into graphs, or takes them for older programs': {
        'CheckPinned', 'DebugIdentity', 'DeserializeSparse',
        'IsVariableInitialized', 'ParallelConcat', 'StridedSliceAssign',
        'TensorArrayConcat', 'TensorArrayConcatV2', 'TensorArrayGather',
        'TensorArrayGatherV2', 'TensorArrayPack', 'TensorArrayRead',
        'TensorArrayReadV2', 'TensorArraySize', 'TensorArraySizeV2',
        '_ArrayToList', '_EagerConst', '_ListToArray', '_ParallelConcatStart',
        '_ParallelConcatUpdate', '_ReadVariablesOp'
    },
    'TensorFlow removed them; graphs of old programs may hold them': {
        'BatchMatrixBandPart', 'BatchMatrixDiag', 'BatchMatrixDiagPart',
        'BatchMatrixSetDiag'
    },
    'see below':
        rounding_kinds.EXACT['it draws bits'],
}


def test_every_exact_type_is_run_or_has_a_reason():
  covered = {*exact_ops.MOVES, *exact_ops.COUNTS}.union(*_NOT_RUN.values())
  assert not _EXACT - covered
  assert not covered - _EXACT


@pytest.mark.parametrize('op_type', sorted(exact_ops.MOVES))
def test_what_comes_out_went_in_to_the_last_bit(op_type):
  found = exact_ops.MOVES[op_type]()
  assert found.dtype == tf.float32 and tf.size(found)
  known = np.concatenate(
      [exact_ops.bits(exact_ops.VALUES),
       exact_ops.bits([0., 1.])])
  assert np.isin(exact_ops.bits(found), known).all()


@pytest.mark.parametrize('op_type', sorted(exact_ops.COUNTS))
def test_what_is_counted_is_no_float(op_type):
  assert exact_ops.COUNTS[op_type]().dtype in (tf.bool, tf.int32, tf.int64)


def test_arithmetic_would_be_seen():
  """The values are such that hardly any arithmetic hands them on."""
  known = np.concatenate(
      [exact_ops.bits(exact_ops.VALUES),
       exact_ops.bits([0., 1.])])
  for run in (lambda: exact_ops.X + exact_ops.X,
              lambda: tf.nn.softplus(exact_ops.X),
              lambda: tf.math.cumsum(exact_ops.X),
              lambda: tf.matmul(exact_ops.X, exact_ops.X)):
    assert not np.isin(exact_ops.bits(run()), known).all()


def test_uniform_numbers_are_bits_with_an_exponent():
  key = tf.constant([7], tf.uint64)
  counter = tf.constant([1, 2], tf.uint64)
  bits = raw.StatelessRandomUniformFullIntV2(shape=[64], key=key,
                                             counter=counter, alg=1,
                                             dtype=tf.uint32).numpy()
  made = ((bits & 0x7fffff) | 0x3f800000).view(np.float32)
  drawn = raw.StatelessRandomUniformV2(shape=[64], key=key, counter=counter,
                                       alg=1)
  # A difference of two floats within a factor of two is exact.
  assert (exact_ops.bits(drawn) == exact_ops.bits(made - np.float32(1))).all()


@pytest.mark.parametrize('draw', [
    lambda: raw.StatelessRandomUniform(shape=[64], seed=[1, 2]),
    lambda: raw.RandomUniform(shape=[64], dtype=tf.float32, seed=1, seed2=2),
])
def test_older_uniform_numbers_have_no_more_bits(draw):
  scaled = draw().numpy().astype(np.float64) * 2**23
  assert (scaled == np.round(scaled)).all() and (scaled < 2**23).all()


def test_normal_numbers_are_computed():
  scaled = raw.StatelessRandomNormal(shape=[64], seed=[1, 2]).numpy().astype(
      np.float64) * 2**23
  assert (scaled != np.round(scaled)).any()

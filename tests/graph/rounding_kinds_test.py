"""Whether each type of op is known to round, or not to, and does what is said.

Says for TensorFlow's whole registry why a type may change its kind of device.
Whoever gets here with a new TensorFlow: look at the kernels of the types that
are named, on CPUs and on GPUs, and enter each in `rounding_kinds`, as exact only
if nothing is computed.
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

raw = tf.raw_ops
_EXACT = frozenset().union(*rounding_kinds.EXACT.values())
_ROUNDS = frozenset().union(*rounding_kinds.ROUNDS.values())
_WHOLE = rounding._WITHOUT_FLOATS


def _types(op_def, attribute):
  """DataTypes that a type attribute may have."""
  found = next(a for a in op_def.attr if a.name == attribute)
  return set(found.allowed_values.list.type) or set(
      types_pb2.DataType.values()) - {0}


def _with_kernel(kernels, attribute):
  """Those that some kernel takes; None for all."""
  result = set()
  for kernel in kernels:
    constraint = next(
        (c for c in kernel.constraint if c.name == attribute), None)
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
  known = {kernel.op for kernel in
           tf_kernels.get_all_registered_kernels().kernel}
  assert not (_EXACT | _ROUNDS) - known - op_kinds.HANDED_ON
  # Arithmetic that only one kind of device has needs no entry.
  assert not _ROUNDS - _on_both()


def test_no_type_is_in_two_sets():
  for sets in (rounding_kinds.EXACT, rounding_kinds.ROUNDS):
    assert sum(map(len, sets.values())) == len(frozenset().union(*sets.values()))
  assert not _EXACT & _ROUNDS
  assert rounding_kinds.ROUND_INSIDE <= _ROUNDS
  assert rounding_kinds.CASTS <= _ROUNDS


def test_reasons_are_clauses():
  for why in (*rounding_kinds.EXACT, *rounding_kinds.ROUNDS):
    assert why.startswith('it ') and not why.endswith('.')


def _bits(values):
  """uint32 of floats, so that -0, numbers near 0 and what is no number count."""
  return np.asarray(values, np.float32).view(np.uint32)


# All of them have to come out as they went in: a negative zero, a number below
# the least normal one, infinities, and one that is no number, of two kinds.
_VALUES = np.concatenate([
    np.array([0x80000000, 1, 0x807fffff, 0x7f800000, 0xff800000, 0x7fc00001],
             np.uint32).view(np.float32),
    np.linspace(1.5, 99.25, 58, dtype=np.float32)
])
_X = tf.constant(_VALUES.reshape(4, 4, 4))
_SQUARE = tf.constant(_VALUES.reshape(8, 8))
_IMAGE = tf.constant(_VALUES.reshape(1, 4, 4, 4))
_ROW = tf.constant(_VALUES[:8])
_LIST = dict(element_dtype=tf.float32)
_SPARSE = tf.constant([[0, 0], [1, 2], [3, 1]], tf.int64)
_SPARSE_VALUES = tf.constant(_VALUES[[0, 1, 5]])


def _list():
  return raw.TensorListFromTensor(tensor=_X, element_shape=[4, 4])


def _array():
  made = raw.TensorArrayV3(size=4, dtype=tf.float32)
  return made.handle, raw.TensorArrayScatterV3(
      handle=made.handle, indices=[0, 1, 2, 3], value=_X, flow_in=made.flow)


def _changed(change):
  """What a variable holds that began with `_X`."""
  variable = tf.Variable(_X)
  change(variable.handle)
  return variable.read_value()


# Each gives floats, of which every one is one of `_VALUES`, 0 or 1.
_MOVES = {
    'Bitcast': lambda: raw.Bitcast(
        input=raw.Bitcast(input=_X, type=tf.int32), type=tf.float32),
    'BatchToSpace': lambda: raw.BatchToSpace(
        input=tf.reshape(_X, [4, 4, 4, 1]), crops=[[0, 1], [0, 0]],
        block_size=2),
    'BatchToSpaceND': lambda: raw.BatchToSpaceND(
        input=tf.reshape(_X, [4, 4, 4, 1]), block_shape=[2, 2],
        crops=[[0, 1], [0, 0]]),
    'BroadcastTo': lambda: raw.BroadcastTo(input=_X, shape=[2, 4, 4, 4]),
    'Concat': lambda: raw.Concat(concat_dim=1, values=[_X, _X]),
    'ConcatV2': lambda: raw.ConcatV2(values=[_X, _X], axis=2),
    'Copy': lambda: raw.Copy(input=_X),
    'CopyHost': lambda: raw.CopyHost(input=_X),
    'DebugGradientIdentity': lambda: raw.DebugGradientIdentity(input=_X),
    'DeepCopy': lambda: raw.DeepCopy(x=_X),
    'DepthToSpace': lambda: raw.DepthToSpace(input=_IMAGE, block_size=2),
    'Diag': lambda: raw.Diag(diagonal=_ROW),
    'DiagPart': lambda: raw.DiagPart(input=_SQUARE),
    'DynamicPartition': lambda: raw.DynamicPartition(
        data=_ROW, partitions=[0, 1, 1, 0, 1, 0, 0, 0], num_partitions=2)[1],
    'DynamicStitch': lambda: raw.DynamicStitch(
        indices=[[0, 2], [1, 2]], data=[_ROW[:2], _ROW[2:4]]),
    'EnsureShape': lambda: raw.EnsureShape(input=_X, shape=[4, 4, 4]),
    'ExpandDims': lambda: raw.ExpandDims(input=_X, axis=1),
    'ExtractImagePatches': lambda: raw.ExtractImagePatches(
        images=_IMAGE, ksizes=[1, 3, 3, 1], strides=[1, 1, 1, 1],
        rates=[1, 1, 1, 1], padding='SAME'),
    'ExtractVolumePatches': lambda: raw.ExtractVolumePatches(
        input=tf.reshape(_X, [1, 4, 4, 4, 1]), ksizes=[1, 2, 2, 2, 1],
        strides=[1, 1, 1, 1, 1], padding='SAME'),
    'Fill': lambda: raw.Fill(dims=[3], value=_ROW[2]),
    'Gather': lambda: raw.Gather(params=_X, indices=[3, 0, 3]),
    'GatherNd': lambda: raw.GatherNd(params=_X, indices=[[3, 0], [0, 1]]),
    'GatherV2': lambda: raw.GatherV2(params=_X, indices=[3, 0], axis=1),
    'Identity': lambda: raw.Identity(input=_X),
    'IdentityN': lambda: raw.IdentityN(input=[_X, _X])[1],
    'MatrixBandPart': lambda: raw.MatrixBandPart(
        input=_X, num_lower=1, num_upper=0),
    'MatrixDiag': lambda: raw.MatrixDiag(diagonal=_X),
    'MatrixDiagPart': lambda: raw.MatrixDiagPart(input=_X),
    'MatrixDiagPartV2': lambda: raw.MatrixDiagPartV2(
        input=_X, k=[-1, 1], padding_value=0.),
    'MatrixDiagPartV3': lambda: raw.MatrixDiagPartV3(
        input=_X, k=[-1, 1], padding_value=0.),
    'MatrixDiagV2': lambda: raw.MatrixDiagV2(
        diagonal=_X, k=0, num_rows=4, num_cols=4, padding_value=0.),
    'MatrixDiagV3': lambda: raw.MatrixDiagV3(
        diagonal=_X, k=0, num_rows=4, num_cols=4, padding_value=0.),
    'MatrixSetDiag': lambda: raw.MatrixSetDiag(input=_X, diagonal=_X[1]),
    'MatrixSetDiagV2': lambda: raw.MatrixSetDiagV2(
        input=_X, diagonal=_X[1], k=0),
    'MatrixSetDiagV3': lambda: raw.MatrixSetDiagV3(
        input=_X, diagonal=_X[1], k=0),
    'MirrorPad': lambda: raw.MirrorPad(
        input=_SQUARE, paddings=[[1, 2], [0, 3]], mode='REFLECT'),
    'OneHot': lambda: raw.OneHot(
        indices=[1, 0], depth=3, on_value=_ROW[5], off_value=_ROW[0]),
    'OnesLike': lambda: raw.OnesLike(x=_X),
    'Pack': lambda: raw.Pack(values=[_X, _X], axis=1),
    'Pad': lambda: raw.Pad(input=_SQUARE, paddings=[[1, 2], [0, 3]]),
    'PadV2': lambda: raw.PadV2(
        input=_SQUARE, paddings=[[1, 2], [0, 3]], constant_values=_ROW[5]),
    'PlaceholderWithDefault': lambda: raw.PlaceholderWithDefault(
        input=_X, shape=[4, 4, 4]),
    'PreventGradient': lambda: raw.PreventGradient(input=_X),
    'RaggedFillEmptyRows': lambda: raw.RaggedFillEmptyRows(
        value_rowids=tf.constant([0, 2, 2], tf.int64), values=_ROW[:3],
        nrows=tf.constant(4, tf.int64), default_value=_ROW[5]).output_values,
    'RaggedTensorFromVariant': lambda: raw.RaggedTensorFromVariant(
        encoded_ragged=raw.RaggedTensorToVariant(
            rt_nested_splits=[tf.constant([0, 3, 8], tf.int64)],
            rt_dense_values=_ROW, batched_input=False), input_ragged_rank=1,
        output_ragged_rank=1, Tvalues=tf.float32,
        Tsplits=tf.int64).output_dense_values,
    'ResourceGather': lambda: raw.ResourceGather(
        resource=tf.Variable(_X).handle, indices=[3, 1], dtype=tf.float32),
    'ResourceGatherNd': lambda: raw.ResourceGatherNd(
        resource=tf.Variable(_X).handle, indices=[[3, 1]], dtype=tf.float32),
    'ResourceStridedSliceAssign': lambda: _changed(
        lambda handle: raw.ResourceStridedSliceAssign(
            ref=handle, begin=[1, 0, 0], end=[3, 4, 4], strides=[1, 1, 1],
            value=_X[:2])),
    'Reshape': lambda: raw.Reshape(tensor=_X, shape=[-1]),
    'Reverse': lambda: raw.Reverse(tensor=_X, dims=[True, False, True]),
    'ReverseSequence': lambda: raw.ReverseSequence(
        input=_X, seq_lengths=[1, 2, 3, 4], seq_dim=1),
    'ReverseV2': lambda: raw.ReverseV2(tensor=_X, axis=[1]),
    'Roll': lambda: raw.Roll(input=_X, shift=[1], axis=[2]),
    'Select': lambda: raw.Select(
        condition=tf.constant([True, False] * 4), x=_ROW, y=_ROW[::-1]),
    'SelectV2': lambda: raw.SelectV2(
        condition=tf.constant([True, False] * 4), t=_ROW, e=_ROW[::-1]),
    'Slice': lambda: raw.Slice(input=_X, begin=[1, 0, 2], size=[2, 4, 2]),
    'Snapshot': lambda: raw.Snapshot(input=_X),
    'SpaceToBatch': lambda: raw.SpaceToBatch(
        input=_IMAGE, paddings=[[1, 1], [0, 0]], block_size=2),
    'SpaceToBatchND': lambda: raw.SpaceToBatchND(
        input=_IMAGE, block_shape=[2, 2], paddings=[[1, 1], [0, 0]]),
    'SpaceToDepth': lambda: raw.SpaceToDepth(input=_IMAGE, block_size=2),
    'SparseConcat': lambda: raw.SparseConcat(
        indices=[_SPARSE] * 2, values=[_SPARSE_VALUES] * 2,
        shapes=[tf.constant([4, 4], tf.int64)] * 2,
        concat_dim=0).output_values,
    'SparseFillEmptyRows': lambda: raw.SparseFillEmptyRows(
        indices=_SPARSE, values=_SPARSE_VALUES,
        dense_shape=tf.constant([4, 4], tf.int64),
        default_value=_ROW[5]).output_values,
    'SparseReorder': lambda: raw.SparseReorder(
        input_indices=_SPARSE[::-1], input_values=_SPARSE_VALUES,
        input_shape=tf.constant([4, 4], tf.int64)).output_values,
    'SparseSlice': lambda: raw.SparseSlice(
        indices=_SPARSE, values=_SPARSE_VALUES,
        shape=tf.constant([4, 4], tf.int64),
        start=tf.constant([1, 0], tf.int64),
        size=tf.constant([3, 3], tf.int64)).output_values,
    'SparseSplit': lambda: raw.SparseSplit(
        split_dim=tf.constant(0, tf.int64), indices=_SPARSE,
        values=_SPARSE_VALUES, shape=tf.constant([4, 4], tf.int64),
        num_split=2).output_values[1],
    'Split': lambda: raw.Split(axis=1, value=_X, num_split=2)[1],
    'SplitV': lambda: raw.SplitV(
        value=_X, size_splits=[1, 3], axis=1, num_split=2)[1],
    'Squeeze': lambda: raw.Squeeze(input=_IMAGE),
    'StopGradient': lambda: raw.StopGradient(input=_X),
    'StridedSlice': lambda: raw.StridedSlice(
        input=_X, begin=[3, 0, 0], end=[0, 4, 4], strides=[-1, 2, 1]),
    'StridedSliceGrad': lambda: raw.StridedSliceGrad(
        shape=[8], begin=[1], end=[8], strides=[2], dy=_ROW[:4]),
    'TensorArrayConcatV3': lambda: raw.TensorArrayConcatV3(
        handle=_array()[0], flow_in=_array()[1], dtype=tf.float32).value,
    'TensorArrayGatherV3': lambda: raw.TensorArrayGatherV3(
        handle=_array()[0], indices=[2, 1], flow_in=_array()[1],
        dtype=tf.float32),
    'TensorArrayReadV3': lambda: raw.TensorArrayReadV3(
        handle=_array()[0], index=2, flow_in=_array()[1], dtype=tf.float32),
    'TensorListConcat': lambda: raw.TensorListConcat(
        input_handle=_list(), element_shape=[4, 4], **_LIST).tensor,
    'TensorListConcatLists': lambda: raw.TensorListStack(
        input_handle=raw.TensorListConcatLists(
            input_a=_list(), input_b=_list(), **_LIST), element_shape=[4, 4],
        **_LIST),
    'TensorListConcatV2': lambda: raw.TensorListConcatV2(
        input_handle=_list(), element_shape=[4, 4], leading_dims=tf.constant(
            [], tf.int64), **_LIST).tensor,
    'TensorListFromTensor': lambda: raw.TensorListStack(
        input_handle=_list(), element_shape=[4, 4], **_LIST),
    'TensorListGather': lambda: raw.TensorListGather(
        input_handle=_list(), indices=[2, 1], element_shape=[4, 4], **_LIST),
    'TensorListGetItem': lambda: raw.TensorListGetItem(
        input_handle=_list(), index=2, element_shape=[4, 4], **_LIST),
    'TensorListPopBack': lambda: raw.TensorListPopBack(
        input_handle=_list(), element_shape=[4, 4], **_LIST).tensor,
    'TensorListPushBack': lambda: raw.TensorListPopBack(
        input_handle=raw.TensorListPushBack(
            input_handle=_list(), tensor=_X[1]), element_shape=[4, 4],
        **_LIST).tensor,
    'TensorListScatter': lambda: raw.TensorListStack(
        input_handle=raw.TensorListScatter(
            tensor=_X, indices=[3, 1, 0, 2], element_shape=[4, 4]),
        element_shape=[4, 4], **_LIST),
    'TensorListScatterIntoExistingList': lambda: raw.TensorListStack(
        input_handle=raw.TensorListScatterIntoExistingList(
            input_handle=_list(), tensor=_X[:2], indices=[3, 1]),
        element_shape=[4, 4], **_LIST),
    'TensorListScatterV2': lambda: raw.TensorListStack(
        input_handle=raw.TensorListScatterV2(
            tensor=_X, indices=[3, 1, 0, 2], element_shape=[4, 4],
            num_elements=4), element_shape=[4, 4], **_LIST),
    'TensorListSetItem': lambda: raw.TensorListStack(
        input_handle=raw.TensorListSetItem(
            input_handle=_list(), index=1, item=_X[3]), element_shape=[4, 4],
        **_LIST),
    'TensorListSplit': lambda: raw.TensorListGetItem(
        input_handle=raw.TensorListSplit(
            tensor=_X, element_shape=[-1, 4, 4], lengths=tf.constant(
                [1, 3], tf.int64)), index=1, element_shape=[3, 4, 4], **_LIST),
    'TensorListStack': lambda: raw.TensorListStack(
        input_handle=_list(), element_shape=[4, 4], **_LIST),
    'TensorStridedSliceUpdate': lambda: raw.TensorStridedSliceUpdate(
        input=_X, begin=[1, 0, 0], end=[3, 4, 4], strides=[1, 1, 1],
        value=_X[:2]),
    'Tile': lambda: raw.Tile(input=_X, multiples=[2, 1, 3]),
    'Transpose': lambda: raw.Transpose(x=_X, perm=[2, 0, 1]),
    'Unpack': lambda: raw.Unpack(value=_X, num=4, axis=1)[2],
    'AssignVariableOp': lambda: _changed(lambda handle: raw.AssignVariableOp(
        resource=handle, value=_X[::-1])),
    'ReadVariableOp': lambda: raw.ReadVariableOp(
        resource=tf.Variable(_X).handle, dtype=tf.float32),
    'ZerosLike': lambda: raw.ZerosLike(x=_X),
}

# Each gives numbers that are counted, or yes and no.
_COUNTS = {
    'DebugNanCount': lambda: raw.DebugNanCount(
        input=_X, tensor_name='x:0', debug_urls=[]),
    'Equal': lambda: raw.Equal(x=_X, y=_X),
    'Greater': lambda: raw.Greater(x=_X, y=_X[::-1]),
    'GreaterEqual': lambda: raw.GreaterEqual(x=_X, y=_X[::-1]),
    'IsFinite': lambda: raw.IsFinite(x=_X),
    'IsInf': lambda: raw.IsInf(x=_X),
    'IsNan': lambda: raw.IsNan(x=_X),
    'Less': lambda: raw.Less(x=_X, y=_X[::-1]),
    'LessEqual': lambda: raw.LessEqual(x=_X, y=_X[::-1]),
    'NotEqual': lambda: raw.NotEqual(x=_X, y=_X),
    'Rank': lambda: raw.Rank(input=_X),
    'Shape': lambda: raw.Shape(input=_X),
    'ShapeN': lambda: raw.ShapeN(input=[_X, _ROW])[1],
    'Size': lambda: raw.Size(input=_X),
    'TensorArraySizeV3': lambda: raw.TensorArraySizeV3(
        handle=_array()[0], flow_in=_array()[1]),
    'TensorListElementShape': lambda: raw.TensorListElementShape(
        input_handle=_list(), shape_type=tf.int32),
    'TensorListLength': lambda: raw.TensorListLength(input_handle=_list()),
    'VariableShape': lambda: raw.VariableShape(input=tf.Variable(_X).handle),
}

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
    'they have no value but what a program or another op gives them':
        {
            'Const', 'DestroyTemporaryVariable', 'Empty', 'FakeParam',
            'HostConst', 'StackPop', 'StackPopV2', 'TemporaryVariable'
        },
    'TensorFlow puts them into graphs, or takes them for older programs':
        {
            'CheckPinned', 'DebugIdentity', 'DeserializeSparse',
            'IsVariableInitialized', 'ParallelConcat', 'StridedSliceAssign',
            'TensorArrayConcat', 'TensorArrayConcatV2', 'TensorArrayGather',
            'TensorArrayGatherV2', 'TensorArrayPack', 'TensorArrayRead',
            'TensorArrayReadV2', 'TensorArraySize', 'TensorArraySizeV2',
            '_ArrayToList', '_EagerConst', '_ListToArray',
            '_ParallelConcatStart', '_ParallelConcatUpdate', '_ReadVariablesOp'
        },
    'TensorFlow removed them; graphs of old programs may hold them':
        {
            'BatchMatrixBandPart', 'BatchMatrixDiag', 'BatchMatrixDiagPart',
            'BatchMatrixSetDiag'
        },
    'see below':
        rounding_kinds.EXACT['it draws bits'],
}


def test_every_exact_type_is_run_or_has_a_reason():
  covered = {*_MOVES, *_COUNTS}.union(*_NOT_RUN.values())
  assert not _EXACT - covered
  assert not covered - _EXACT


@pytest.mark.parametrize('op_type', sorted(_MOVES))
def test_what_comes_out_went_in_to_the_last_bit(op_type):
  found = _MOVES[op_type]()
  assert found.dtype == tf.float32 and tf.size(found)
  known = np.concatenate([_bits(_VALUES), _bits([0., 1.])])
  assert np.isin(_bits(found), known).all()


@pytest.mark.parametrize('op_type', sorted(_COUNTS))
def test_what_is_counted_is_no_float(op_type):
  assert _COUNTS[op_type]().dtype in (tf.bool, tf.int32, tf.int64)


def test_arithmetic_would_be_seen():
  """The values are such that hardly any arithmetic hands them on."""
  known = np.concatenate([_bits(_VALUES), _bits([0., 1.])])
  for run in (lambda: _X + _X, lambda: tf.nn.softplus(_X),
              lambda: tf.math.cumsum(_X), lambda: tf.matmul(_X, _X)):
    assert not np.isin(_bits(run()), known).all()


def test_uniform_numbers_are_bits_with_an_exponent():
  key = tf.constant([7], tf.uint64)
  counter = tf.constant([1, 2], tf.uint64)
  bits = raw.StatelessRandomUniformFullIntV2(
      shape=[64], key=key, counter=counter, alg=1, dtype=tf.uint32).numpy()
  made = ((bits & 0x7fffff) | 0x3f800000).view(np.float32)
  drawn = raw.StatelessRandomUniformV2(shape=[64], key=key, counter=counter,
                                       alg=1)
  # A difference of two floats within a factor of two is exact.
  assert (_bits(drawn) == _bits(made - np.float32(1))).all()


@pytest.mark.parametrize('draw', [
    lambda: raw.StatelessRandomUniform(shape=[64], seed=[1, 2]),
    lambda: raw.RandomUniform(shape=[64], dtype=tf.float32, seed=1, seed2=2),
])
def test_older_uniform_numbers_have_no_more_bits(draw):
  scaled = draw().numpy().astype(np.float64) * 2**23
  assert (scaled == np.round(scaled)).all() and (scaled < 2**23).all()


def test_normal_numbers_are_computed():
  scaled = raw.StatelessRandomNormal(
      shape=[64], seed=[1, 2]).numpy().astype(np.float64) * 2**23
  assert (scaled != np.round(scaled)).any()

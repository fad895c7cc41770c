"""Runs ops declared exact on values that arithmetic would change."""

from __future__ import annotations

from typing import Callable

import numpy as np
import tensorflow as tf

raw = tf.raw_ops


def bits(values: object) -> np.ndarray:
  """Returns uint32 of floats, so that -0, denormals and NaN are compared."""
  return np.asarray(values, np.float32).view(np.uint32)


# Values that an exact op must leave unchanged: a negative zero, a denormal,
# infinities, and two kinds of NaN.
VALUES = np.concatenate([
    np.array([0x80000000, 1, 0x807fffff, 0x7f800000, 0xff800000, 0x7fc00001],
             np.uint32).view(np.float32),
    np.linspace(1.5, 99.25, 58, dtype=np.float32)
])
X = tf.constant(VALUES.reshape(4, 4, 4))
_SQUARE = tf.constant(VALUES.reshape(8, 8))
_IMAGE = tf.constant(VALUES.reshape(1, 4, 4, 4))
_ROW = tf.constant(VALUES[:8])
_LIST = dict(element_dtype=tf.float32)
_SPARSE = tf.constant([[0, 0], [1, 2], [3, 1]], tf.int64)
_SPARSE_VALUES = tf.constant(VALUES[[0, 1, 5]])


def _list() -> tf.Tensor:
  return raw.TensorListFromTensor(tensor=X, element_shape=[4, 4])


def _array() -> tuple[tf.Tensor, tf.Tensor]:
  made = raw.TensorArrayV3(size=4, dtype=tf.float32)
  return made.handle, raw.TensorArrayScatterV3(handle=made.handle,
                                               indices=[0, 1, 2, 3], value=X,
                                               flow_in=made.flow)


def _changed(change: Callable[[tf.Tensor], object]) -> tf.Tensor:
  """Returns the value of a variable that had the value `X` before a change."""
  variable = tf.Variable(X)
  change(variable.handle)
  return variable.read_value()


# Functions by op type. Each element of a result is one of `VALUES`, 0 or 1.
MOVES = {
    'Bitcast':
        lambda: raw.Bitcast(input=raw.Bitcast(input=X, type=tf.int32), type=tf.
                            float32),
    'BatchToSpace':
        lambda: raw.BatchToSpace(input=tf.reshape(X, [4, 4, 4, 1]), crops=
                                 [[0, 1], [0, 0]], block_size=2),
    'BatchToSpaceND':
        lambda: raw.BatchToSpaceND(input=tf.reshape(X, [4, 4, 4, 1]),
                                   block_shape=[2, 2], crops=[[0, 1], [0, 0]]),
    'BroadcastTo':
        lambda: raw.BroadcastTo(input=X, shape=[2, 4, 4, 4]),
    'Concat':
        lambda: raw.Concat(concat_dim=1, values=[X, X]),
    'ConcatV2':
        lambda: raw.ConcatV2(values=[X, X], axis=2),
    'Copy':
        lambda: raw.Copy(input=X),
    'CopyHost':
        lambda: raw.CopyHost(input=X),
    'DebugGradientIdentity':
        lambda: raw.DebugGradientIdentity(input=X),
    'DeepCopy':
        lambda: raw.DeepCopy(x=X),
    'DepthToSpace':
        lambda: raw.DepthToSpace(input=_IMAGE, block_size=2),
    'Diag':
        lambda: raw.Diag(diagonal=_ROW),
    'DiagPart':
        lambda: raw.DiagPart(input=_SQUARE),
    'DynamicStitch':
        lambda: raw.DynamicStitch(indices=[[0, 2], [1, 2]], data=
                                  [_ROW[:2], _ROW[2:4]]),
    'EnsureShape':
        lambda: raw.EnsureShape(input=X, shape=[4, 4, 4]),
    'ExpandDims':
        lambda: raw.ExpandDims(input=X, axis=1),
    'ExtractImagePatches':
        lambda: raw.ExtractImagePatches(images=_IMAGE, ksizes=[
            1, 3, 3, 1
        ], strides=[1, 1, 1, 1], rates=[1, 1, 1, 1], padding='SAME'),
    'ExtractVolumePatches':
        lambda: raw.ExtractVolumePatches(input=tf.reshape(X, [
            1, 4, 4, 4, 1
        ]), ksizes=[1, 2, 2, 2, 1], strides=[1, 1, 1, 1, 1], padding='SAME'),
    'Fill':
        lambda: raw.Fill(dims=[3], value=_ROW[2]),
    'Identity':
        lambda: raw.Identity(input=X),
    'IdentityN':
        lambda: raw.IdentityN(input=[X, X])[1],
    'MatrixBandPart':
        lambda: raw.MatrixBandPart(input=X, num_lower=1, num_upper=0),
    'MatrixDiag':
        lambda: raw.MatrixDiag(diagonal=X),
    'MatrixDiagPart':
        lambda: raw.MatrixDiagPart(input=X),
    'MatrixDiagPartV2':
        lambda: raw.MatrixDiagPartV2(input=X, k=[-1, 1], padding_value=0.),
    'MatrixDiagPartV3':
        lambda: raw.MatrixDiagPartV3(input=X, k=[-1, 1], padding_value=0.),
    'MatrixDiagV2':
        lambda: raw.MatrixDiagV2(diagonal=X, k=0, num_rows=4, num_cols=4,
                                 padding_value=0.),
    'MatrixDiagV3':
        lambda: raw.MatrixDiagV3(diagonal=X, k=0, num_rows=4, num_cols=4,
                                 padding_value=0.),
    'MatrixSetDiag':
        lambda: raw.MatrixSetDiag(input=X, diagonal=X[1]),
    'MatrixSetDiagV2':
        lambda: raw.MatrixSetDiagV2(input=X, diagonal=X[1], k=0),
    'MatrixSetDiagV3':
        lambda: raw.MatrixSetDiagV3(input=X, diagonal=X[1], k=0),
    'MirrorPad':
        lambda: raw.MirrorPad(input=_SQUARE, paddings=[[1, 2], [0, 3]], mode=
                              'REFLECT'),
    'OneHot':
        lambda: raw.OneHot(indices=[1, 0], depth=3, on_value=_ROW[5], off_value=
                           _ROW[0]),
    'OnesLike':
        lambda: raw.OnesLike(x=X),
    'Pack':
        lambda: raw.Pack(values=[X, X], axis=1),
    'Pad':
        lambda: raw.Pad(input=_SQUARE, paddings=[[1, 2], [0, 3]]),
    'PadV2':
        lambda: raw.PadV2(input=_SQUARE, paddings=[[1, 2], [0, 3]],
                          constant_values=_ROW[5]),
    'PlaceholderWithDefault':
        lambda: raw.PlaceholderWithDefault(input=X, shape=[4, 4, 4]),
    'PreventGradient':
        lambda: raw.PreventGradient(input=X),
    'RaggedFillEmptyRows':
        lambda: raw.RaggedFillEmptyRows(
            value_rowids=tf.constant(
                [0, 2, 2], tf.int64), values=_ROW[:3], nrows=tf.constant(
                    4, tf.int64), default_value=_ROW[5]).output_values,
    'RaggedTensorFromVariant':
        lambda: raw.RaggedTensorFromVariant(
            encoded_ragged=raw.RaggedTensorToVariant(
                rt_nested_splits=[tf.constant([0, 3, 8], tf.int64)],
                rt_dense_values=_ROW, batched_input=False), input_ragged_rank=1,
            output_ragged_rank=1, Tvalues=tf.float32, Tsplits=tf.int64).
        output_dense_values,
    'ResourceStridedSliceAssign':
        lambda: _changed(lambda handle: raw.ResourceStridedSliceAssign(
            ref=handle, begin=[1, 0, 0], end=[3, 4, 4], strides=[1, 1, 1], value
            =X[:2])),
    'Reshape':
        lambda: raw.Reshape(tensor=X, shape=[-1]),
    'Reverse':
        lambda: raw.Reverse(tensor=X, dims=[True, False, True]),
    'ReverseV2':
        lambda: raw.ReverseV2(tensor=X, axis=[1]),
    'Roll':
        lambda: raw.Roll(input=X, shift=[1], axis=[2]),
    'Select':
        lambda: raw.Select(condition=tf.constant([True, False] * 4), x=_ROW, y=
                           _ROW[::-1]),
    'SelectV2':
        lambda: raw.SelectV2(condition=tf.constant([True, False] * 4), t=_ROW, e
                             =_ROW[::-1]),
    'Slice':
        lambda: raw.Slice(input=X, begin=[1, 0, 2], size=[2, 4, 2]),
    'Snapshot':
        lambda: raw.Snapshot(input=X),
    'SpaceToBatch':
        lambda: raw.SpaceToBatch(input=_IMAGE, paddings=[[1, 1], [0, 0]],
                                 block_size=2),
    'SpaceToBatchND':
        lambda: raw.SpaceToBatchND(input=_IMAGE, block_shape=[2, 2], paddings=
                                   [[1, 1], [0, 0]]),
    'SpaceToDepth':
        lambda: raw.SpaceToDepth(input=_IMAGE, block_size=2),
    'SparseConcat':
        lambda: raw.SparseConcat(indices=[_SPARSE] * 2, values=[_SPARSE_VALUES]
                                 * 2, shapes=[tf.constant([4, 4], tf.int64)
                                             ] * 2, concat_dim=0).output_values,
    'SparseFillEmptyRows':
        lambda: raw.SparseFillEmptyRows(
            indices=_SPARSE, values=_SPARSE_VALUES, dense_shape=tf.constant(
                [4, 4], tf.int64), default_value=_ROW[5]).output_values,
    'SparseReorder':
        lambda: raw.SparseReorder(input_indices=_SPARSE[::-1], input_values=
                                  _SPARSE_VALUES, input_shape=tf.constant(
                                      [4, 4], tf.int64)).output_values,
    'SparseSlice':
        lambda: raw.SparseSlice(indices=_SPARSE, values=_SPARSE_VALUES, shape=tf
                                .constant([4, 4], tf.int64), start=tf.constant(
                                    [1, 0], tf.int64), size=tf.constant(
                                        [3, 3], tf.int64)).output_values,
    'SparseSplit':
        lambda: raw.SparseSplit(split_dim=tf.constant(
            0, tf.int64), indices=_SPARSE, values=_SPARSE_VALUES, shape=tf.
                                constant([4, 4], tf.int64), num_split=2).
        output_values[1],
    'Split':
        lambda: raw.Split(axis=1, value=X, num_split=2)[1],
    'SplitV':
        lambda: raw.SplitV(value=X, size_splits=[1, 3], axis=1, num_split=2)[1],
    'Squeeze':
        lambda: raw.Squeeze(input=_IMAGE),
    'StopGradient':
        lambda: raw.StopGradient(input=X),
    'StridedSlice':
        lambda: raw.StridedSlice(input=X, begin=[3, 0, 0], end=[0, 4, 4],
                                 strides=[-1, 2, 1]),
    'StridedSliceGrad':
        lambda: raw.StridedSliceGrad(shape=[8], begin=[1], end=[8], strides=[2],
                                     dy=_ROW[:4]),
    'TensorArrayConcatV3':
        lambda: raw.TensorArrayConcatV3(handle=_array()[0], flow_in=_array()[1],
                                        dtype=tf.float32).value,
    'TensorArrayGatherV3':
        lambda: raw.TensorArrayGatherV3(handle=_array()[0], indices=[2, 1],
                                        flow_in=_array()[1], dtype=tf.float32),
    'TensorArrayReadV3':
        lambda: raw.TensorArrayReadV3(handle=_array()[0], index=2, flow_in=
                                      _array()[1], dtype=tf.float32),
    'TensorListConcat':
        lambda: raw.TensorListConcat(input_handle=_list(), element_shape=[4, 4],
                                     **_LIST).tensor,
    'TensorListConcatLists':
        lambda: raw.TensorListStack(
            input_handle=raw.TensorListConcatLists(input_a=_list(
            ), input_b=_list(), **_LIST), element_shape=[4, 4], **_LIST),
    'TensorListConcatV2':
        lambda: raw.TensorListConcatV2(input_handle=_list(), element_shape=[
            4, 4
        ], leading_dims=tf.constant([], tf.int64), **_LIST).tensor,
    'TensorListFromTensor':
        lambda: raw.TensorListStack(input_handle=_list(), element_shape=[4, 4],
                                    **_LIST),
    'TensorListGather':
        lambda: raw.TensorListGather(input_handle=_list(), indices=[2, 1],
                                     element_shape=[4, 4], **_LIST),
    'TensorListGetItem':
        lambda: raw.TensorListGetItem(input_handle=_list(), index=2,
                                      element_shape=[4, 4], **_LIST),
    'TensorListPopBack':
        lambda: raw.TensorListPopBack(input_handle=_list(), element_shape=
                                      [4, 4], **_LIST).tensor,
    'TensorListPushBack':
        lambda: raw.TensorListPopBack(
            input_handle=raw.TensorListPushBack(input_handle=_list(), tensor=X[
                1]), element_shape=[4, 4], **_LIST).tensor,
    'TensorListScatter':
        lambda: raw.TensorListStack(
            input_handle=raw.TensorListScatter(tensor=X, indices=[
                3, 1, 0, 2
            ], element_shape=[4, 4]), element_shape=[4, 4], **_LIST),
    'TensorListScatterIntoExistingList':
        lambda: raw.TensorListStack(
            input_handle=raw.TensorListScatterIntoExistingList(
                input_handle=_list(), tensor=X[:2], indices=[3, 1]),
            element_shape=[4, 4], **_LIST),
    'TensorListScatterV2':
        lambda: raw.TensorListStack(
            input_handle=raw.TensorListScatterV2(
                tensor=X, indices=[3, 1, 0, 2], element_shape=[4, 4],
                num_elements=4), element_shape=[4, 4], **_LIST),
    'TensorListSetItem':
        lambda: raw.TensorListStack(
            input_handle=raw.TensorListSetItem(input_handle=_list(
            ), index=1, item=X[3]), element_shape=[4, 4], **_LIST),
    'TensorListSplit':
        lambda: raw.TensorListGetItem(
            input_handle=raw.TensorListSplit(
                tensor=X, element_shape=[-1, 4, 4], lengths=tf.constant([
                    1, 3
                ], tf.int64)), index=1, element_shape=[3, 4, 4], **_LIST),
    'TensorListStack':
        lambda: raw.TensorListStack(input_handle=_list(), element_shape=[4, 4],
                                    **_LIST),
    'TensorStridedSliceUpdate':
        lambda: raw.TensorStridedSliceUpdate(input=X, begin=[1, 0, 0], end=[
            3, 4, 4
        ], strides=[1, 1, 1], value=X[:2]),
    'Tile':
        lambda: raw.Tile(input=X, multiples=[2, 1, 3]),
    'Transpose':
        lambda: raw.Transpose(x=X, perm=[2, 0, 1]),
    'Unpack':
        lambda: raw.Unpack(value=X, num=4, axis=1)[2],
    'AssignVariableOp':
        lambda: _changed(lambda handle: raw.AssignVariableOp(
            resource=handle, value=X[::-1])),
    'ReadVariableOp':
        lambda: raw.ReadVariableOp(resource=tf.Variable(X).handle, dtype=tf.
                                   float32),
    'ZerosLike':
        lambda: raw.ZerosLike(x=X),
}

# Functions by op type. Results are integers or booleans.
COUNTS = {
    'DebugNanCount':
        lambda: raw.DebugNanCount(input=X, tensor_name='x:0', debug_urls=[]),
    'Equal':
        lambda: raw.Equal(x=X, y=X),
    'Greater':
        lambda: raw.Greater(x=X, y=X[::-1]),
    'GreaterEqual':
        lambda: raw.GreaterEqual(x=X, y=X[::-1]),
    'IsFinite':
        lambda: raw.IsFinite(x=X),
    'IsInf':
        lambda: raw.IsInf(x=X),
    'IsNan':
        lambda: raw.IsNan(x=X),
    'Less':
        lambda: raw.Less(x=X, y=X[::-1]),
    'LessEqual':
        lambda: raw.LessEqual(x=X, y=X[::-1]),
    'NotEqual':
        lambda: raw.NotEqual(x=X, y=X),
    'Rank':
        lambda: raw.Rank(input=X),
    'Shape':
        lambda: raw.Shape(input=X),
    'ShapeN':
        lambda: raw.ShapeN(input=[X, _ROW])[1],
    'Size':
        lambda: raw.Size(input=X),
    'TensorArraySizeV3':
        lambda: raw.TensorArraySizeV3(handle=_array()[0], flow_in=_array()[1]),
    'TensorListElementShape':
        lambda: raw.TensorListElementShape(input_handle=_list(), shape_type=tf.
                                           int32),
    'TensorListLength':
        lambda: raw.TensorListLength(input_handle=_list()),
    'VariableShape':
        lambda: raw.VariableShape(input=tf.Variable(X).handle),
}

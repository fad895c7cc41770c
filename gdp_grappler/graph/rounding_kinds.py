"""Types of ops that compute the same numbers on CPUs and GPUs, and other types.

A GPU multiplies in TF32, sums in another order than a CPU, and has another
library of logarithms and the like. So a float op that changes from one type of
device to the other changes its results in the last digits, or already in the
third. Most ops that only select, move, count or compare give the same results.

`EXACT` and `ROUNDS` name every type of TensorFlow's registry that has float
kernels on both types of device and is not always tied to its device
(`legality.pins`). A type in neither set counts as rounding. So ops of a new
TensorFlow are safe until somebody has examined them;
`tests/graph/rounding_kinds_test.py` fails if there are such types. In doubt, a
type rounds. So `ROUNDS` has these:

* A single sum, difference or product, although IEEE 754 rounds it alike
  everywhere. A CPU flushes subnormal numbers to zero for all float types
  (tsl/platform/threadpool.cc: `ScopedFlushDenormal`). The kernels that
  TensorFlow generates for GPUs do so for float32 only
  (tensorflow/core/kernels/mlir_generated/build_defs.bzl: `enable_ftz`). A
  product of complex numbers, or a kernel that adds to a variable, fuses
  products and sums (FMA).
* Signs, absolute values, maxima, ReLU and rounding to integers. A CPU changes
  the bits of -x and of |x|, and keeps subnormal numbers. For NaN the two types
  of device differ.
* Selection by size (ArgMax, TopK, pools) and writes to positions given by
  indices, because CPUs and GPUs decide differently between equals.
* Lookups by index (Gather). For an index out of range a CPU raises an error,
  and a GPU gives zeros (tf.gather). A program may rely on the zeros. But a
  lookup may follow a variable that the program has put on the host.
* Normal and other distributions: logarithms and cosines of random bits. Uniform
  numbers are bits with an exponent, and TensorFlow promises the same numbers on
  both types (tf.random.stateless_uniform).

Comparisons count as exact. Subnormal numbers are an accepted exception: one
type of device may take them for zero.
"""

from __future__ import annotations

from typing import Mapping

from gdp_grappler.graph import op_kinds

_Kinds = Mapping[str, frozenset[str]]

# Casts are exact or not, depending on their types; see `legality.rounding`.
CASTS = frozenset(('Cast', '_HostCast'))
# Lookups whose first input is the table.
LOOKUPS = frozenset(('Gather', 'GatherNd', 'GatherV2'))

# From the reason why the numbers are the same to types of ops.
EXACT: _Kinds = {
    'it hands on a value':
        op_kinds.HANDED_ON | op_kinds.CONTROL_FLOW | {
            'CheckPinned', 'Copy', 'CopyHost', 'DebugGradientIdentity',
            'DebugIdentity', 'DeepCopy', 'DestroyTemporaryVariable',
            'IdentityN', 'Snapshot', 'TemporaryVariable', '_ArrayToList',
            '_EagerConst', '_ListToArray'
        },
    'it is a constant, or filled with one':
        frozenset(('Const', 'Empty', 'FakeParam', 'Fill', 'HostConst',
                   'OnesLike', 'ZerosLike')),
    'it gives a tensor another shape or place':
        op_kinds.VIEWS | {
            'BatchMatrixBandPart', 'BatchMatrixDiag', 'BatchMatrixDiagPart',
            'BatchMatrixSetDiag', 'BatchToSpace', 'BatchToSpaceND',
            'BroadcastTo', 'Concat', 'ConcatV2', 'DepthToSpace', 'Diag',
            'DiagPart', 'MatrixBandPart', 'MatrixDiag', 'MatrixDiagPart',
            'MatrixDiagPartV2', 'MatrixDiagPartV3', 'MatrixDiagV2',
            'MatrixDiagV3', 'MatrixSetDiag', 'MatrixSetDiagV2',
            'MatrixSetDiagV3', 'MirrorPad', 'Pack', 'Pad', 'PadV2',
            'ParallelConcat', 'Reverse', 'ReverseV2', 'Roll', 'SpaceToBatch',
            'SpaceToBatchND', 'SpaceToDepth', 'Split', 'SplitV', 'Tile',
            'Transpose', 'Unpack', '_ParallelConcatStart',
            '_ParallelConcatUpdate'
        },
    'it chooses elements':
        frozenset(
            ('DynamicStitch', 'ExtractImagePatches', 'ExtractVolumePatches',
             'OneHot', 'ResourceStridedSliceAssign', 'Select', 'SelectV2',
             'Slice', 'StridedSlice', 'StridedSliceAssign', 'StridedSliceGrad',
             'TensorStridedSliceUpdate')),
    'it rearranges a list of tensors':
        op_kinds.LIST_MAKERS | op_kinds.LIST_CHANGES | {
            'StackPop', 'StackPopV2', 'StackPush', 'StackPushV2', 'TensorArray',
            'TensorArrayConcat', 'TensorArrayConcatV2', 'TensorArrayConcatV3',
            'TensorArrayGather', 'TensorArrayGatherV2', 'TensorArrayGatherV3',
            'TensorArrayGrad', 'TensorArrayGradV2', 'TensorArrayGradV3',
            'TensorArrayGradWithShape', 'TensorArrayPack', 'TensorArrayRead',
            'TensorArrayReadV2', 'TensorArrayReadV3', 'TensorArrayV2',
            'TensorArrayV3', 'TensorListConcat', 'TensorListConcatLists',
            'TensorListConcatV2', 'TensorListGather', 'TensorListGetItem',
            'TensorListPopBack', 'TensorListPushBackBatch', 'TensorListScatter',
            'TensorListScatterIntoExistingList', 'TensorListScatterV2',
            'TensorListSplit', 'TensorListStack'
        },
    'it holds, reads or sets a variable':
        op_kinds.VARIABLES | {
            'Assign', 'AssignVariableOp', 'ReadVariableOp', '_ReadVariablesOp',
            '_VarHandlesOp'
        },
    'it looks at a shape or a size':
        frozenset(
            ('IsVariableInitialized', 'Rank', 'Shape', 'ShapeN', 'Size',
             'TensorArraySize', 'TensorArraySizeV2', 'TensorArraySizeV3',
             'TensorListElementShape', 'TensorListLength', 'VariableShape')),
    'it compares':
        frozenset(
            ('DebugNanCount', 'Equal', 'Greater', 'GreaterEqual', 'IsFinite',
             'IsInf', 'IsNan', 'Less', 'LessEqual', 'NotEqual')),
    'it draws bits':
        frozenset(('RandomUniform', 'StatelessRandomUniform',
                   'StatelessRandomUniformV2')),
    'it rearranges the entries of a sparse or ragged tensor':
        frozenset(
            ('DeserializeSparse', 'RaggedFillEmptyRows',
             'RaggedTensorFromVariant', 'SparseConcat', 'SparseFillEmptyRows',
             'SparseReorder', 'SparseSlice', 'SparseSplit')),
}

# From the reason why the numbers differ to types of ops.
ROUNDS: _Kinds = {
    'it computes each element from others':
        frozenset(
            ('Abs', 'Acos', 'Acosh', 'Add', 'AddN', 'AddV2', 'Angle',
             'ApproximateEqual', 'Asin', 'Asinh', 'Atan', 'Atan2', 'Atanh',
             'BesselI0', 'BesselI0e', 'BesselI1', 'BesselI1e', 'BesselJ0',
             'BesselJ1', 'BesselK0', 'BesselK0e', 'BesselK1', 'BesselK1e',
             'BesselY0', 'BesselY1', 'Betainc', 'Ceil', 'ClipByValue',
             'Complex', 'ComplexAbs', 'Conj', 'ConjugateTranspose', 'Cos',
             'Cosh', 'Cross', 'Dawsn', 'Digamma', 'Div', 'DivNoNan', 'Elu',
             'EluGrad', 'Erf', 'Erfc', 'Erfinv', 'Exp', 'Expint', 'Expm1',
             'Floor', 'FloorDiv', 'FloorMod', 'FresnelCos', 'FresnelSin',
             'Igamma', 'IgammaGradA', 'Igammac', 'Imag', 'Inv', 'InvGrad',
             'LeakyRelu', 'LeakyReluGrad', 'Lgamma', 'LinSpace', 'Log', 'Log1p',
             'Maximum', 'Minimum', 'Mul', 'MulNoNan', 'Ndtri', 'Neg',
             'NextAfter', 'Polygamma', 'Pow', 'Range', 'Real', 'RealDiv',
             'Reciprocal', 'ReciprocalGrad', 'Relu', 'Relu6', 'Relu6Grad',
             'ReluGrad', 'Rint', 'Round', 'Rsqrt', 'RsqrtGrad', 'Selu',
             'SeluGrad', 'Sigmoid', 'SigmoidGrad', 'Sign', 'Sin', 'Sinh',
             'Softplus', 'SoftplusGrad', 'Softsign', 'SoftsignGrad', 'Spence',
             'Sqrt', 'SqrtGrad', 'Square', 'SquaredDifference', 'Sub', 'Tan',
             'Tanh', 'TanhGrad', 'TruncateDiv', 'Xdivy', 'Xlog1py', 'Xlogy',
             'Zeta')),
    'it sums up, or reduces in another way':
        frozenset(('BiasAdd', 'BiasAddGrad', 'BiasAddV1', 'Bincount', 'Cumprod',
                   'Cumsum', 'CumulativeLogsumexp', 'DebugNumericSummary',
                   'DebugNumericSummaryV2', 'DenseBincount', 'EuclideanNorm',
                   'L2Loss', 'Max', 'Mean', 'Min', 'MirrorPadGrad', 'Prod',
                   'RaggedFillEmptyRowsGrad', 'SegmentMax', 'SegmentMean',
                   'SegmentMin', 'SegmentProd', 'SegmentSum',
                   'SparseFillEmptyRowsGrad', 'SparseSegmentMean',
                   'SparseSegmentMeanGrad', 'SparseSegmentMeanGradV2',
                   'SparseSegmentMeanWithNumSegments', 'SparseSegmentSqrtN',
                   'SparseSegmentSqrtNGrad', 'SparseSegmentSqrtNGradV2',
                   'SparseSegmentSqrtNWithNumSegments', 'SparseSegmentSum',
                   'SparseSegmentSumGrad', 'SparseSegmentSumGradV2',
                   'SparseSegmentSumWithNumSegments', 'SparseSliceGrad', 'Sum',
                   'TileGrad', 'UnsortedSegmentMax', 'UnsortedSegmentMin',
                   'UnsortedSegmentProd', 'UnsortedSegmentSum')),
    'it multiplies matrices':
        frozenset(('BatchMatMul', 'BatchMatMulV2', 'BatchMatMulV3', 'Einsum',
                   'MatMul', 'SparseTensorDenseMatMul', 'TridiagonalMatMul',
                   '_FusedMatMul')),
    'it is a convolution':
        frozenset(
            ('Conv', 'Conv2D', 'Conv2DBackpropFilter', 'Conv2DBackpropInput',
             'Conv3D', 'Conv3DBackpropFilter', 'Conv3DBackpropFilterV2',
             'Conv3DBackpropInput', 'Conv3DBackpropInputV2',
             'DepthwiseConv2dNative', 'DepthwiseConv2dNativeBackpropFilter',
             'DepthwiseConv2dNativeBackpropInput', 'Dilation2D',
             'Dilation2DBackpropFilter', 'Dilation2DBackpropInput',
             '_FusedConv2D')),
    'it pools':
        frozenset(
            ('AvgPool', 'AvgPool3D', 'AvgPool3DGrad', 'AvgPoolGrad', 'MaxPool',
             'MaxPool3D', 'MaxPool3DGrad', 'MaxPool3DGradGrad', 'MaxPoolGrad',
             'MaxPoolGradGrad', 'MaxPoolGradGradV2', 'MaxPoolGradV2',
             'MaxPoolGradWithArgmax', 'MaxPoolV2', 'MaxPoolWithArgmax')),
    'it normalizes':
        frozenset(('BatchNormWithGlobalNormalization',
                   'BatchNormWithGlobalNormalizationGrad', 'FusedBatchNorm',
                   'FusedBatchNormGrad', 'FusedBatchNormGradV2',
                   'FusedBatchNormGradV3', 'FusedBatchNormV2',
                   'FusedBatchNormV3', 'LRN', 'LRNGrad', '_FusedBatchNormEx')),
    'it is a softmax':
        frozenset(('LogSoftmax', 'Softmax', 'SoftmaxCrossEntropyWithLogits',
                   'SparseSoftmaxCrossEntropyWithLogits')),
    'it is a cell of a recurrent layer':
        frozenset(('BlockLSTM', 'BlockLSTMGrad', 'BlockLSTMGradV2',
                   'BlockLSTMV2', 'GRUBlockCell', 'GRUBlockCellGrad',
                   'LSTMBlockCell', 'LSTMBlockCellGrad')),
    'it updates a variable':
        frozenset(
            ('ApplyAdaMax', 'ApplyAdadelta', 'ApplyAdagrad', 'ApplyAdagradV2',
             'ApplyAdam', 'ApplyAddSign', 'ApplyCenteredRMSProp', 'ApplyFtrl',
             'ApplyFtrlV2', 'ApplyGradientDescent', 'ApplyMomentum',
             'ApplyPowerSign', 'ApplyProximalAdagrad', 'ApplyRMSProp',
             'AssignAdd', 'AssignAddVariableOp', 'AssignSub',
             'AssignSubVariableOp', 'ResourceApplyAdaMax',
             'ResourceApplyAdadelta', 'ResourceApplyAdagrad',
             'ResourceApplyAdagradV2', 'ResourceApplyAdam',
             'ResourceApplyAdamWithAmsgrad', 'ResourceApplyAddSign',
             'ResourceApplyCenteredRMSProp', 'ResourceApplyFtrl',
             'ResourceApplyFtrlV2', 'ResourceApplyGradientDescent',
             'ResourceApplyKerasMomentum', 'ResourceApplyMomentum',
             'ResourceApplyPowerSign', 'ResourceApplyProximalAdagrad',
             'ResourceApplyRMSProp', 'ResourceSparseApplyAdadelta',
             'ResourceSparseApplyAdagrad', 'ResourceSparseApplyAdagradV2',
             'ResourceSparseApplyFtrl', 'ResourceSparseApplyFtrlV2',
             'ResourceSparseApplyKerasMomentum',
             'ResourceSparseApplyProximalAdagrad', 'SparseApplyAdadelta',
             'SparseApplyAdagrad', 'SparseApplyAdagradV2', 'SparseApplyFtrl',
             'SparseApplyFtrlV2', 'SparseApplyProximalAdagrad')),
    'it adds up, or overwrites, where indices are equal':
        frozenset(
            ('InplaceAdd', 'InplaceSub', 'InplaceUpdate',
             'ParallelDynamicStitch', 'ResourceScatterAdd',
             'ResourceScatterDiv', 'ResourceScatterMax', 'ResourceScatterMin',
             'ResourceScatterMul', 'ResourceScatterNdAdd',
             'ResourceScatterNdMax', 'ResourceScatterNdMin',
             'ResourceScatterNdSub', 'ResourceScatterNdUpdate',
             'ResourceScatterSub', 'ResourceScatterUpdate', 'ScatterAdd',
             'ScatterDiv', 'ScatterMax', 'ScatterMin', 'ScatterMul',
             'ScatterNd', 'ScatterNdAdd', 'ScatterNdMax', 'ScatterNdMin',
             'ScatterNdNonAliasingAdd', 'ScatterNdSub', 'ScatterNdUpdate',
             'ScatterSub', 'ScatterUpdate', 'SparseToDense', 'TensorScatterAdd',
             'TensorScatterMax', 'TensorScatterMin', 'TensorScatterSub',
             'TensorScatterUpdate')),
    'it adds up what is written to one place of an array of tensors':
        frozenset(
            ('TensorArrayScatter', 'TensorArrayScatterV2',
             'TensorArrayScatterV3', 'TensorArraySplit', 'TensorArraySplitV2',
             'TensorArraySplitV3', 'TensorArrayUnpack', 'TensorArrayWrite',
             'TensorArrayWriteV2', 'TensorArrayWriteV3')),
    'it looks elements up by index':
        frozenset(('DynamicPartition', 'Gather', 'GatherNd', 'GatherV2',
                   'ResourceGather', 'ResourceGatherNd', 'ReverseSequence')),
    'it chooses by size, and devices choose differently between equals':
        frozenset(('ApproxTopK', 'ArgMax', 'ArgMin', 'Bucketize',
                   'HistogramFixedWidth', 'InTopKV2', 'LowerBound',
                   'NonMaxSuppressionV2', 'NonMaxSuppressionV3',
                   'NonMaxSuppressionV4', 'TopK', 'TopKV2', 'Unique',
                   'UniqueWithCounts', 'UpperBound', 'Where')),
    'it resamples an image, or changes its colors':
        frozenset(
            ('AdjustContrast', 'AdjustContrastv2', 'AdjustHue',
             'AdjustSaturation', 'CropAndResize', 'CropAndResizeGradBoxes',
             'CropAndResizeGradImage', 'HSVToRGB', 'ImageProjectiveTransformV2',
             'ImageProjectiveTransformV3', 'RGBToHSV', 'ResizeBilinear',
             'ResizeBilinearGrad', 'ResizeNearestNeighbor',
             'ResizeNearestNeighborGrad')),
    'it decomposes or solves':
        frozenset(('BatchMatrixTriangularSolve', 'BatchSvd', 'Cholesky',
                   'LogMatrixDeterminant', 'Lu', 'MatrixDeterminant',
                   'MatrixInverse', 'MatrixSolve', 'MatrixTriangularSolve',
                   'Qr', 'SelfAdjointEigV2', 'Svd', 'TridiagonalSolve')),
    'it is a Fourier transform':
        frozenset(('FFT', 'FFT2D', 'FFT3D', 'IFFT', 'IFFT2D', 'IFFT3D', 'IRFFT',
                   'IRFFT2D', 'IRFFT3D', 'RFFT', 'RFFT2D', 'RFFT3D')),
    'it computes a distribution from random bits':
        frozenset(('Multinomial', 'ParameterizedTruncatedNormal',
                   'RandomGammaGrad', 'RandomStandardNormal',
                   'StatefulStandardNormalV2', 'StatefulTruncatedNormal',
                   'StatefulUniform', 'StatefulUniformFullInt',
                   'StatefulUniformInt', 'StatelessMultinomial',
                   'StatelessRandomGammaV2', 'StatelessRandomGammaV3',
                   'StatelessRandomNormal', 'StatelessRandomNormalV2',
                   'StatelessTruncatedNormal', 'StatelessTruncatedNormalV2',
                   'StochasticCastToInt', 'TruncatedNormal')),
    'it rounds to fewer bits':
        CASTS | {
            'FakeQuantWithMinMaxArgs', 'FakeQuantWithMinMaxArgsGradient',
            'FakeQuantWithMinMaxVars', 'FakeQuantWithMinMaxVarsGradient',
            'FakeQuantWithMinMaxVarsPerChannel',
            'FakeQuantWithMinMaxVarsPerChannelGradient',
            'QuantizeAndDequantize', 'QuantizeAndDequantizeV2',
            'QuantizeAndDequantizeV3', 'QuantizeAndDequantizeV4',
            'QuantizeAndDequantizeV4Grad'
        },
    'it has a sparse matrix format that differs between CPUs and GPUs':
        frozenset(('CSRSparseMatrixComponents', 'CSRSparseMatrixToDense',
                   'CSRSparseMatrixToSparseTensor', 'DenseToCSRSparseMatrix',
                   'SparseMatrixMatMul', 'SparseMatrixNNZ',
                   'SparseMatrixSparseMatMul', 'SparseMatrixTranspose',
                   'SparseTensorToCSRSparseMatrix')),
}

# Types that count as rounding for integers as well: their kernels compute with
# floats, update the state of their generator in a way that depends on the
# device, or choose differently between equals. Or CPUs check what GPUs do not:
# for an index out of range, a division by zero or a negative exponent, a CPU
# raises an error, and a GPU leaves the element out or gives any number.
ALSO_INTEGERS = frozenset(
    ('Bincount', 'DenseBincount', 'Div', 'FloorDiv', 'FloorMod',
     'HistogramFixedWidth', 'LinSpace', 'Pow', 'ResizeNearestNeighbor',
     'ResizeNearestNeighborGrad', 'StatefulUniformFullInt',
     'StatefulUniformInt', 'TopK', 'TopKV2', 'TruncateDiv',
     'UnsortedSegmentMax', 'UnsortedSegmentMin', 'UnsortedSegmentProd',
     'UnsortedSegmentSum')).union(
         ROUNDS['it adds up, or overwrites, where indices are equal'],
         ROUNDS['it looks elements up by index'])

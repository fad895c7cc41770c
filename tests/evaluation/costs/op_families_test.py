import pytest

from gdp_grappler.evaluation.costs import op_families

_EXAMPLES = {
    'matmul': ('MatMul', '_FusedMatMul', '_MklMatMul', 'SparseMatMul',
               'SparseTensorDenseMatMul'),
    'batch_matmul':
        ('BatchMatMulV2', '_MklBatchMatMul', 'Einsum', 'MatrixTriangularSolve'),
    'decomposition':
        ('Cholesky', 'MatrixInverse', 'MatrixSolveLs', 'Lu', 'Qr', 'Svd', 'Eig',
         'SelfAdjointEigV2', 'MatrixSquareRoot', 'LogMatrixDeterminant'),
    'call': ('PartitionedCall', 'StatefulPartitionedCall', 'XlaLaunch', 'While',
             'StatelessIf', 'Case', '__inference_step_12'), 'convolution':
                 ('Conv2D', 'Conv3D', '_FusedConv2D', '_MklConv2D'),
    'convolution_gradient':
        ('Conv2DBackpropFilter', 'Conv2DBackpropInput', 'Conv3DBackpropFilterV2'
        ), 'depthwise':
            ('DepthwiseConv2dNative', 'DepthwiseConv2dNativeBackpropFilter',
             '_FusedDepthwiseConv2dNative'), 'recurrent':
                 ('CudnnRNN', 'LSTMBlockCell', 'BlockLSTMV2', 'GRUBlockCell'),
    'elementwise':
        ('AddV2', 'Relu', 'ResourceApplyAdam', 'NoSuchOp', ''), 'movement':
            ('ConcatV2', 'StridedSlice', 'Pad', 'Cast', 'AssignVariableOp',
             'TensorListPushBack', 'TensorArrayReadV3', 'OneHot'), 'transpose':
                 ('Transpose', 'ConjugateTranspose', 'ReverseSequence',
                  'SpaceToBatchND', 'BatchToSpaceND'), 'reduction':
                      ('Sum', 'ArgMax', 'BiasAddGrad', 'L2Loss', 'Cumsum'),
    'normalization': ('FusedBatchNormV3', 'FusedBatchNormGradV3', 'Softmax',
                      'SparseSoftmaxCrossEntropyWithLogits', 'LogSoftmax'),
    'pooling': ('MaxPool', 'AvgPoolGrad', 'ResizeBilinear'), 'scalar':
        ('CTCLoss', 'CTCLossV2', 'UpperBound', 'LowerBound', 'Dilation2D',
         'Dilation2DBackpropFilter', 'TridiagonalSolve', 'ResizeBilinearGrad'),
    'gather':
        ('GatherV2', 'ResourceGather', 'DynamicStitch', 'Where'), 'scatter':
            ('ScatterNd', 'ResourceScatterAdd', 'UnsortedSegmentSum',
             'StridedSliceGrad', 'ResourceSparseApplyAdagrad'), 'random':
                 ('RandomUniform', 'StatelessRandomUniformV2', 'TruncatedNormal'
                 ), 'sort': ('TopKV2', 'UniqueV2', 'NonMaxSuppressionV4',
                             'CombinedNonMaxSuppression')
}


def test_every_family_has_examples():
  assert set(_EXAMPLES) == set(op_families.FAMILIES)


@pytest.mark.parametrize('name', _EXAMPLES)
def test_family(name):
  for op_type in _EXAMPLES[name]:
    assert op_families.family(op_type).name == name, op_type


@pytest.mark.parametrize('op_type, times', [('ScatterNd', 1),
                                            ('UnsortedSegmentSum', 1),
                                            ('SparseSegmentMeanGradV2', 1),
                                            ('TensorScatterUpdate', 2),
                                            ('StridedSliceGrad', 2),
                                            ('ScatterNdUpdate', 0),
                                            ('ResourceScatterAdd', 0),
                                            ('SparseSegmentSum', 0),
                                            ('AddV2', 0)])
def test_scatters_that_stream_their_output_first(op_type, times):
  assert op_families.streamed_outputs(op_type) == times


def test_a_selection_by_a_mask_does_not_sort():
  """A selection read its mask as often as a radix sort reads its keys."""
  assert op_families.family('Where') == op_families.FAMILIES['gather']


def test_suppression_of_all_classes_is_like_that_of_one():
  """The suppression of all classes at once counted as an elementwise op."""
  assert (op_families.family('CombinedNonMaxSuppression') == op_families.family(
      'NonMaxSuppressionV4'))


def test_a_gradient_of_a_slice_is_no_slice():
  assert op_families.family('StridedSlice') != op_families.family(
      'StridedSliceGrad')


def test_shares_of_both_kinds_of_devices():
  family = op_families.Family('x', .1, .2, .3, .4, 5)
  assert family.shares('GPU') == (.1, .2) and family.shares('CPU') == (.3, .4)

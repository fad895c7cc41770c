"""Kinds of ops, and the share of a device's rates that each kind reaches.

The module is one table, with the source of each figure. Shares of arithmetic
are relative to `Device.peak_flops * Device.efficiency`, the rate of large
matrix products on the device. Shares of bandwidth are relative to
`Device.bandwidth_bytes_per_s`, the bandwidth in the data sheet. The shares are
typical values of a kind. For a single op they may be wrong by a factor of two;
`gdp profile` measures the op instead.

Sources:

* [Chetlur] Chetlur et al., "cuDNN: Efficient Primitives for Deep Learning",
  arXiv 1410.0759, 2014: convolutions as lowered matrix products reach up to
  96 % of the rate of the products themselves; less for gradients and small
  batches (section 4). Convolutions of 3 x 3 by Winograd's algorithm are faster
  on cards without TF32 (`cluster.type_rates`).
* [DeepBench] Baidu Research, "DeepBench", 2016 to 2018: training convolutions
  on Pascal and Volta; the gradient of the filter is the slowest of the three.
* [Jia] Jia et al., "Dissecting the NVIDIA Volta GPU Architecture via
  Microbenchmarking", arXiv 1804.06826, 2018: attainable bandwidth of K80, P100
  and V100 is 70 to 83 % of the theoretical.
* [STREAM] McCalpin, "STREAM: Sustainable Memory Bandwidth in High Performance
  Computers", 1991 onwards: 75 to 85 % on servers.
* [Transpose] Ruetsch and Micikevicius, "Optimizing Matrix Transpose in CUDA",
  NVIDIA 2009: tiled transposes reach about 90 % of a copy.
* [Harris] Harris, "Optimizing Parallel Reduction in CUDA", NVIDIA 2007: a
  tree reduction reaches about 70 % of the bandwidth, in two passes.
* [Spatter] Lavin et al., "Evaluating Gather and Scatter Performance on CPUs
  and GPUs", MEMSYS 2020: a quarter to a third of STREAM without reuse.
* [Depthwise] Zhang et al., "High Performance Depthwise and Pointwise
  Convolutions on Mobile Devices", AAAI 2020: one product per loaded input, so
  bound by memory; about a tenth of the arithmetic of a dense convolution.
* [Batched] Abdelfattah et al., "Performance, Design, and Autotuning of Batched
  GEMM for GPUs", ISC 2016: small matrices in batches reach half to two thirds
  of one large product.
* [Appleyard] Appleyard et al., "Optimizing Performance of Recurrent Neural
  Networks on GPUs", arXiv 1604.01946, 2016: half of the rate of large products
  after all optimisations.
* [Satish] Satish et al., "Designing Efficient Sorting Algorithms for Manycore
  GPUs", IPDPS 2009: a radix sort of 32-bit keys reads and writes them once per
  digit of 4 bits, thus 16 passes over the data.
* [Measured] `gdp profile` of one op of each kind on megabytes of data, on one
  core of an AMD EPYC of 2024, TensorFlow 2.21: arithmetic relative to the
  product of matrices of 512 x 512, bandwidth relative to 20 GB/s, which is
  what one such core gets from memory.
* [Little] Little's law: a memory reaches its bandwidth only if bandwidth times
  latency bytes are in flight. Kernels in which each thread loads a number,
  computes and stores it keep only a few kilobytes per multiprocessor in flight,
  so that they do not saturate the newest memories.
* [Hockney] Hockney and Jesshope, "Parallel Computers", 1981: a pipeline of rate
  r reaches half of this rate at the work n_1/2 = r s, where s are the seconds
  to fill and to drain it. Products load their first tiles before they multiply,
  and store the last tiles when the multipliers are idle.
* [H100] Fitted to steps of a CNN, an LSTM and ResNet50 on one H100, TensorFlow
  2.21 (docs/simulator.md, "Keras on one card"); a Transformer is held out.
  Slower elementwise kernels or slower convolutions explain the step of ResNet50
  equally well. The pair of rates that also fits an MLP was taken.
* [Fused multiply-add] Elementwise kernels do not use this instruction, so they
  reach at most half of the peak. Exponentials and divisions take about four
  times as long as an addition.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import re

# [H100] The host's work for an op of TensorFlow beyond a bare launch (shapes,
# outputs, the choice of the kernel), in units of a bare launch.
_OP_WORK = 1.2
# [H100] The same for an op that uses cuDNN: the host looks up the plan of the
# algorithm, describes it and runs it.
_CUDNN_WORK = 14.
# [H100], [Little] Largest traffic of kernels that do not load in advance.
_PLAIN_BYTES_PER_S = 2.2e12
# [H100] Convolutions with channels first: cuDNN uses the instructions of the
# A100, and later cards run these instructions hardly faster.
_CONVOLUTION_FLOPS_PER_S = 70e12
# [Hockney]: TensorFlow's smallest products take 5 to 8 us on any card.
_FILL_S = 4e-6


@dataclasses.dataclass(frozen=True)
class Family:
  """A kind of op.

  Attributes:
    name: Name of the family.
    gpu_compute: Share of the dense rate that the family reaches on a GPU.
    gpu_bandwidth: Share of the memory's bandwidth that it reaches on a GPU.
    cpu_compute: Share of the dense rate that it reaches on a CPU.
    cpu_bandwidth: Share of the memory's bandwidth that it reaches on a CPU.
    kernels: Number of kernels that an op launches on a GPU in each round.
    most_bytes_per_s: Largest traffic on any GPU.
    most_flops_per_s: Largest arithmetic rate on any GPU. For float16 and
      bfloat16 it is at most twice as large.
    fill_s: Seconds in which a GPU's multipliers are idle before the first tiles
      and after the last tiles.
    host_work: Seconds of the host on a GPU beyond a bare launch, as a multiple
      of the seconds of a bare launch.
    by_type: Whether the arithmetic rate depends on the type of the elements
      (`cluster.type_rates`).
  """

  name: str
  gpu_compute: float
  gpu_bandwidth: float
  cpu_compute: float
  cpu_bandwidth: float
  kernels: int
  most_bytes_per_s: float = _PLAIN_BYTES_PER_S
  most_flops_per_s: float = math.inf
  fill_s: float = 0.
  host_work: float = _OP_WORK
  by_type: bool = False

  def shares(self, device_type: str) -> tuple[float, float]:
    """Shares of arithmetic and bandwidth on 'GPU' or 'CPU'."""
    return ((self.gpu_compute, self.gpu_bandwidth) if device_type == 'GPU' else
            (self.cpu_compute, self.cpu_bandwidth))


# Products have no limit of traffic, because they load tiles in advance.
_dense = functools.partial(Family, cpu_bandwidth=.8, most_bytes_per_s=math.inf,
                           fill_s=_FILL_S, by_type=True)
_convolution = functools.partial(_dense, gpu_bandwidth=.27,
                                 most_flops_per_s=_CONVOLUTION_FLOPS_PER_S,
                                 host_work=_CUDNN_WORK)

# Name, GPU arithmetic and bandwidth, CPU arithmetic and bandwidth, kernels.
FAMILIES = {
    family.name: family for family in (
        # By definition; [Jia], [STREAM].
        _dense('matmul', 1., .8, 1., kernels=1),
        # [Batched]; [Measured] .68.
        _dense('batch_matmul', .6, .8, .7, kernels=1),
        # [Chetlur]. The multipliers need channels last, the graph has channels
        # first. So TensorFlow transposes the filter, and cuDNN the input and
        # the output, by a kernel each. This triples the traffic of input and
        # output. [Measured] .42, with the unfolding of the input.
        _convolution('convolution', .8, cpu_compute=.4, kernels=4),
        # [DeepBench], [Chetlur]; as before, and a further kernel sums the parts
        # of a split product. [Measured] .41 for the input, .31 for the filter.
        _convolution('convolution_gradient', .65, cpu_compute=.35, kernels=5),
        # [Depthwise]; [Measured] .23.
        Family('depthwise', .1, .5, .2, .5, 1),
        # [Appleyard]. [H100] six kernels for each time step.
        Family('recurrent', .5, .8, .5, .8, 6, host_work=_CUDNN_WORK,
               by_type=True),
        # Calls of functions, compiled by XLA or not. Products and convolutions
        # do most of the arithmetic of large ones: [Chetlur]; [Jia], [STREAM].
        Family('call', .8, .8, .8, .8, 1, by_type=True),
        # [Measured] .04 to .2 for Cholesky and Lu, .1 to .4 for inverses and
        # Qr, .01 for Eig. Panels of columns come one after the other, so GPUs
        # are assumed to reach less.
        Family('decomposition', .05, .8, .15, .8, 10, by_type=True),
        # [Fused multiply-add]; [Jia], [STREAM].
        Family('elementwise', .25, .8, .25, .8, 1),
        # On a CPU, loops compute one number after the other, without vector
        # instructions: [Measured] .011 to .045. On a GPU, one thread computes
        # each output. The traffic is taken from pooling.
        Family('scalar', .25, .5, .02, .4, 1),
        # Ops that only copy: [Jia], [STREAM].
        Family('movement', .25, .8, .25, .8, 1),
        # [Transpose] times [Jia]; [Measured] 7 GB/s, because strided reads use
        # a part of each cache line.
        Family('transpose', .25, .7, .25, .3, 1),
        # [Harris]; [Measured] 80 GB/s along rows (from caches), 3 across
        # them.
        Family('reduction', .25, .6, .25, .4, 2),
        # A reduction and ops on its result: maximum, sum, quotient.
        Family('normalization', .25, .5, .25, .4, 3),
        # Each window is read several times, from caches at best.
        Family('pooling', .25, .5, .25, .4, 1, host_work=_CUDNN_WORK),
        # [Spatter]; a scatter first clears or copies its output, hence two
        # kernels (see `streamed_outputs`). [Measured] 6 GB/s for sums by
        # segment.
        Family('gather', .25, .3, .25, .3, 1),
        Family('scatter', .25, .25, .25, .25, 2),
        # Philox: some 60 integer operations for four numbers. [Measured]
        # 1 GB/s.
        Family('random', .1, .4, .05, .05, 1),
        # [Satish]: 16 passes at [Jia]; a kernel for each digit. [Measured]
        # 1 GB/s.
        Family('sort', .05, .05, .05, .05, 8))
}

# The first match wins. A type without a match is 'elementwise'.
_PATTERNS = tuple((name, re.compile(pattern)) for name, pattern in (
    ('call', r'(Stateful)?PartitionedCall|XlaLaunch|(Stateless)?(While|If|Case)'
     r'|__(inference|forward|backward)_.*'),
    ('depthwise', r'_?(Fused)?DepthwiseConv.*'),
    ('convolution_gradient', r'Conv[23]DBackprop.*'),
    ('convolution', r'(_?Fused)?_?(Mkl|OneDnn)?Conv([23]D)?|_FusedConv[23]D'
     r'|_?FusedConv2DBiasActivation'),
    ('batch_matmul', r'_?(Mkl|Fused)?BatchMatMul.*|Einsum|XlaEinsum'
     r'|MatrixTriangular.*'),
    ('decomposition', r'Cholesky.*|Matrix(Inverse|Solve|SquareRoot|Logarithm).*'
     r'|(Log)?MatrixDeterminant|Lu|Qr|Svd|(SelfAdjoint)?Eig(V2)?'),
    ('matmul', r'_?(Mkl|Fused|Sparse|Quantized)*MatMul.*'
     r'|SparseTensorDenseMatMul|SparseMatrixMatMul'),
    ('recurrent', r'CudnnRNN.*|(LSTM|GRU)Block.*|BlockLSTM.*'),
    ('normalization', r'_?FusedBatchNorm.*|.*Softmax.*|LRN(Grad)?'
     r'|_?(Mkl)?LayerNorm.*|InTopK.*'),
    ('reduction', r'Sum|Mean|Max|Min|Prod|All|Any|Arg(Max|Min)|BiasAddGrad'
     r'|L2Loss|Cum(sum|prod)|EuclideanNorm|Bincount'
     r'|ClipByValueGrad|_?GlobalNorm.*'),
    ('scalar', r'CTCLoss(V2)?|(Low|Upp)erBound|Dilation2D.*|TridiagonalSolve'
     r'|Resize(Bilinear|Bicubic)Grad'),
    ('pooling', r'(Max|Avg)Pool.*|Fractional.*Pool.*|Resize.*'),
    ('transpose', r'(Conjugate)?Transpose|Reverse(V2|Sequence)?|DepthToSpace'
     r'|SpaceTo(Depth|Batch).*|BatchToSpace.*|ExtractImage.*'),
    ('sort', r'TopK(V2)?|ApproxTopK|Sort.*|Unique.*|.*NonMaxSuppression.*'),
    ('gather', r'(Resource)?Gather(V2|Nd)?|DynamicPartition|Dynamic.*Stitch'
     r'|ParallelDynamicStitch|BooleanMask|Where'),
    ('scatter', r'(Resource|Tensor)?Scatter.*|.*Segment.*|ResourceSparse.*'
     r'|SparseApply.*|SparseToDense|StridedSliceGrad'),
    ('random', r'(Stateless)?(Random|Truncated|Parameterized|Multinomial).*'),
    ('movement', r'Concat(V2)?|Split(V)?|Slice|StridedSlice|Pad(V2)?|MirrorPad'
     r'|Tile|Pack|Unpack|Fill|ZerosLike|OnesLike|BroadcastTo|Copy'
     r'|DeepCopy|Tensor(List|Array).*|Assign(VariableOp)?|Cast'
     r'|Snapshot|ParallelConcat|OneHot'),
))

# Scatters that first clear their output, and those that first copy an input to
# it. Other scatters write into a variable. The gradient of a slice copies whole
# rows behind the clearing, so all of its traffic streams.
_CLEARING = re.compile(r'ScatterNd|SparseToDense|(Unsorted)?Segment.*'
                       r'|SparseSegment.*Grad(V2)?')
_COPYING = re.compile(
    r'TensorScatter.*|ScatterNdNonAliasingAdd|StridedSliceGrad')


def family(op_type: str) -> Family:
  """The kind that an op type belongs to."""
  return next((FAMILIES[name]
               for name, pattern in _PATTERNS if pattern.fullmatch(op_type)),
              FAMILIES['elementwise'])


def streamed_outputs(op_type: str) -> int:
  """How often a GPU reads or writes all of the output before it scatters.

  A kernel of its own does this, as fast as ops that only copy.
  """
  if _COPYING.fullmatch(op_type):
    return 2
  return int(bool(_CLEARING.fullmatch(op_type)))

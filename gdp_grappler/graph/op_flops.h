// FLOPs of ops for which Grappler's estimator has no rule, or a wrong one.

#ifndef GDP_GRAPPLER_GRAPH_OP_FLOPS_H_
#define GDP_GRAPPLER_GRAPH_OP_FLOPS_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <unordered_map>

#include "gdp_grappler/graph/matrix_flops.h"
#include "gdp_grappler/graph/shape_sizes.h"
#include "tensorflow/core/framework/op_def.pb.h"
#include "tensorflow/core/framework/tensor_shape.pb.h"
#include "tensorflow/core/grappler/costs/op_performance_data.pb.h"

namespace tensorflow {
namespace grappler {

// Returns an op that the estimator knows and that has the same FLOPs; null if
// there is none. If the remapper fuses a bias or an activation into a product
// or convolution, the first two inputs and the attributes stay the same. The
// FLOPs of the bias and of the activation are negligible.
inline const char* Counterpart(const std::string& op) {
  static const auto* const known =
      new std::unordered_map<std::string, const char*>{
          {"_FusedMatMul", "MatMul"},
          {"_FusedConv2D", "Conv2D"},
          {"_FusedDepthwiseConv2dNative", "DepthwiseConv2dNative"},
          {"_MklFusedBatchMatMulV2", "BatchMatMulV2"},
          {"BatchMatMulV3", "BatchMatMulV2"},
          {"LogSoftmax", "Softmax"}};
  const auto found = known->find(op);
  return found == known->end() ? nullptr : found->second;
}

// FLOPs of an op from the shapes of its inputs and outputs.
class Arithmetic {
 public:
  explicit Arithmetic(const OpInfo& op) : op_(op) {}

  // FLOPs of one execution; negative if the estimator has to be called.
  double Flops() const {
    static const auto* const rules = new std::unordered_map<std::string, Rule>{
        {"BiasAdd", &Arithmetic::Bias},
        {"BiasAddV1", &Arithmetic::Bias},
        {"Conv", &Arithmetic::Convolution},
        {"Conv2D", &Arithmetic::IfKnown<&Arithmetic::Convolution>},
        {"_FusedConv2D", &Arithmetic::IfKnown<&Arithmetic::Convolution>},
        {"Conv3D", &Arithmetic::Convolution},
        {"_FusedConv3D", &Arithmetic::Convolution},
        {"Conv2DBackpropInput",
         &Arithmetic::IfKnown<&Arithmetic::InputGradient>},
        {"Conv2DBackpropInputV2", &Arithmetic::InputGradient},
        {"Conv2DBackpropFilter",
         &Arithmetic::IfKnown<&Arithmetic::FilterGradient>},
        {"Conv2DBackpropFilterV2", &Arithmetic::FilterGradient},
        {"Conv3DBackpropInput", &Arithmetic::InputGradient},
        {"Conv3DBackpropInputV2", &Arithmetic::InputGradient},
        {"Conv3DBackpropFilter", &Arithmetic::FilterGradient},
        {"Conv3DBackpropFilterV2", &Arithmetic::FilterGradient},
        {"CudnnRNN", &Arithmetic::Cudnn},
        {"CudnnRNNV2", &Arithmetic::Cudnn},
        {"CudnnRNNV3", &Arithmetic::Cudnn},
        {"CudnnRNNBackprop", &Arithmetic::CudnnGradient},
        {"CudnnRNNBackpropV2", &Arithmetic::CudnnGradient},
        {"CudnnRNNBackpropV3", &Arithmetic::CudnnGradient},
        {"BlockLSTM", &Arithmetic::Recurrence<1, 4>},
        {"BlockLSTMV2", &Arithmetic::Recurrence<1, 4>},
        {"BlockLSTMGrad", &Arithmetic::RecurrenceGradient<1, 4>},
        {"BlockLSTMGradV2", &Arithmetic::RecurrenceGradient<1, 4>},
        {"LSTMBlockCell", &Arithmetic::Recurrence<0, 3>},
        {"GRUBlockCell", &Arithmetic::GatedCell},
        {"GRUBlockCellGrad", &Arithmetic::GatedCell},
        {"Einsum", &Arithmetic::Einsum},
        {"FusedPadConv2D", &Arithmetic::PaddedConvolution<2>},
        {"FusedResizeAndPadConv2D", &Arithmetic::PaddedConvolution<3>},
        {"SparseTensorDenseMatMul", &Arithmetic::SparseProduct},
        {"Dilation2D", &Arithmetic::Convolution},
        {"Dilation2DBackpropInput", &Arithmetic::InputGradient},
        {"Dilation2DBackpropFilter", &Arithmetic::InputGradient},
        {"ResizeBicubic", &Arithmetic::Samples<16>},
        {"ResizeBicubicGrad", &Arithmetic::SamplesGradient<16>},
        {"ResizeBilinearGrad", &Arithmetic::SamplesGradient<4>},
        {"LowerBound", &Arithmetic::Searches},
        {"UpperBound", &Arithmetic::Searches},
        {"CTCLoss", &Arithmetic::Alignments},
        {"CTCLossV2", &Arithmetic::Alignments}};
    const auto found = rules->find(op_.op());
    if (found != rules->end()) return (this->*found->second)();
    if (IsQuantized("Conv2D")) return Convolution();
    if (IsQuantized("DepthwiseConv2D")) return DepthwiseConvolution();
    if (IsQuantized("MatMulWithBias")) return Product();
    return MatrixArithmetic(op_).Flops();
  }

 private:
  using Rule = double (Arithmetic::*)() const;

  const OpInfo& op_;

  // One addition per output. The estimator takes the bias for one of the last
  // dimension, also if channels come first. It broadcasts both, and so counts
  // more outputs than there are.
  double Bias() const { return Size(Output(0)); }

  // Each number of the output is a sum over a window and its channels. The sum
  // has as many terms as the filter has elements per output channel. Output
  // channels are the filter's last dimension.
  double Convolution() const { return Windows(Output(0), Input(1)); }
  template <int kFilter>
  double PaddedConvolution() const {
    return Windows(Output(0), Input(kFilter));
  }
  double DepthwiseConvolution() const {
    return 2 * Size(Output(0)) * FromLast(Input(1), 3) * FromLast(Input(1), 2);
  }
  double InputGradient() const { return Windows(Input(2), Input(1)); }
  // 0 if the filter's last dimension is not the number of output channels. Then
  // it is only a guess, because the filter's size is known only in a step.
  double FilterGradient() const {
    const TensorShapeProto *outputs = Input(2), *filter = Output(0);
    if (!outputs || outputs->dim_size() < 2) return 0;
    const double channels = Last(filter);
    if (channels != Last(outputs) && channels != outputs->dim(1).size()) {
      return 0;
    }
    return Windows(outputs, filter);
  }

  // The estimator ignores dilations. If a group has a single channel, it takes
  // the filter for one of all input channels. So it is called only if a shape
  // is unknown.
  template <Rule kRule>
  double IfKnown() const {
    const double flops = (this->*kRule)();
    return flops > 0 ? flops : -1;
  }

  // [m, k] times [k, n], with or without transposition.
  double Product() const {
    return 2 * std::sqrt(Size(Input(0)) * Size(Input(1)) * Size(Output(0)));
  }
  // Each number of the sparse matrix is multiplied by a row or a column of the
  // other.
  double SparseProduct() const {
    return 2 * Size(Input(1)) * FromLast(Output(0), 0);
  }

  // Whether the op is a quantized op of a kind, fused or not.
  bool IsQuantized(const std::string& kind) const {
    const std::string start = "Quantized" + kind;
    return op_.op().compare(0, start.size(), start) == 0;
  }

  // Each weight is used once per example and step. The dimensions of input
  // `kInput` without the last one are examples and steps.
  template <int kInput, int kWeights>
  double Recurrence() const {
    return Products(Input(kInput), Size(Input(kWeights)));
  }
  // One product for the gradient of the input, one for that of the weight.
  template <int kInput, int kWeights>
  double RecurrenceGradient() const {
    return 2 * Recurrence<kInput, kWeights>();
  }
  double CudnnGradient() const { return 2 * Cudnn(); }

  // The number of weights is often known only in a step. A layer has per gate a
  // matrix for its input and one for its state. States are [layers, examples,
  // units], or [examples, layers, units] if the input begins with examples as
  // well.
  double Cudnn() const {
    const TensorShapeProto* state = Input(1);
    if (!state || state->dim_size() < 3) return 0;
    const auto mode = op_.attr().find("rnn_mode");
    const std::string kind =
        mode == op_.attr().end() ? "lstm" : mode->second.s();
    const double gates = kind == "lstm" ? 4 : kind == "gru" ? 3 : 1;
    const double layers = state->dim(IsTimeMajor() ? 0 : 1).size();
    const double units = Last(state);
    const double weights = layers * gates * units * (Last(Input(0)) + units);
    return Products(Input(0), std::max(weights, Size(Input(3))));
  }
  // Only the third version has the attribute.
  bool IsTimeMajor() const {
    const auto found = op_.attr().find("time_major");
    return found == op_.attr().end() || found->second.b();
  }
  double GatedCell() const {
    return Products(Input(0), Size(Input(2)) + Size(Input(3)));
  }

  // Each number of an image that is resized is a weighted sum of its
  // neighbours.
  template <int kNeighbours>
  double Samples() const {
    return 2 * kNeighbours * Size(Output(0));
  }
  template <int kNeighbours>
  double SamplesGradient() const {
    return 2 * kNeighbours * Size(Input(0));
  }

  // Each value is searched in a sorted row. A step of a search loads a number,
  // compares, and jumps to where the processor did not expect it to.
  double Searches() const {
    constexpr double kStep = 10;
    return kStep * Size(Input(1)) * std::log2(1 + Last(Input(0)));
  }

  // Connectionist temporal classification (Graves et al., ICML 2006). Scores
  // are [time, examples, classes]. Each time step has a state for each label
  // and for each blank between labels. The softmax computes one exponential for
  // each score.
  double Alignments() const {
    // Operations of an exponential or a logarithm.
    constexpr double kExponential = 20;
    // A state adds probabilities, which are given as logarithms: two forwards,
    // two backwards and one for the gradient. Each of these additions takes an
    // exponential and a logarithm.
    constexpr double kPerState = 10;
    const double time = FromLast(Input(0), 2), examples = FromLast(Input(0), 1);
    const double states = time * (2 * Size(Input(2)) + examples);
    return kExponential * (kPerState * states + Size(Input(0)));
  }

  // FLOPs of an Einsum of two inputs with an ellipsis, which the estimator
  // cannot parse: a product for each combination of all labels. 0 if a shape is
  // unknown.
  double Einsum() const {
    const auto attribute = op_.attr().find("equation");
    if (attribute == op_.attr().end() || op_.inputs_size() != 2) return -1;
    const std::string& equation = attribute->second.s();
    const size_t comma = equation.find(','), arrow = equation.find("->");
    if (arrow == std::string::npos || comma > arrow ||
        equation.find("...") >= arrow) {
      return -1;
    }
    const TensorShapeProto &first = *Input(0), &second = *Input(1);
    if (first.unknown_rank() || second.unknown_rank()) return 0;
    Dims dims;
    Label(equation.substr(0, comma), first, &dims);
    Label(equation.substr(comma + 1, arrow - comma - 1), second, &dims);
    double result = 2;
    for (const auto& [label, size] : dims) result *= size;
    return result;
  }

  // Sizes by label. Dimensions of an ellipsis have negative labels, counted
  // from the last one.
  using Dims = std::unordered_map<int, double>;

  // Adds the sizes of dimensions. The larger size counts if a dimension is
  // broadcast, or unknown in one input.
  static void Label(const std::string& labels, const TensorShapeProto& shape,
                    Dims* dims) {
    const int dots =
        static_cast<int>(std::min(labels.find('.'), labels.size()));
    const int after = std::max(static_cast<int>(labels.size()) - dots - 3, 0);
    const int rank = shape.dim_size();
    for (int i = 0; i < rank; ++i) {
      int label = i - (rank - after);  // In the ellipsis.
      if (i < dots) {
        label = static_cast<unsigned char>(labels[i]);
      } else if (i >= rank - after) {
        label = static_cast<unsigned char>(labels[labels.size() - (rank - i)]);
      }
      double& size = (*dims)[label];
      size = std::max<double>(size, shape.dim(i).size());
    }
  }

  static double Windows(const TensorShapeProto* outputs,
                        const TensorShapeProto* filter) {
    const double channels = Last(filter);
    return channels > 0 ? 2 * Size(outputs) * (Size(filter) / channels) : 0;
  }

  static double Products(const TensorShapeProto* inputs, double weights) {
    const double features = Last(inputs);
    return features > 0 ? 2 * (Size(inputs) / features) * weights : 0;
  }

  const TensorShapeProto* Input(int index) const {
    return InputShape(op_, index);
  }
  const TensorShapeProto* Output(int index) const {
    return OutputShape(op_, index);
  }
  static double Last(const TensorShapeProto* shape) {
    return FromLast(shape, 0);
  }
  static double Size(const TensorShapeProto* shape) { return SizeOf(shape); }
};

}  // namespace grappler
}  // namespace tensorflow

#endif  // GDP_GRAPPLER_GRAPH_OP_FLOPS_H_

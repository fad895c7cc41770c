// Arithmetic of ops of which Grappler's estimator knows none: it says 0.

#ifndef GDP_GRAPPLER_GRAPH_OP_FLOPS_H_
#define GDP_GRAPPLER_GRAPH_OP_FLOPS_H_

#include <algorithm>
#include <cstddef>
#include <string>
#include <unordered_map>

#include "tensorflow/core/framework/op_def.pb.h"
#include "tensorflow/core/framework/tensor_shape.pb.h"
#include "tensorflow/core/grappler/costs/op_performance_data.pb.h"

namespace tensorflow {
namespace grappler {

// The op that the estimator knows and that does the same; null if there is
// none. What the remapper joins to a product or convolution (a bias, an
// activation) comes after the same first two inputs, with the same attributes,
// and is little beside it.
inline const char* Counterpart(const std::string& op) {
  static const auto* const known =
      new std::unordered_map<std::string, const char*>{
          {"_FusedMatMul", "MatMul"},
          {"_FusedConv2D", "Conv2D"},
          {"_FusedDepthwiseConv2dNative", "DepthwiseConv2dNative"},
          {"_MklFusedBatchMatMulV2", "BatchMatMulV2"},
          {"BatchMatMulV3", "BatchMatMulV2"}};
  const auto found = known->find(op);
  return found == known->end() ? nullptr : found->second;
}

// FLOPs of an op from the shapes of its inputs and outputs.
class Arithmetic {
 public:
  explicit Arithmetic(const OpInfo& op) : op_(op) {}

  // Of one execution; negative if the estimator is to say.
  double Flops() const {
    static const auto* const rules = new std::unordered_map<std::string, Rule>{
        {"Conv", &Arithmetic::Convolution},
        {"Conv3D", &Arithmetic::Convolution},
        {"_FusedConv3D", &Arithmetic::Convolution},
        {"Conv2DBackpropInputV2", &Arithmetic::InputGradient},
        {"Conv2DBackpropFilterV2", &Arithmetic::FilterGradient},
        {"Conv3DBackpropInput", &Arithmetic::InputGradient},
        {"Conv3DBackpropInputV2", &Arithmetic::InputGradient},
        {"Conv3DBackpropFilter", &Arithmetic::FilterGradient},
        {"Conv3DBackpropFilterV2", &Arithmetic::FilterGradient},
        {"CudnnRNN", &Arithmetic::Recurrence<0, 3>},
        {"CudnnRNNV2", &Arithmetic::Recurrence<0, 3>},
        {"CudnnRNNV3", &Arithmetic::Recurrence<0, 3>},
        {"CudnnRNNBackprop", &Arithmetic::RecurrenceGradient<0, 3>},
        {"CudnnRNNBackpropV2", &Arithmetic::RecurrenceGradient<0, 3>},
        {"CudnnRNNBackpropV3", &Arithmetic::RecurrenceGradient<0, 3>},
        {"BlockLSTM", &Arithmetic::Recurrence<1, 4>},
        {"BlockLSTMV2", &Arithmetic::Recurrence<1, 4>},
        {"BlockLSTMGrad", &Arithmetic::RecurrenceGradient<1, 4>},
        {"BlockLSTMGradV2", &Arithmetic::RecurrenceGradient<1, 4>},
        {"LSTMBlockCell", &Arithmetic::Recurrence<0, 3>},
        {"GRUBlockCell", &Arithmetic::GatedCell},
        {"GRUBlockCellGrad", &Arithmetic::GatedCell},
        {"Einsum", &Arithmetic::Einsum}};
    const auto found = rules->find(op_.op());
    return found == rules->end() ? -1 : (this->*found->second)();
  }

 private:
  using Rule = double (Arithmetic::*)() const;

  const OpInfo& op_;

  // Each number of an output is the sum over a window and its channels, which
  // is what a filter has for one of its channels, the last dimension.
  double Convolution() const { return Windows(Output(0), Input(1)); }
  double InputGradient() const { return Windows(Input(2), Input(1)); }
  double FilterGradient() const { return Windows(Input(2), Output(0)); }

  // Each weight is used once per example and step, the dimensions of `kInput`
  // but the last.
  template <int kInput, int kWeights>
  double Recurrence() const {
    return Products(Input(kInput), Size(Input(kWeights)));
  }
  // Once for the gradient of the input, once for that of the weight.
  template <int kInput, int kWeights>
  double RecurrenceGradient() const {
    return 2 * Recurrence<kInput, kWeights>();
  }
  double GatedCell() const {
    return Products(Input(0), Size(Input(2)) + Size(Input(3)));
  }

  // Of two inputs with an ellipsis, which the estimator does not read: a
  // product for each choice of all labels.
  double Einsum() const {
    const auto attribute = op_.attr().find("equation");
    if (attribute == op_.attr().end() || op_.inputs_size() != 2) return -1;
    const std::string& equation = attribute->second.s();
    const size_t comma = equation.find(','), arrow = equation.find("->");
    if (arrow == std::string::npos || comma > arrow ||
        equation.find("...") >= arrow) {
      return -1;
    }
    std::unordered_map<char, double> dims;
    const double broadcast = std::max(
        Label(equation.substr(0, comma), *Input(0), &dims),
        Label(equation.substr(comma + 1, arrow - comma - 1), *Input(1), &dims));
    double result = 2 * broadcast;
    for (const auto& [label, size] : dims) result *= size;
    return result;
  }

  // Says how large the dimensions are that have labels, and returns the product
  // of those that an ellipsis stands for.
  static double Label(const std::string& labels, const TensorShapeProto& shape,
                      std::unordered_map<char, double>* dims) {
    const int dots =
        static_cast<int>(std::min(labels.find('.'), labels.size()));
    const int after = std::max(static_cast<int>(labels.size()) - dots - 3, 0);
    const int rank = shape.dim_size();
    double rest = 1;
    for (int i = 0; i < rank; ++i) {
      const double size = std::max<double>(shape.dim(i).size(), 0);
      if (i < dots) {
        (*dims)[labels[i]] = size;
      } else if (i >= rank - after) {
        (*dims)[labels[labels.size() - (rank - i)]] = size;
      } else {
        rest *= size;
      }
    }
    return rest;
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
    return index < op_.inputs_size() ? &op_.inputs(index).shape() : nullptr;
  }
  const TensorShapeProto* Output(int index) const {
    return index < op_.outputs_size() ? &op_.outputs(index).shape() : nullptr;
  }

  static double Last(const TensorShapeProto* shape) {
    if (!shape || shape->dim_size() == 0) return 0;
    return static_cast<double>(shape->dim(shape->dim_size() - 1).size());
  }

  // 0 where nobody knows.
  static double Size(const TensorShapeProto* shape) {
    if (!shape || shape->unknown_rank()) return 0;
    double result = 1;
    for (const auto& dim : shape->dim()) {
      result *= dim.size() > 0 ? static_cast<double>(dim.size()) : 0;
    }
    return result;
  }
};

}  // namespace grappler
}  // namespace tensorflow

#endif  // GDP_GRAPPLER_GRAPH_OP_FLOPS_H_

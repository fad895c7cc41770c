// Values of tensors that are shapes, and shapes of outputs, if the sizes of
// open dimensions are given.
//
// Grappler's shape inference does not know the values of most shapes that
// contain an open dimension. But a graph computes such a shape from other
// shapes, by a few small ops. With the open sizes given, these ops can be run.

#ifndef GDP_GRAPPLER_GRAPH_SHAPE_VALUES_H_
#define GDP_GRAPPLER_GRAPH_SHAPE_VALUES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/tensor_shape.pb.h"
#include "tensorflow/core/grappler/costs/graph_properties.h"
#include "tensorflow/core/grappler/optimizers/evaluation_utils.h"
#include "tensorflow/core/public/version.h"

namespace tensorflow {
namespace grappler {

class ShapeValues {
 public:
  // Returns the size of a dimension; negative if unknown.
  using SizeOf = std::function<int64_t(int64_t)>;

  // `edges` are those of the NodeTable that had `graph`.
  ShapeValues(const GraphDef& graph, const GraphProperties& shapes,
              const std::vector<int32_t>& edges, SizeOf size_of)
      : graph_(graph),
        shapes_(shapes),
        edges_(edges),
        size_of_(std::move(size_of)),
        starts_(graph.node_size() + 1, edges.size()) {
    int32_t op = 0;
    for (size_t i = 0; i < edges.size(); i += 3) {
      for (; op <= edges[i + 2]; ++op) starts_[op] = i;
    }
  }

  // Tells the shape of an output whose rank shape inference does not know.
  void Tell(int32_t op, int32_t output, const PartialTensorShape& shape) {
    told_[{op, output}] = shape;
  }

  // Returns the shapes of an op's outputs; none if its shape function fails.
  std::vector<PartialTensorShape> Outputs(int32_t op) {
    const NodeDef& node = graph_.node(op);
    const OpRegistrationData* registered = nullptr;
    if (!OpRegistry::Global()->LookUp(node.op(), &registered).ok() ||
        registered->shape_inference_fn == nullptr) {
      return {};
    }
    std::vector<PartialTensorShape> shapes;
    std::vector<const Tensor*> values;
    const size_t count = shapes_.GetInputProperties(node.name()).size();
    for (size_t i = 0; i < count; ++i) {
      values.push_back(OfInput(op, i, 0));
      // A shape function may end the process if a value does not have the shape
      // of its input.
      const Tensor* value = values.back();
      shapes.push_back(value ? PartialTensorShape(value->shape())
                             : ShapeOfInput(op, i));
    }
    shape_inference::InferenceContext context(
        TF_GRAPH_DEF_VERSION, AttrSlice(node), registered->op_def, shapes,
        values, {}, {});
    if (!context.construction_status().ok() ||
        !context.Run(registered->shape_inference_fn).ok()) {
      return {};
    }
    std::vector<PartialTensorShape> result(context.num_outputs());
    for (int i = 0; i < context.num_outputs(); ++i) {
      TensorShapeProto shape;
      context.ShapeHandleToProto(context.output(i), &shape);
      const Tensor* value = OfOutput(op, i, 0);
      if (value != nullptr) value->shape().AsProto(&shape);
      if (!PartialTensorShape::BuildPartialTensorShape(shape, &result[i])
               .ok()) {
        result[i] = PartialTensorShape();
      }
    }
    return result;
  }

 private:
  // Tensors with more elements are no shapes.
  static constexpr int64_t kMostElements = 64;
  static constexpr int kMostDepth = 100;

  // Ops by which a graph computes shapes. Their outputs are small if their
  // inputs are shapes, except in the cases of `MakesLarge`.
  static bool IsComputed(const std::string& op) {
    static constexpr const char* kOps[] = {
        "Add",      "AddV2",      "BroadcastArgs", "BroadcastGradientArgs",
        "Cast",     "Concat",     "ConcatV2",      "DynamicStitch",
        "Equal",    "ExpandDims", "FloorDiv",      "FloorMod",
        "GatherV2", "Greater",    "Identity",      "InvertPermutation",
        "Less",     "Max",        "Maximum",       "Min",
        "Minimum",  "Mul",        "Neg",           "NotEqual",
        "Pack",     "Prod",       "Range",         "Reshape",
        "Select",   "SelectV2",   "Slice",         "Split",
        "SplitV",   "Squeeze",    "StridedSlice",  "Sub",
        "Sum",      "Transpose",  "Unpack"};
    return std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps);
  }

  static bool IsInteger(DataType type) {
    return type == DT_INT32 || type == DT_INT64 || type == DT_BOOL;
  }
  static bool IsShape(const Tensor& tensor) {
    return IsInteger(tensor.dtype()) && tensor.NumElements() <= kMostElements;
  }

  // A shape with the sizes by `size_of_`; of unknown rank if it is not valid.
  PartialTensorShape Given(const TensorShapeProto& shape) const {
    TensorShapeProto sizes = shape;
    for (auto& dim : *sizes.mutable_dim()) {
      dim.set_size(std::max<int64_t>(size_of_(dim.size()), -1));
    }
    PartialTensorShape result;
    if (!PartialTensorShape::BuildPartialTensorShape(sizes, &result).ok()) {
      return PartialTensorShape();
    }
    return result;
  }

  // Shape of an op's input, with the sizes by `size_of_`.
  PartialTensorShape ShapeOfInput(int32_t op, size_t index) const {
    const TensorShapeProto& shape =
        shapes_.GetInputProperties(graph_.node(op).name())[index].shape();
    const size_t edge = starts_[op] + 3 * index;
    if (shape.unknown_rank() && edge < starts_[op + 1]) {
      const auto told = told_.find({edges_[edge], edges_[edge + 1]});
      if (told != told_.end()) return told->second;
    }
    return Given(shape);
  }

  // Value of an op's input; null if unknown.
  const Tensor* OfInput(int32_t op, size_t index, int depth) {
    const auto& inputs = shapes_.GetInputProperties(graph_.node(op).name());
    if (index >= inputs.size() || !IsInteger(inputs[index].dtype())) {
      return nullptr;
    }
    if (inputs[index].has_value()) {
      // A few bytes may stand for a large tensor of one value.
      PartialTensorShape shape;
      Tensor value;
      if (!PartialTensorShape::BuildPartialTensorShape(
               inputs[index].value().tensor_shape(), &shape)
               .ok() ||
          shape.num_elements() < 0 || shape.num_elements() > kMostElements ||
          !value.FromProto(inputs[index].value()) ||
          value.dtype() != inputs[index].dtype()) {
        return nullptr;
      }
      constants_.push_back(std::move(value));
      return &constants_.back();
    }
    const size_t edge = starts_[op] + 3 * index;
    if (edge >= starts_[op + 1] || edges_[edge + 1] < 0) return nullptr;
    const Tensor* value = OfOutput(edges_[edge], edges_[edge + 1], depth);
    return value && value->dtype() == inputs[index].dtype() ? value : nullptr;
  }

  // Value of an op's output; null if unknown.
  const Tensor* OfOutput(int32_t op, size_t output, int depth) {
    if (depth > kMostDepth) return nullptr;
    const auto [found, is_new] = known_.try_emplace(op);
    std::vector<Tensor>& outputs = found->second;
    if (is_new) outputs = Evaluate(op, depth + 1);
    return output < outputs.size() && IsShape(outputs[output])
               ? &outputs[output]
               : nullptr;
  }

  // Values of an op's outputs; float tensors if unknown.
  std::vector<Tensor> Evaluate(int32_t op, int depth) {
    const NodeDef& node = graph_.node(op);
    const auto& inputs = shapes_.GetInputProperties(node.name());
    std::vector<Tensor> result;
    if (node.op() == "Shape" || node.op() == "ShapeN") {
      for (size_t i = 0; i < inputs.size(); ++i) {
        result.push_back(AsTensor(node, ShapeOfInput(op, i)));
      }
      return result;
    }
    if (node.op() == "Size" && inputs.size() == 1) {
      const int64_t size = ShapeOfInput(op, 0).num_elements();
      return {size < 0 ? Tensor() : AsTensor(node, {size}).SubSlice(0)};
    }
    if (!IsComputed(node.op())) return {};
    absl::InlinedVector<TensorValue, 4> taken, made;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Tensor* value = OfInput(op, i, depth);
      if (value == nullptr) return {};
      taken.emplace_back(const_cast<Tensor*>(value));
    }
    if (taken.empty() || MakesLarge(node, taken)) return {};
    if (device_ == nullptr) device_ = std::make_unique<DeviceSimple>();
    const bool ok =
        EvaluateNode(node, taken, device_.get(), &resources_, &made).ok();
    for (const TensorValue& value : made) {
      const std::unique_ptr<Tensor> tensor(value.tensor);
      result.push_back(ok && tensor && IsShape(*tensor) ? *tensor : Tensor());
    }
    return result;
  }

  // Whether the values of the inputs may make a large output.
  static bool MakesLarge(const NodeDef& node,
                         const absl::InlinedVector<TensorValue, 4>& inputs) {
    if (node.op() == "Range") return IsLongRange(inputs);
    if (node.op() != "DynamicStitch") return false;
    for (size_t i = 0; i < inputs.size() / 2; ++i) {
      if (inputs[i]->dtype() != DT_INT32) return true;
      const auto indices = inputs[i]->flat<int32_t>();
      for (int64_t k = 0; k < indices.size(); ++k) {
        if (indices(k) >= kMostElements) return true;
      }
    }
    return false;
  }

  static bool IsLongRange(const absl::InlinedVector<TensorValue, 4>& inputs) {
    for (const TensorValue& input : inputs) {
      if (input->dtype() != DT_INT32 || input->NumElements() != 1) return true;
    }
    if (inputs.size() != 3) return true;
    const auto number = [&inputs](size_t i) -> int64_t {
      return inputs[i]->flat<int32_t>()(0);
    };
    return std::abs(number(1) - number(0)) >
           kMostElements * std::abs(number(2));
  }

  // The value of a Shape; a float tensor if a size is unknown.
  static Tensor AsTensor(const NodeDef& node, const PartialTensorShape& shape) {
    if (!shape.IsFullyDefined()) return Tensor();
    const auto type = node.attr().find("out_type");
    const bool is_long =
        type != node.attr().end() && type->second.type() == DT_INT64;
    Tensor result(is_long ? DT_INT64 : DT_INT32, TensorShape({shape.dims()}));
    for (int i = 0; i < shape.dims(); ++i) {
      const int64_t size = shape.dim_size(i);
      if (is_long) {
        result.vec<int64_t>()(i) = size;
      } else if (size <= std::numeric_limits<int32_t>::max()) {
        result.vec<int32_t>()(i) = static_cast<int32_t>(size);
      } else {
        return Tensor();
      }
    }
    return result;
  }

  const GraphDef& graph_;
  const GraphProperties& shapes_;
  const std::vector<int32_t>& edges_;
  const SizeOf size_of_;
  std::vector<size_t> starts_;  // [N + 1], where the edges into each op begin.
  std::map<std::pair<int32_t, int32_t>, PartialTensorShape> told_;
  std::unordered_map<int32_t, std::vector<Tensor>> known_;
  std::deque<Tensor> constants_;
  std::unique_ptr<DeviceSimple> device_;
  ResourceMgr resources_;
};

}  // namespace grappler
}  // namespace tensorflow

#endif  // GDP_GRAPPLER_GRAPH_SHAPE_VALUES_H_

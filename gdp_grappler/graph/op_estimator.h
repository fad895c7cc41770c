// FLOPs and traffic of an op by Grappler's estimator.

#ifndef GDP_GRAPPLER_GRAPH_OP_ESTIMATOR_H_
#define GDP_GRAPPLER_GRAPH_OP_ESTIMATOR_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <unordered_map>
#include <vector>

#include "gdp_grappler/graph/op_flops.h"
#include "gdp_grappler/graph/shape_sizes.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor_shape.pb.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/framework/types.pb.h"
#include "tensorflow/core/grappler/costs/cost_estimator.h"
#include "tensorflow/core/grappler/costs/op_context.h"
#include "tensorflow/core/grappler/costs/op_level_cost_estimator.h"
#include "tensorflow/core/grappler/costs/utils.h"

namespace tensorflow {
namespace grappler {

using TensorProperties = OpInfo::TensorProperties;

// A device on which Grappler's nanoseconds equal operations or bytes: 1 GHz,
// one core, no vector unit; 1 GB/s.
inline DeviceProperties UnitDevice() {
  DeviceProperties device;
  device.set_type("CPU");
  device.set_frequency(1000);
  device.set_num_cores(1);
  device.set_bandwidth(1000000);
  return device;
}

struct Estimate {
  double flops, io_bytes;
};

// Calls Grappler's estimator, but only once for ops that it cannot distinguish:
// ops of one kind with equal inputs and outputs.
class Estimator {
 public:
  // `edges` and `kinds` are those of the NodeTable that had `graph`.
  Estimator(const GraphDef& graph, const std::vector<int32_t>& edges,
            const std::vector<int32_t>& kinds)
      : graph_(graph), edges_(edges), kinds_(kinds), device_(UnitDevice()) {}

  // Returns the estimate of an op. Calls have to be in ascending order of ops.
  Estimate Ask(int32_t op, const std::vector<TensorProperties>& inputs,
               const std::vector<TensorProperties>& outputs) {
    while (at_ < edges_.size() && edges_[at_ + 2] < op) at_ += 3;
    if (!FindKey(op, inputs, outputs)) return Predict(op, inputs, outputs);
    const auto known = known_.find(key_);
    if (known != known_.end()) return known->second;
    return known_[key_] = Predict(op, inputs, outputs);
  }

 private:
  // Larger tensors are not compared.
  static constexpr size_t kMostBytes = 256;

  void AddPart(const std::string& part) {
    const uint64_t size = part.size();
    key_.append(reinterpret_cast<const char*>(&size), sizeof(size));
    key_.append(part);
  }

  bool AddTensors(const std::vector<TensorProperties>& tensors) {
    key_.push_back('|');
    for (const TensorProperties& tensor : tensors) {
      if (tensor.has_value() && tensor.value().ByteSizeLong() > kMostBytes) {
        return false;
      }
      tensor.SerializeToString(&text_);
      AddPart(text_);
    }
    return true;
  }

  // Whether the kind of a node tells all attributes that its cost depends on. A
  // kind does not contain attributes that are tensors. The cost of a Const does
  // not depend on its value.
  static bool SaysAll(const NodeDef& node) {
    if (node.op() == "Const") return true;
    for (const auto& [name, value] : node.attr()) {
      if (value.value_case() == AttrValue::kTensor) return false;
    }
    return true;
  }

  // Sets `key_` to all inputs of the estimate. BuildOpInfoWithoutDevice reads
  // the ops that make the inputs, and the values of constants. False if the
  // estimate depends on a tensor that is an attribute, or too large for a key.
  bool FindKey(int32_t op, const std::vector<TensorProperties>& inputs,
               const std::vector<TensorProperties>& outputs) {
    if (!SaysAll(graph_.node(op))) return false;
    const int32_t kind = kinds_[op];
    key_.assign(reinterpret_cast<const char*>(&kind), sizeof(kind));
    if (!AddTensors(inputs) || !AddTensors(outputs)) return false;
    for (size_t i = at_; i < edges_.size() && edges_[i + 2] == op; i += 3) {
      if (edges_[i + 1] < 0) continue;
      const NodeDef& maker = graph_.node(edges_[i]);
      AddPart(maker.op());
      if (maker.op() != "Const") continue;
      const auto value = maker.attr().find("value");
      if (value == maker.attr().end()) continue;
      if (value->second.ByteSizeLong() > kMostBytes) return false;
      value->second.SerializeToString(&text_);
      AddPart(text_);
    }
    return true;
  }

  Estimate Predict(int32_t op, const std::vector<TensorProperties>& inputs,
                   const std::vector<TensorProperties>& outputs) const {
    const NodeDef& node = graph_.node(op);
    std::unordered_map<std::string, const NodeDef*> makers;
    for (size_t i = at_; i < edges_.size() && edges_[i + 2] == op; i += 3) {
      const NodeDef& maker = graph_.node(edges_[i]);
      makers[maker.name()] = &maker;
    }
    OpContext context;
    context.name = node.name();
    context.device_name = "/CPU:0";
    context.function_library = &graph_.library();
    context.op_info = BuildOpInfoWithoutDevice(node, makers, inputs);
    *context.op_info.mutable_device() = device_;
    for (const TensorProperties& output : outputs) {
      *context.op_info.add_outputs() = output;
    }
    KeepTouchedPart(&context.op_info);
    const Costs costs = estimator_.PredictCosts(context);
    const double counted = static_cast<double>(costs.memory_time.count());
    const double missed = BytesBehindHandles(context.op_info, counted) +
                          BytesBehindReferences(context.op_info);
    return {Flops(&context, costs), counted + missed};
  }

  static bool StartsWith(const std::string& type,
                         std::initializer_list<const char*> starts) {
    return std::any_of(starts.begin(), starts.end(), [&](const char* start) {
      return type.compare(0, std::strlen(start), start) == 0;
    });
  }

  // Some ops touch only a part of a large tensor or v1 variable. The estimator
  // counts all of it, so it gets the shape of the part instead. A diagonal has
  // the shape of the output.
  static void KeepTouchedPart(OpInfo* op) {
    const std::string& type = op->op();
    if (op->inputs_size() > 0 && op->outputs_size() > 0 &&
        StartsWith(type, {"MatrixDiagPart", "DiagPart"})) {
      *op->mutable_inputs(0)->mutable_shape() = op->outputs(0).shape();
    }
    if (op->inputs_size() < 2) return;
    TensorShapeProto* first = op->mutable_inputs(0)->mutable_shape();
    if (StartsWith(type, {"SparseSegment"})) {
      // The op reads a row for each index.
      if (first->dim_size() == 0) return;
      const double indices = SizeOf(InputShape(*op, 1));
      first->mutable_dim(0)->set_size(static_cast<int64_t>(indices));
    } else if (StartsWith(type, {"Inplace"}) ||
               (IsRefType(op->inputs(0).dtype()) &&
                StartsWith(type, {"SparseApply", "ScatterNd",
                                  "StridedSliceAssign"}))) {
      const TensorShapeProto part = LargestValue(*op);
      for (auto& input : *op->mutable_inputs()) {
        if (IsRefType(input.dtype())) *input.mutable_shape() = part;
      }
      *first = part;
      for (auto& output : *op->mutable_outputs()) {
        *output.mutable_shape() = part;
      }
    }
  }

  // Shape of the values that an op writes to its first input, or of their
  // gradient: the largest of the other inputs of this type.
  static TensorShapeProto LargestValue(const OpInfo& op) {
    TensorShapeProto result;
    for (int i = 1; i < op.inputs_size(); ++i) {
      const TensorProperties& input = op.inputs(i);
      if (input.dtype() == BaseType(op.inputs(0).dtype()) &&
          SizeOf(&input.shape()) >= SizeOf(&result)) {
        result = input.shape();
      }
    }
    return result;
  }

  // Bytes of v1 variables that the estimator misses; negative if it counts too
  // many. It counts all inputs as read, also a variable that is only assigned.
  // Of several variables that an op writes, it counts only the output.
  static double BytesBehindReferences(const OpInfo& op) {
    if (op.outputs_size() == 0) return 0;
    const auto variable = static_cast<double>(
        std::max<int64_t>(CalculateTensorSize(op.outputs(0)), 0));
    if (op.op() == "Assign" || op.op() == "StridedSliceAssign") {
      return -variable;
    }
    if (!StartsWith(op.op(), {"Apply", "SparseApply"})) return 0;
    double others = -1;
    for (const TensorProperties& input : op.inputs()) {
      others += IsRefType(input.dtype());
    }
    return others * variable;
  }

  // Bytes of variables that an op reads and writes. The estimator counts only
  // the tensors that the op gets and makes: `counted` bytes. An update reads
  // and writes as many bytes for each handle. A gather reads what it outputs,
  // and an assignment to a slice writes what it gets.
  static double BytesBehindHandles(const OpInfo& op, double counted) {
    if (op.op() == "ResourceGather" || op.op() == "ResourceGatherNd") {
      const int64_t size =
          op.outputs_size() ? CalculateTensorSize(op.outputs(0)) : 0;
      return static_cast<double>(std::max<int64_t>(size, 0));
    }
    if (op.op() == "ResourceStridedSliceAssign") return counted;
    if (!StartsWith(op.op(),
                    {"ResourceApply", "ResourceSparseApply", "ResourceScatter",
                     "AssignAddVariable", "AssignSubVariable"})) {
      return 0;
    }
    double handles = 0;
    for (const TensorProperties& input : op.inputs()) {
      handles += input.dtype() == DT_RESOURCE;
    }
    return 2 * handles * counted;
  }

  // A product of complex numbers takes four of real numbers. MatrixArithmetic
  // counts them for the ops that it knows.
  static bool MultipliesComplex(const OpInfo& op) {
    const auto& inputs = op.inputs();
    return (op.op().find("MatMul") != std::string::npos ||
            op.op().find("Einsum") != std::string::npos) &&
           std::any_of(inputs.begin(), inputs.end(),
                       [](const TensorProperties& input) {
                         return DataTypeIsComplex(input.dtype());
                       });
  }

  // FLOPs of one execution. The context cannot be used afterwards.
  double Flops(OpContext* context, const Costs& costs) const {
    const double products = MultipliesComplex(context->op_info) ? 4 : 1;
    return products * RealFlops(context, costs);
  }

  // FLOPs by our own rule, or else by the estimator, for this op or an
  // equivalent one.
  double RealFlops(OpContext* context, const Costs& costs) const {
    OpInfo* op = &context->op_info;
    const double flops = Arithmetic(*op).Flops();
    if (flops >= 0) return flops;
    const char* known = Counterpart(op->op());
    if (known == nullptr) {
      return static_cast<double>(costs.compute_time.count());
    }
    op->set_op(known);
    while (op->inputs_size() > 2) op->mutable_inputs()->RemoveLast();
    return static_cast<double>(
        estimator_.PredictCosts(*context).compute_time.count());
  }

  const GraphDef& graph_;
  const std::vector<int32_t>& edges_;
  const std::vector<int32_t>& kinds_;
  const OpLevelCostEstimator estimator_;
  const DeviceProperties device_;
  std::unordered_map<std::string, Estimate> known_;
  size_t at_ = 0;  // The first edge into the current op.
  std::string key_, text_;
};

}  // namespace grappler
}  // namespace tensorflow

#endif  // GDP_GRAPPLER_GRAPH_OP_ESTIMATOR_H_

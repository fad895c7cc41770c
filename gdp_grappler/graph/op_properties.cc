// FLOPs, traffic and output sizes of every node, as Grappler sees them.
//
// tensorflow.python.grappler offers the same through Cluster.MeasureCosts, but
// schedules the graph and copies a protobuf per op on the way: 1.1 s for
// 11,000 ops, where the pass has 2 s for everything. Here the static shape
// inference and OpLevelCostEstimator are called directly.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gdp_grappler/graph/node_table.h"
#include "gdp_grappler/graph/op_flops.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/graph_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/grappler/costs/graph_properties.h"
#include "tensorflow/core/grappler/costs/op_context.h"
#include "tensorflow/core/grappler/costs/op_level_cost_estimator.h"
#include "tensorflow/core/grappler/costs/utils.h"
#include "tensorflow/core/grappler/grappler_item.h"

namespace tensorflow {
namespace grappler {
namespace {

using TensorProperties = OpInfo::TensorProperties;

struct Properties {
  std::string error;
  std::vector<double> flops;
  std::vector<double> io_bytes;
  std::vector<int64_t> output_starts{0};
  std::vector<int64_t> output_bytes;
  std::vector<int64_t> output_ranks;
  std::vector<int64_t> output_dims;
};

// A device on which Grappler's nanoseconds read as plain operations and bytes:
// 1 GHz, one core, no vector unit; 1 GB/s.
DeviceProperties UnitDevice() {
  DeviceProperties device;
  device.set_type("CPU");
  device.set_frequency(1000);
  device.set_num_cores(1);
  device.set_bandwidth(1000000);
  return device;
}

bool LeavesOpen(const std::vector<TensorProperties>& properties) {
  for (const TensorProperties& tensor : properties) {
    for (const auto& dim : tensor.shape().dim()) {
      if (dim.size() < 0) return true;
    }
  }
  return false;
}

// Dimensions that only the caller knows (the batch) get its value; `copy` is
// for properties that have some.
const std::vector<TensorProperties>& Known(
    const std::vector<TensorProperties>& properties, int64_t unknown_dim,
    std::vector<TensorProperties>* copy) {
  if (!LeavesOpen(properties)) return properties;
  *copy = properties;
  for (TensorProperties& tensor : *copy) {
    for (auto& dim : *tensor.mutable_shape()->mutable_dim()) {
      if (dim.size() < 0) dim.set_size(unknown_dim);
    }
  }
  return *copy;
}

int64_t Bytes(const TensorProperties& tensor) {
  if (tensor.dtype() == DT_RESOURCE || tensor.dtype() == DT_VARIANT) return 0;
  const int64_t bytes = CalculateTensorSize(tensor);
  return bytes > 0 ? bytes : 0;
}

void AppendShape(const TensorShapeProto& shape, Properties* result) {
  result->output_ranks.push_back(shape.unknown_rank() ? -1 : shape.dim_size());
  for (const auto& dim : shape.dim()) {
    result->output_dims.push_back(dim.size());
  }
}

struct Estimate {
  double flops, io_bytes;
};

// Asks Grappler's estimator, and only once about ops that it cannot tell apart:
// of one kind, with equal inputs and outputs.
class Estimator {
 public:
  // `edges` and `kinds` are those of the NodeTable that `graph` was in.
  Estimator(const GraphDef& graph, const std::vector<int32_t>& edges,
            const std::vector<int32_t>& kinds)
      : graph_(graph), edges_(edges), kinds_(kinds), device_(UnitDevice()) {}

  // Of nodes in ascending order.
  Estimate Ask(int32_t op, const std::vector<TensorProperties>& inputs,
               const std::vector<TensorProperties>& outputs) {
    while (at_ < edges_.size() && edges_[at_ + 2] < op) at_ += 3;
    if (!FindKey(op, inputs, outputs)) return Predict(op, inputs, outputs);
    const auto known = known_.find(key_);
    if (known != known_.end()) return known->second;
    return known_[key_] = Predict(op, inputs, outputs);
  }

 private:
  // Tensors of more bytes are not compared.
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

  // A kind does not say what tensors its attributes are. A Const costs the same
  // whatever it holds.
  static bool SaysAll(const NodeDef& node) {
    if (node.op() == "Const") return true;
    for (const auto& [name, value] : node.attr()) {
      if (value.value_case() == AttrValue::kTensor) return false;
    }
    return true;
  }

  // What the estimate hangs on: BuildOpInfoWithoutDevice looks at the ops that
  // make the inputs and at the values of constants. False if it is too much.
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
    const Costs costs = estimator_.PredictCosts(context);
    return {Flops(&context, costs),
            static_cast<double>(costs.memory_time.count())};
  }

  // By a rule of ours, else what the estimator knows of the op or of one that
  // does the same. The context is of no use afterwards.
  double Flops(OpContext* context, const Costs& costs) const {
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
  size_t at_ = 0;  // The first edge into the op that is asked about.
  std::string key_, text_;
};

void Append(int32_t op, const std::string& name, const GraphProperties& shapes,
            int64_t unknown_dim, Estimator* estimator, Properties* result) {
  std::vector<TensorProperties> input_copy, output_copy;
  const auto& inputs =
      Known(shapes.GetInputProperties(name), unknown_dim, &input_copy);
  const auto& outputs =
      Known(shapes.GetOutputProperties(name), unknown_dim, &output_copy);
  for (const TensorProperties& output : outputs) {
    result->output_bytes.push_back(Bytes(output));
    AppendShape(output.shape(), result);
  }
  result->output_starts.push_back(result->output_bytes.size());
  const Estimate estimate = estimator->Ask(op, inputs, outputs);
  result->flops.push_back(estimate.flops);
  result->io_bytes.push_back(estimate.io_bytes);
}

// Grappler aborts the process when an attribute it counts on is missing.
absl::Status CheckAttributes(const GraphDef& graph,
                             const FunctionLibraryDefinition& library) {
  for (const NodeDef& node : graph.node()) {
    const OpDef* op = nullptr;
    if (!library.LookUpOpDef(node.op(), &op).ok()) continue;
    for (const OpDef::AttrDef& attribute : op->attr()) {
      if (!node.attr().count(attribute.name())) {
        return absl::InvalidArgumentError(
            "node \"" + node.name() + "\" (" + node.op() +
            ") lacks the attribute \"" + attribute.name() + "\"");
      }
    }
  }
  return absl::OkStatus();
}

bool HasPositive(const NodeDef& node, const char* attribute) {
  const auto found = node.attr().find(attribute);
  if (found == node.attr().end()) return true;
  for (const int64_t value : found->second.list().i()) {
    if (value <= 0) return false;
  }
  return true;
}

// Whether an equation is of as many inputs as a node has.
bool IsEquation(const NodeDef& node) {
  const std::string& text = node.attr().at("equation").s();
  const size_t arrow = text.find("->");
  const auto commas = std::count(text.begin(), text.end(), ',');
  int inputs = 0;
  for (const std::string& input : node.input()) inputs += input[0] != '^';
  return arrow != std::string::npos && commas == inputs - 1 &&
         (commas == 0 || text.rfind(',') < arrow);
}

// Grappler divides by strides, and counts on equations that fit.
absl::Status CheckValues(const GraphDef& graph) {
  for (const NodeDef& node : graph.node()) {
    const bool explicit_padding = node.attr().count("padding") &&
                                  node.attr().at("padding").s() == "EXPLICIT";
    const char* wrong = nullptr;
    if (!HasPositive(node, "strides")) {
      wrong = "a stride that is not positive";
    } else if (!HasPositive(node, "dilations")) {
      wrong = "a dilation that is not positive";
    } else if (explicit_padding && !node.attr().count("explicit_paddings")) {
      wrong = "paddings that it does not say";
    } else if (node.op() == "Einsum" && !IsEquation(node)) {
      wrong = "an equation of other inputs";
    }
    if (wrong != nullptr) {
      return absl::InvalidArgumentError("node \"" + node.name() + "\" (" +
                                        node.op() + ") has " + wrong);
    }
  }
  return absl::OkStatus();
}

// A graph and what is inferred of it.
struct Inference {
  GrapplerItem item;
  std::unique_ptr<GraphProperties> shapes;

  // To give back the memory of so many small messages takes a sixth of the time
  // of all the rest, and nobody waits for it.
  static void Forget(std::unique_ptr<Inference> inference) {
    if (inference->item.graph.node_size() < kManyNodes) return;
    try {
      std::thread([last = std::move(inference)] {}).detach();
    } catch (const std::system_error&) {
      // No thread to be had: it is gone all the same.
    }
  }

 private:
  static constexpr int kManyNodes = 10000;
};

// Takes the graph out of the table. `replaced` has other nodes in the place of
// those at `places`.
absl::Status Infer(NodeTable* table, const char* replaced, size_t size,
                   const int32_t* places, Inference* result) {
  GraphDef& graph = result->item.graph;
  graph.Swap(&table->graph);
  GraphDef others;
  if (!others.ParseFromArray(replaced, static_cast<int>(size))) {
    return absl::InvalidArgumentError("not a GraphDef");
  }
  for (int i = 0; i < others.node_size(); ++i) {
    graph.mutable_node(places[i])->Swap(others.mutable_node(i));
  }
  // Exporters leave out attributes that have their default value.
  const FunctionLibraryDefinition library(OpRegistry::Global(),
                                          graph.library());
  absl::Status status = AddDefaultAttrsToGraphDef(
      &graph, library, /*node_offset=*/0, /*skip_unknown_ops=*/true);
  if (status.ok()) status = CheckAttributes(graph, library);
  if (status.ok()) status = CheckValues(graph);
  if (!status.ok()) return status;
  result->shapes = std::make_unique<GraphProperties>(result->item);
  return result->shapes->InferStatically(
      /*assume_valid_feeds=*/true, /*aggressive_shape_inference=*/true,
      /*include_input_tensor_values=*/true,
      /*include_output_tensor_values=*/false);
}

void Compute(NodeTable* table, const char* replaced, size_t size,
             const int32_t* places, int64_t unknown_dim, Properties* result) {
  auto inference = std::make_unique<Inference>();
  const absl::Status status =
      Infer(table, replaced, size, places, inference.get());
  if (!status.ok()) {
    result->error = std::string(status.message());
    return;
  }
  const GraphDef& graph = inference->item.graph;
  Estimator estimator(graph, table->edges, table->kinds);
  for (int32_t op = 0; op < graph.node_size(); ++op) {
    Append(op, graph.node(op).name(), *inference->shapes, unknown_dim,
           &estimator, result);
  }
  Inference::Forget(std::move(inference));
}

}  // namespace
}  // namespace grappler
}  // namespace tensorflow

extern "C" {

using tensorflow::grappler::Properties;

// `nodes` is of `gdp_nodes_new` and has no graph any more afterwards. The nodes
// of the serialized GraphDef `replaced` take the place of those at `places`.
void* gdp_properties_new(void* nodes, const char* replaced, size_t size,
                         const int32_t* places, int64_t unknown_dim) {
  auto* result = new Properties;
  tensorflow::grappler::Compute(
      static_cast<tensorflow::grappler::NodeTable*>(nodes), replaced, size,
      places, unknown_dim, result);
  return result;
}

const char* gdp_properties_error(void* properties) {
  return static_cast<Properties*>(properties)->error.c_str();
}

// [N]
const double* gdp_properties_flops(void* properties) {
  return static_cast<Properties*>(properties)->flops.data();
}

// [N]
const double* gdp_properties_io_bytes(void* properties) {
  return static_cast<Properties*>(properties)->io_bytes.data();
}

// [N + 1], where the outputs of each node begin in gdp_properties_bytes.
const int64_t* gdp_properties_starts(void* properties) {
  return static_cast<Properties*>(properties)->output_starts.data();
}

// [T]
const int64_t* gdp_properties_bytes(void* properties) {
  return static_cast<Properties*>(properties)->output_bytes.data();
}

// [T], number of dimensions of each output, -1 where that is unknown.
const int64_t* gdp_properties_ranks(void* properties) {
  return static_cast<Properties*>(properties)->output_ranks.data();
}

// Dimensions of all outputs, one output after the other.
const int64_t* gdp_properties_dims(void* properties) {
  return static_cast<Properties*>(properties)->output_dims.data();
}

void gdp_properties_delete(void* properties) {
  delete static_cast<Properties*>(properties);
}

}  // extern "C"

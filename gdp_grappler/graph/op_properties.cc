// FLOPs, traffic and output sizes of every node, by Grappler.
//
// Cluster.MeasureCosts of tensorflow.python.grappler gives the same figures.
// But it also schedules the graph and copies a protobuf per op, which takes
// longer than the estimates, while the program waits for the pass. So this file
// calls the static shape inference and OpLevelCostEstimator directly.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "gdp_grappler/graph/node_table.h"
#include "gdp_grappler/graph/op_estimator.h"
#include "gdp_grappler/graph/open_sizes.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/graph_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/grappler/costs/graph_properties.h"
#include "tensorflow/core/grappler/grappler_item.h"

namespace tensorflow {
namespace grappler {
namespace {

struct Properties {
  std::string error;
  std::vector<double> flops;
  std::vector<double> io_bytes;
  std::vector<int64_t> output_starts{0};
  std::vector<int64_t> output_bytes;
  std::vector<int64_t> output_ranks;
  std::vector<int64_t> output_dims;
};

// Larger tensors fit into no memory. Grappler ends the process if the size of a
// tensor overflows.
constexpr double kMostElements = 1e12;

// Largest length of an input that is taken for a list of sizes.
constexpr int64_t kMostSizes = 8;

// Number of times that shape inference is told shapes, and runs again.
constexpr int kMostRounds = 4;

// Number of elements. Sizes below `least` count as `least`.
double Elements(const TensorShapeProto& shape, int64_t least) {
  double result = 1;
  for (const auto& dim : shape.dim()) {
    const int64_t size = std::max<int64_t>(dim.size(), least);
    result = std::min(result * static_cast<double>(size), 1e300);
  }
  return result;
}

// Whether Grappler would end the process if it got the shape. Grappler
// multiplies size by size, so its product may overflow before a size of 0.
bool IsUnusable(const TensorShapeProto& shape) {
  return shape.dim_size() > TensorShape::MaxDimensions() ||
         !(Elements(shape, /*least=*/1) <= kMostElements);
}

bool MayStay(const std::vector<TensorProperties>& properties) {
  for (const TensorProperties& tensor : properties) {
    for (const auto& dim : tensor.shape().dim()) {
      if (dim.size() < 0) return false;
    }
    if (IsUnusable(tensor.shape())) return false;
  }
  return true;
}

// Replaces open sizes. `copy` is used for properties that change.
const std::vector<TensorProperties>& Known(
    const std::vector<TensorProperties>& properties, const OpenSizes& sizes,
    std::vector<TensorProperties>* copy) {
  if (MayStay(properties)) return properties;
  *copy = properties;
  for (TensorProperties& tensor : *copy) {
    for (auto& dim : *tensor.mutable_shape()->mutable_dim()) {
      dim.set_size(sizes.Of(dim.size()));
    }
  }
  return *copy;
}

// Writes sizes of 1 into unusable shapes.
void Hide(std::vector<TensorProperties>* properties) {
  for (TensorProperties& tensor : *properties) {
    TensorShapeProto* shape = tensor.mutable_shape();
    if (!IsUnusable(*shape)) continue;
    if (shape->dim_size() > TensorShape::MaxDimensions()) shape->Clear();
    for (auto& dim : *shape->mutable_dim()) dim.set_size(1);
  }
}

int64_t Bytes(const TensorProperties& tensor) {
  if (tensor.dtype() == DT_RESOURCE || tensor.dtype() == DT_VARIANT) return 0;
  const double elements =
      std::min(Elements(tensor.shape(), /*least=*/0), kMostElements);
  return static_cast<int64_t>(elements) *
         DataTypeSize(BaseType(tensor.dtype()));
}

// Whether a tensor has no elements, or is a list of sizes with a 0.
bool HasZero(const TensorProperties& tensor) {
  for (const auto& dim : tensor.shape().dim()) {
    if (dim.size() == 0) return true;
  }
  Tensor sizes;
  if (!tensor.has_value() || tensor.dtype() != DT_INT32 ||
      tensor.value().tensor_shape().dim_size() != 1 ||
      tensor.value().tensor_shape().dim(0).size() > kMostSizes ||
      !sizes.FromProto(tensor.value())) {
    return false;
  }
  const auto values = sizes.flat<int32_t>();
  return std::any_of(values.data(), values.data() + values.size(),
                     [](int32_t size) { return size <= 0; });
}

// Grappler divides by the number of channels of a convolution.
bool IsEmptyConvolution(const std::string& op,
                        const std::vector<TensorProperties>& inputs,
                        const std::vector<TensorProperties>& outputs) {
  return op.find("Conv") != std::string::npos &&
         (std::any_of(inputs.begin(), inputs.end(), HasZero) ||
          std::any_of(outputs.begin(), outputs.end(), HasZero));
}

void AppendShape(const TensorShapeProto& shape, Properties* result) {
  result->output_ranks.push_back(shape.unknown_rank() ? -1 : shape.dim_size());
  for (const auto& dim : shape.dim()) {
    result->output_dims.push_back(dim.size());
  }
}

void Append(int32_t op, const NodeDef& node, const GraphProperties& shapes,
            const OpenSizes& sizes, Estimator* estimator, Properties* result) {
  std::vector<TensorProperties> input_copy, output_copy;
  const auto* inputs =
      &Known(shapes.GetInputProperties(node.name()), sizes, &input_copy);
  const auto& outputs =
      Known(shapes.GetOutputProperties(node.name()), sizes, &output_copy);
  for (const TensorProperties& output : outputs) {
    result->output_bytes.push_back(Bytes(output));
    AppendShape(output.shape(), result);
  }
  result->output_starts.push_back(result->output_bytes.size());
  if (node.op() == "CropAndResize") {
    // Grappler reads the first size of the boxes, even if there is none.
    if (inputs != &input_copy) input_copy = *inputs;
    inputs = &input_copy;
    for (TensorProperties& input : input_copy) {
      TensorShapeProto* shape = input.mutable_shape();
      if (shape->dim_size() == 0) shape->add_dim()->set_size(1);
      shape->set_unknown_rank(false);
    }
  }
  Hide(&input_copy);
  Hide(&output_copy);
  Estimate estimate{0, 0};
  if (!IsEmptyConvolution(node.op(), *inputs, outputs)) {
    estimate = estimator->Ask(op, *inputs, outputs);
  }
  result->flops.push_back(std::max(0., estimate.flops));
  result->io_bytes.push_back(std::max(0., estimate.io_bytes));
}

// Grappler aborts the process if an attribute that it needs is missing.
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

// Whether an equation fits the number of a node's inputs.
bool IsEquation(const NodeDef& node) {
  const std::string& text = node.attr().at("equation").s();
  const size_t arrow = text.find("->");
  const auto commas = std::count(text.begin(), text.end(), ',');
  int inputs = 0;
  for (const std::string& input : node.input()) inputs += input[0] != '^';
  return arrow != std::string::npos && commas == inputs - 1 &&
         (commas == 0 || text.rfind(',') < arrow);
}

// Whether a control input comes before another input.
bool IsDisordered(const NodeDef& node) {
  bool is_control = false;
  for (const std::string& input : node.input()) {
    if (is_control && input[0] != '^') return true;
    is_control = input[0] == '^';
  }
  return false;
}

// Grappler divides by strides, and relies on equations that fit and on the
// order of inputs.
absl::Status CheckValues(const GraphDef& graph) {
  for (const NodeDef& node : graph.node()) {
    const bool explicit_padding = node.attr().count("padding") &&
                                  node.attr().at("padding").s() == "EXPLICIT";
    const char* wrong = nullptr;
    if (IsDisordered(node)) {
      wrong = "a control input before another input";
    } else if (!HasPositive(node, "strides")) {
      wrong = "a stride that is not positive";
    } else if (!HasPositive(node, "dilations")) {
      wrong = "a dilation that is not positive";
    } else if (explicit_padding && !node.attr().count("explicit_paddings")) {
      wrong = "explicit padding but no attribute \"explicit_paddings\"";
    } else if (node.op() == "Einsum" && !IsEquation(node)) {
      wrong = "an equation for another number of inputs";
    }
    if (wrong != nullptr) {
      return absl::InvalidArgumentError("node \"" + node.name() + "\" (" +
                                        node.op() + ") has " + wrong);
    }
  }
  return absl::OkStatus();
}

// Whether a node may be a slice of a shape that Grappler computes.
bool SlicesShape(const NodeDef& node) {
  if (node.op() != "Slice" && node.op() != "StridedSlice") return false;
  const DataType type = node.attr().at("T").type();
  const auto mask = [&node](const char* name) {
    const auto found = node.attr().find(name);
    return found == node.attr().end() ? 0 : found->second.i();
  };
  return (type == DT_INT32 || type == DT_INT64) && mask("begin_mask") <= 1 &&
         mask("end_mask") <= 1 && mask("shrink_axis_mask") == 0;
}

// A graph and its inferred shapes.
struct Inference {
  GrapplerItem item;
  std::unique_ptr<GraphProperties> shapes;

  // Infers the shapes of the graph. They stay as they were if that fails.
  //
  // Grappler computes slices of shapes itself. It rejects the graph for some
  // slices that a step can take, such as one with a negative stride. It does
  // not compute a slice that is fed, and leaves its rank unknown.
  absl::Status Update() {
    const absl::Status status = InferOnce();
    if (status.ok() || !item.feed.empty()) return status;
    for (const NodeDef& node : item.graph.node()) {
      if (SlicesShape(node)) item.feed.emplace_back(node.name(), Tensor());
    }
    return item.feed.empty() ? status : InferOnce();
  }

  // Tells the shapes of ops to the next inference. False if none is new.
  bool Tell(const OpenSizes::Shapes& shapes) {
    bool is_new = false;
    for (const auto& [op, outputs] : shapes) {
      auto& attributes = *item.graph.mutable_node(op)->mutable_attr();
      if (attributes.count("_output_shape_vector")) continue;
      is_new = true;
      attributes["_same_output_for_iterations"].set_b(true);
      auto* told = attributes["_output_shape_vector"].mutable_list();
      for (const auto& shape : outputs) *told->add_shape() = shape;
    }
    return is_new;
  }

  // Frees memory in another thread. Freeing so many small messages takes a
  // sixth of the time of all other work, and nothing depends on it.
  static void Forget(std::unique_ptr<Inference> inference) {
    if (inference->item.graph.node_size() < kManyNodes) return;
    try {
      std::thread([last = std::move(inference)] {}).detach();
    } catch (const std::system_error&) {
      // Without a thread, the memory has been freed in this one.
    }
  }

 private:
  static constexpr int kManyNodes = 10000;

  absl::Status InferOnce() {
    auto result = std::make_unique<GraphProperties>(item);
    const absl::Status status = result->InferStatically(
        /*assume_valid_feeds=*/false, /*aggressive_shape_inference=*/true,
        /*include_input_tensor_values=*/true,
        /*include_output_tensor_values=*/false);
    if (status.ok()) shapes = std::move(result);
    return status;
  }
};

// Moves the graph out of the table, and infers shapes. The nodes of `replaced`
// replace those at `places`.
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
  return status.ok() ? result->Update() : status;
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
  std::optional<OpenSizes> sizes;
  int rounds = 0;
  do {
    sizes.emplace(graph, *table, *inference->shapes, unknown_dim);
  } while (rounds++ < kMostRounds && inference->Tell(sizes->Lost()) &&
           inference->Update().ok());
  Estimator estimator(graph, table->edges, table->kinds);
  for (int32_t op = 0; op < graph.node_size(); ++op) {
    Append(op, graph.node(op), *inference->shapes, *sizes, &estimator, result);
  }
  Inference::Forget(std::move(inference));
}

}  // namespace
}  // namespace grappler
}  // namespace tensorflow

extern "C" {

using tensorflow::grappler::Properties;

// `nodes` is a result of `gdp_nodes_new`, and has no graph afterwards. The
// nodes of the serialized GraphDef `replaced` replace those at `places`.
void* gdp_properties_new(void* nodes, const char* replaced, size_t size,
                         const int32_t* places, int64_t unknown_dim) {
  auto* result = new Properties;
  try {
    tensorflow::grappler::Compute(
        static_cast<tensorflow::grappler::NodeTable*>(nodes), replaced, size,
        places, unknown_dim, result);
  } catch (const std::exception& error) {
    result->error = error.what();  // Such as a vector that is too long.
  }
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

// [T], number of dimensions of each output; -1 if unknown.
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

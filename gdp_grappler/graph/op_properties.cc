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
#include <utility>
#include <vector>

#include "gdp_grappler/graph/node_table.h"
#include "gdp_grappler/graph/op_estimator.h"
#include "gdp_grappler/graph/open_sizes.h"
#include "gdp_grappler/graph/shape_inference.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/grappler/costs/graph_properties.h"

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

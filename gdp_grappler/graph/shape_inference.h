// Shapes of the tensors of a graph, by Grappler's static shape inference.
//
// Grappler ends the process for some damaged graphs, and rejects some graphs
// that TensorFlow runs. So nodes are checked before the inference, and slices
// that Grappler cannot compute are kept from it.

#ifndef GDP_GRAPPLER_GRAPH_SHAPE_INFERENCE_H_
#define GDP_GRAPPLER_GRAPH_SHAPE_INFERENCE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "gdp_grappler/graph/node_table.h"
#include "gdp_grappler/graph/open_sizes.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/graph_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/grappler/costs/graph_properties.h"
#include "tensorflow/core/grappler/grappler_item.h"

namespace tensorflow {
namespace grappler {

// Grappler aborts the process if an attribute that it needs is missing.
inline absl::Status CheckAttributes(const GraphDef& graph,
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

inline bool HasPositive(const NodeDef& node, const char* attribute) {
  const auto found = node.attr().find(attribute);
  if (found == node.attr().end()) return true;
  for (const int64_t value : found->second.list().i()) {
    if (value <= 0) return false;
  }
  return true;
}

// Whether an equation fits the number of a node's inputs.
inline bool IsEquation(const NodeDef& node) {
  const std::string& text = node.attr().at("equation").s();
  const size_t arrow = text.find("->");
  const auto commas = std::count(text.begin(), text.end(), ',');
  int inputs = 0;
  for (const std::string& input : node.input()) inputs += input[0] != '^';
  return arrow != std::string::npos && commas == inputs - 1 &&
         (commas == 0 || text.rfind(',') < arrow);
}

// Whether a control input comes before another input.
inline bool IsDisordered(const NodeDef& node) {
  bool is_control = false;
  for (const std::string& input : node.input()) {
    if (is_control && input[0] != '^') return true;
    is_control = input[0] == '^';
  }
  return false;
}

// Grappler divides by strides, and relies on equations that fit and on the
// order of inputs.
inline absl::Status CheckValues(const GraphDef& graph) {
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
inline bool SlicesShape(const NodeDef& node) {
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

  // Infers the shapes of the graph. If this fails, no shape changes.
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
inline absl::Status Infer(NodeTable* table, const char* replaced, size_t size,
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

}  // namespace grappler
}  // namespace tensorflow

#endif  // GDP_GRAPPLER_GRAPH_SHAPE_INFERENCE_H_

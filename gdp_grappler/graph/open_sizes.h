// Sizes that shape inference leaves open.

#ifndef GDP_GRAPPLER_GRAPH_OPEN_SIZES_H_
#define GDP_GRAPPLER_GRAPH_OPEN_SIZES_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gdp_grappler/graph/node_table.h"
#include "gdp_grappler/graph/shape_values.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/tensor_shape.pb.h"
#include "tensorflow/core/grappler/costs/graph_properties.h"

namespace tensorflow {
namespace grappler {

// Sizes that shape inference leaves open. Shape inference writes a negative
// number for each, the same number for sizes that are equal. The open sizes of
// the graph's inputs are the batch, which only the caller knows. The shape
// functions of other ops tell most of the rest. A size that they do not tell
// depends on the data of a step, and is guessed: as a rule, an op makes no more
// elements than its inputs have or a batch needs.
//
// Shape inference does not know the rank of some outputs whose shape is a value
// that the graph computes. If it is told their shapes, it finds those of the
// readers.
class OpenSizes {
 public:
  // Shapes of the outputs of ops, by op.
  using Shapes = std::vector<std::pair<int32_t, std::vector<TensorShapeProto>>>;

  // `graph` is that of the table, with other nodes in a few places.
  OpenSizes(const GraphDef& graph, const NodeTable& table,
            const GraphProperties& shapes, int64_t unknown_dim)
      : graph_(graph),
        shapes_(shapes),
        unknown_dim_(unknown_dim),
        values_(graph, shapes, table.edges,
                [this](int64_t dim) { return Decided(dim); }) {
    const bool is_open = std::any_of(
        graph.node().begin(), graph.node().end(), [this](const NodeDef& node) {
          const Outputs& outputs = OutputsOf(node);
          return LeavesOpen(outputs) || LosesRank(outputs);
        });
    if (!is_open) return;
    // A step may add a tensor of selected rows to one of its inputs. Then both
    // share an open size. So the inputs are decided before all other ops.
    for (const NodeDef& node : graph.node()) {
      const std::string& op = node.op();
      if (op == "Placeholder" || op == "IteratorGetNext") TakeBatch(node);
    }
    DecideAll(table.edges);
  }

  // Size of a dimension, known or not.
  int64_t Of(int64_t dim) const {
    const int64_t size = Decided(dim);
    return size < 0 ? unknown_dim_ : size;
  }

  // Shapes of outputs whose rank shape inference does not know. Other outputs
  // of these ops have no dimensions here.
  const Shapes& Lost() const { return lost_; }

 private:
  using Outputs = std::vector<OpInfo::TensorProperties>;

  static constexpr double kMostRows = 1e12;

  static bool IsStitch(const std::string& op) {
    return op == "DynamicStitch" || op == "ParallelDynamicStitch";
  }
  static bool DependsOnData(const std::string& op) {
    return op == "DynamicPartition" || op == "Where" || IsStitch(op);
  }
  static bool IsNextIteration(const std::string& op) {
    return op == "NextIteration" || op == "RefNextIteration";
  }

  const Outputs& OutputsOf(const NodeDef& node) const {
    return shapes_.GetOutputProperties(node.name());
  }

  // Size of a dimension; negative if it is not decided.
  int64_t Decided(int64_t dim) const {
    if (dim >= 0) return dim;
    const auto found = sizes_.find(dim);
    return found == sizes_.end() ? -1 : found->second;
  }

  // Sets a size, unless it is decided. The number -1 gets no size, because
  // dimensions that have nothing in common may share it.
  void Set(int64_t dim, double size) {
    if (dim >= -1 || !(size >= 0) || size > kMostRows) return;
    sizes_.emplace(dim, static_cast<int64_t>(size));
  }

  bool LeavesOpen(const Outputs& outputs) const {
    for (const auto& output : outputs) {
      for (const auto& dim : output.shape().dim()) {
        if (Decided(dim.size()) < 0) return true;
      }
    }
    return false;
  }

  static bool LosesRank(const Outputs& outputs) {
    return std::any_of(outputs.begin(), outputs.end(), [](const auto& output) {
      return output.shape().unknown_rank();
    });
  }

  void TakeBatch(const NodeDef& node) {
    const double batch = static_cast<double>(unknown_dim_);
    for (const auto& output : OutputsOf(node)) {
      for (const auto& dim : output.shape().dim()) Set(dim.size(), batch);
    }
  }

  // Decides ops in topological order. Edges that close a loop do not count.
  //
  // What is computed from an output of unknown rank is a guess. If such an op
  // loses a rank, the next inference may know more.
  void DecideAll(const std::vector<int32_t>& edges) {
    std::vector<int32_t> waits(graph_.node_size()), order;
    std::vector<std::vector<size_t>> readers(graph_.node_size());
    std::vector<bool> is_guess(graph_.node_size());
    for (size_t i = 0; i < edges.size(); i += 3) {
      if (IsNextIteration(graph_.node(edges[i]).op())) continue;
      readers[edges[i]].push_back(i);
      ++waits[edges[i + 2]];
    }
    for (int32_t op = 0; op < graph_.node_size(); ++op) {
      if (!waits[op]) order.push_back(op);
    }
    for (size_t at = 0; at < order.size(); ++at) {
      const int32_t op = order[at];
      Decide(op);
      if (!is_guess[op] && LosesRank(OutputsOf(graph_.node(op)))) {
        is_guess[op] = !TakeLost(op);
      }
      for (const size_t edge : readers[op]) {
        const int32_t reader = edges[edge + 2];
        if (is_guess[op] && edges[edge + 1] >= 0) is_guess[reader] = true;
        if (--waits[reader] == 0) order.push_back(reader);
      }
    }
  }

  // Decides all sizes that an op makes.
  void Decide(int32_t op) {
    const NodeDef& node = graph_.node(op);
    const Outputs& outputs = OutputsOf(node);
    if (!LeavesOpen(outputs)) return;
    if (DependsOnData(node.op())) {
      FindRows(node);
    } else if (!IsSource(node)) {
      const std::vector<PartialTensorShape> known = values_.Outputs(op);
      for (size_t i = 0; i < std::min(known.size(), outputs.size()); ++i) {
        const TensorShapeProto& shape = outputs[i].shape();
        if (known[i].dims() != shape.dim_size()) continue;
        for (int k = 0; k < shape.dim_size(); ++k) {
          Set(shape.dim(k).size(), static_cast<double>(known[i].dim_size(k)));
        }
      }
      for (const auto& output : outputs) Share(node, output.shape());
    }
    TakeBatch(node);
  }

  // Takes the shapes of an op that shape inference does not know. False if one
  // stays unknown. A shape with an open size stays unknown: its rank may be the
  // guessed length of a list of sizes.
  bool TakeLost(int32_t op) {
    const Outputs& outputs = OutputsOf(graph_.node(op));
    std::vector<PartialTensorShape> known = values_.Outputs(op);
    known.resize(outputs.size());
    std::vector<TensorShapeProto> found(outputs.size());
    bool is_found = false, is_known = true;
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!outputs[i].shape().unknown_rank()) continue;
      if (known[i].IsFullyDefined()) {
        is_found |= known[i].dims() > 0;  // Scalars cannot be told.
        known[i].AsProto(&found[i]);
        values_.Tell(op, static_cast<int32_t>(i), known[i]);
      } else {
        is_known = false;
      }
    }
    if (is_found) lost_.emplace_back(op, std::move(found));
    return is_known;
  }

  // Whether an op makes tensors of something else than numbers, such as files,
  // variables and lists.
  bool IsSource(const NodeDef& node) const {
    const auto& inputs = shapes_.GetInputProperties(node.name());
    return std::all_of(inputs.begin(), inputs.end(), [](const auto& input) {
      return input.dtype() == DT_RESOURCE || input.dtype() == DT_VARIANT ||
             input.dtype() == DT_STRING;
    });
  }

  // Finds the rows of an op's outputs. The parts of a tensor are taken to be of
  // equal size.
  void FindRows(const NodeDef& node) {
    const auto& inputs = shapes_.GetInputProperties(node.name());
    size_t begin = 0, end = 1;
    double parts = 1;
    if (IsStitch(node.op())) end = inputs.size() / 2;
    if (node.op() == "DynamicPartition") {
      begin = 1, end = 2;
      parts = static_cast<double>(node.attr().at("num_partitions").i());
    }
    double rows = 0;
    for (size_t i = begin; i < std::min(end, inputs.size()); ++i) {
      if (inputs[i].shape().unknown_rank()) return;
      rows += Elements(inputs[i].shape());
    }
    rows = std::ceil(rows / std::max(parts, 1.));
    for (const auto& output : OutputsOf(node)) {
      if (output.shape().dim_size() > 0)
        Set(output.shape().dim(0).size(), rows);
    }
  }

  double Elements(const TensorShapeProto& shape) const {
    double result = 1;
    for (const auto& dim : shape.dim()) {
      result *= static_cast<double>(Of(dim.size()));
    }
    return result;
  }

  // Guesses the open sizes of an output from the number of elements of the op's
  // largest input. The first open size is the batch, and no other is larger.
  // But a Reshape keeps all elements, if their number is known. So its last
  // open size has all elements that the other sizes leave.
  void Share(const NodeDef& node, const TensorShapeProto& shape) {
    const auto& inputs = shapes_.GetInputProperties(node.name());
    const bool keeps_all =
        node.op() == "Reshape" && !inputs[0].shape().unknown_rank();
    double most = 0, known = 1;
    for (size_t i = 0; i < (keeps_all ? 1 : inputs.size()); ++i) {
      if (inputs[i].shape().unknown_rank()) continue;
      most = std::max(most, Elements(inputs[i].shape()));
    }
    std::vector<int64_t> open;
    for (const auto& dim : shape.dim()) {
      const int64_t size = Decided(dim.size());
      if (size < 0) open.push_back(dim.size());
      known *= size < 0 ? 1 : static_cast<double>(std::max<int64_t>(size, 1));
    }
    const double batch = static_cast<double>(unknown_dim_);
    double rest = std::max(std::ceil(most / known), 1.);
    for (size_t i = 0; i < open.size(); ++i) {
      double size = i ? std::min(batch, rest) : batch;
      if (keeps_all) {
        const bool is_last = i + 1 == open.size();
        const bool is_batch = i == 0 && std::fmod(rest, batch) == 0;
        size = is_last ? rest : is_batch ? batch : 1;
      }
      Set(open[i], size);
      rest = std::max(std::floor(rest / size), 1.);
    }
  }

  const GraphDef& graph_;
  const GraphProperties& shapes_;
  const int64_t unknown_dim_;
  std::unordered_map<int64_t, int64_t> sizes_;
  Shapes lost_;
  ShapeValues values_;
};

}  // namespace grappler
}  // namespace tensorflow

#endif  // GDP_GRAPPLER_GRAPH_OPEN_SIZES_H_

// Checks that nodes agree with the definitions of their ops, for
// node_validation.py.
//
// TensorFlow's importer checks this for every node. Its graph optimizer does
// not, and crashes on wrong nodes.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_def.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow {
namespace grappler {
namespace {

using Functions = std::unordered_map<std::string, const OpDef*>;

// Null for an op that is not registered, which another check reports.
const OpDef* DefinitionOf(const std::string& op, const Functions& functions) {
  const auto found = functions.find(op);
  if (found != functions.end()) return found->second;
  const OpDef* result = nullptr;
  return OpRegistry::Global()->LookUpOpDef(op, &result).ok() ? result : nullptr;
}

bool IsPolymorphic(const NodeDef& node) {
  for (const auto& [name, value] : node.attr()) {
    if (value.value_case() == AttrValue::kPlaceholder) return true;
  }
  return false;
}

// Removes attributes that this TensorFlow does not know, as it ignores them.
void DropUnknown(const OpDef& definition, NodeDef* node) {
  std::vector<std::string> unknown;
  for (const auto& [name, value] : node->attr()) {
    bool known = absl::StartsWith(name, "_");
    for (int i = 0; !known && i < definition.attr_size(); ++i) {
      known = definition.attr(i).name() == name;
    }
    if (!known) unknown.push_back(name);
  }
  for (const std::string& name : unknown) node->mutable_attr()->erase(name);
}

// Checks tensors and shapes in attributes. Grappler's own attributes are left
// out, because it uses sizes below -1 to mark equal dimensions.
absl::Status CheckValues(const NodeDef& node) {
  for (const auto& [name, value] : node.attr()) {
    if (absl::StartsWith(name, "_")) continue;
    Tensor tensor;
    if (value.value_case() == AttrValue::kTensor &&
        (!TensorShape::IsValid(value.tensor().tensor_shape()) ||
         !tensor.FromProto(value.tensor()))) {
      return absl::InvalidArgumentError(
          absl::StrCat("attribute \"", name, "\" is no tensor"));
    }
    if (value.value_case() == AttrValue::kShape &&
        !PartialTensorShape::IsValid(value.shape())) {
      return absl::InvalidArgumentError(
          absl::StrCat("attribute \"", name, "\" is no shape"));
    }
    for (const TensorShapeProto& shape : value.list().shape()) {
      if (!PartialTensorShape::IsValid(shape)) {
        return absl::InvalidArgumentError(
            absl::StrCat("attribute \"", name, "\" contains an invalid shape"));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Check(const NodeDef& node, const Functions& functions) {
  const OpDef* definition = DefinitionOf(node.op(), functions);
  if (definition == nullptr || IsPolymorphic(node)) return absl::OkStatus();
  NodeDef copy = node;
  DropUnknown(*definition, &copy);
  AddDefaultsToNodeDef(*definition, &copy);
  const absl::Status status = ValidateNodeDef(copy, *definition);
  if (!status.ok()) return status;
  if (node.op() == "Const" && node.attr().at("dtype").type() !=
                                  node.attr().at("value").tensor().dtype()) {
    return absl::InvalidArgumentError("its value has another type");
  }
  return CheckValues(node);
}

// Returns a message without the definitions that TensorFlow quotes.
absl::string_view Shortened(absl::string_view message) {
  for (const absl::string_view quote : {" from Op<", "; NodeDef", "; Op<"}) {
    message = message.substr(0, message.find(quote));
  }
  return message;
}

template <typename Nodes>
absl::Status CheckAll(const Nodes& nodes, const Functions& functions) {
  for (const NodeDef& node : nodes) {
    const absl::Status status = Check(node, functions);
    if (!status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "node \"", node.name(), "\": ", Shortened(status.message())));
    }
  }
  return absl::OkStatus();
}

// Types of a node's inputs and outputs. False if they are unknown.
bool TypesOf(const NodeDef& node, const OpDef& definition,
             DataTypeVector* inputs, DataTypeVector* outputs) {
  if (InOutTypesForNode(node, definition, inputs, outputs).ok()) return true;
  NodeDef copy = node;  // With default values of missing attributes.
  AddDefaultsToNodeDef(definition, &copy);
  inputs->clear();
  outputs->clear();
  return InOutTypesForNode(copy, definition, inputs, outputs).ok();
}

// The tensors that nodes of a graph or of a function read, by name.
class Tensors {
 public:
  // Adds a node's outputs, in a function by the names of its output arguments.
  void Add(const NodeDef& node, const OpDef& definition,
           const DataTypeVector& types, bool in_function) {
    if (!in_function) {
      types_.emplace(node.name(), types);
      return;
    }
    NameRangeMap ranges;
    if (!NameRangesForNode(AttrSlice(node), definition, nullptr, &ranges)
             .ok()) {
      return;
    }
    for (const auto& [name, range] : ranges) {
      types_.emplace(absl::StrCat(node.name(), ":", name),
                     DataTypeVector(types.begin() + range.first,
                                    types.begin() + range.second));
    }
  }

  void AddArgument(const OpDef::ArgDef& argument) {
    if (argument.type() != DT_INVALID && argument.number_attr().empty()) {
      types_.emplace(argument.name(), DataTypeVector{argument.type()});
    }
  }

  // Checks that a node that needs a type may read an input of this name.
  absl::Status Check(const std::string& input, DataType expected) const {
    size_t index = 0;
    absl::string_view name = input;
    const size_t colon = input.rfind(':');
    if (colon != std::string::npos &&
        absl::SimpleAtoi(name.substr(colon + 1), &index)) {
      name = name.substr(0, colon);
    }
    const auto found = types_.find(std::string(name));
    if (found == types_.end()) return absl::OkStatus();  // Unknown tensor.
    if (index >= found->second.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("it reads ", input, ", but there are only ",
                       found->second.size(), " such outputs"));
    }
    const DataType actual = found->second[index];
    if (expected == actual || expected == BaseType(actual)) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        absl::StrCat("it takes ", DataTypeString(expected), ", but ", input,
                     " is ", DataTypeString(actual)));
  }

 private:
  std::unordered_map<std::string, DataTypeVector> types_;
};

// Checks that the inputs of nodes have the types that the nodes need.
template <typename Nodes>
absl::Status CheckInputs(const Nodes& nodes, const Functions& functions,
                         const OpDef* signature) {
  Tensors tensors;
  if (signature != nullptr) {
    for (const OpDef::ArgDef& argument : signature->input_arg()) {
      tensors.AddArgument(argument);
    }
  }
  std::vector<DataTypeVector> taken(nodes.size());
  for (int i = 0; i < nodes.size(); ++i) {
    const OpDef* definition = DefinitionOf(nodes[i].op(), functions);
    if (definition == nullptr || IsPolymorphic(nodes[i])) continue;
    DataTypeVector given;
    if (!TypesOf(nodes[i], *definition, &taken[i], &given)) {
      taken[i].clear();
      continue;
    }
    tensors.Add(nodes[i], *definition, given, signature != nullptr);
  }
  for (int i = 0; i < nodes.size(); ++i) {
    for (size_t k = 0; k < taken[i].size(); ++k) {
      const absl::Status status = tensors.Check(nodes[i].input(k), taken[i][k]);
      if (!status.ok()) {
        return absl::InvalidArgumentError(
            absl::StrCat("node \"", nodes[i].name(), "\": ", status.message()));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckGraph(const GraphDef& graph) {
  Functions functions;
  for (const FunctionDef& function : graph.library().function()) {
    functions[function.signature().name()] = &function.signature();
  }
  absl::Status status = CheckAll(graph.node(), functions);
  if (status.ok()) status = CheckInputs(graph.node(), functions, nullptr);
  for (const FunctionDef& function : graph.library().function()) {
    if (status.ok()) status = CheckAll(function.node_def(), functions);
    if (status.ok()) {
      status =
          CheckInputs(function.node_def(), functions, &function.signature());
    }
  }
  return status;
}

}  // namespace
}  // namespace grappler
}  // namespace tensorflow

extern "C" {

// Writes why a serialized GraphDef is wrong, or nothing. Writes up to `room`
// bytes, with the zero at the end.
void gdp_nodes_validate(const char* graph, size_t size, char* why,
                        size_t room) {
  tensorflow::GraphDef parsed;
  absl::Status status =
      parsed.ParseFromArray(graph, static_cast<int>(size))
          ? tensorflow::grappler::CheckGraph(parsed)
          : absl::InvalidArgumentError("it is larger than 2 GB");
  const absl::string_view message = status.message();
  const size_t length = message.size() < room ? message.size() : room - 1;
  memcpy(why, message.data(), length);
  why[length] = '\0';
}

}  // extern "C"

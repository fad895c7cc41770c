// The edges of a GraphDef and the kinds of its nodes, for node_table.py. In
// Python, this takes seconds for large graphs.

#include "gdp_grappler/graph/node_table.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace tensorflow {
namespace grappler {
namespace {

constexpr size_t kMostDigits = 9;

using Index = std::unordered_map<absl::string_view, int32_t>;

// Parses an input "name", "name:3" or "^name". False if it is malformed or not
// in the graph.
bool ParseInput(absl::string_view text, const Index& index, int32_t* source,
                int32_t* output) {
  *output = 0;
  auto found = index.find(text);
  if (found == index.end()) {
    const bool control = !text.empty() && text[0] == '^';
    if (control) text.remove_prefix(1);
    const size_t colon = text.find(':');
    if (colon != absl::string_view::npos) {
      const absl::string_view digits = text.substr(colon + 1);
      if (digits.empty() || digits.size() > kMostDigits ||
          digits.find_first_not_of("0123456789") != absl::string_view::npos ||
          !absl::SimpleAtoi(digits, output)) {
        return false;
      }
      text = text.substr(0, colon);
    }
    if (control) *output = -1;
    found = index.find(text);
    if (found == index.end()) return false;
  }
  *source = found->second;
  return true;
}

void FindEdges(NodeTable* table) {
  const GraphDef& graph = table->graph;
  Index index;
  index.reserve(graph.node_size());
  for (int32_t i = 0; i < graph.node_size(); ++i) {
    if (!index.emplace(graph.node(i).name(), i).second) {
      table->faulty_node = i;
      table->faulty_input = -1;
      return;
    }
  }
  for (int32_t i = 0; i < graph.node_size(); ++i) {
    for (int32_t at = 0; at < graph.node(i).input_size(); ++at) {
      int32_t source, output;
      if (!ParseInput(graph.node(i).input(at), index, &source, &output)) {
        table->faulty_node = i;
        table->faulty_input = at;
        return;
      }
      table->edges.insert(table->edges.end(), {source, output, i});
    }
  }
}

// For these attributes, a kind only contains whether they are present, and
// whether they are empty. For example, every argument of a function has its own
// `index`.
bool IsShared(absl::string_view attribute) {
  return attribute == "_class" || attribute == "shared_name" ||
         attribute == "container" || attribute == "frame_name" ||
         attribute == "index";
}

void AppendPart(absl::string_view part, std::string* key) {
  const uint64_t size = part.size();
  key->append(reinterpret_cast<const char*>(&size), sizeof(size));
  key->append(part.data(), part.size());
}

std::string KindOf(const NodeDef& node) {
  using Attribute = std::pair<absl::string_view, const AttrValue*>;
  std::vector<Attribute> attributes;
  attributes.reserve(node.attr_size());
  for (const auto& [name, value] : node.attr()) {
    attributes.emplace_back(name, &value);
  }
  std::sort(attributes.begin(), attributes.end());
  std::string key, text;
  AppendPart(node.op(), &key);
  AppendPart(node.device(), &key);
  for (const auto& [name, value] : attributes) {
    AppendPart(name, &key);
    if (IsShared(name)) {
      key.push_back(value->value_case() == AttrValue::kS && value->s().empty());
    } else if (value->value_case() != AttrValue::kTensor) {
      value->SerializeToString(&text);
      AppendPart(text, &key);
    }
  }
  return key;
}

void FindKinds(NodeTable* table) {
  std::unordered_map<std::string, int32_t> known;
  table->kinds.reserve(table->graph.node_size());
  for (const NodeDef& node : table->graph.node()) {
    const auto kind = known.emplace(KindOf(node), known.size()).first;
    table->kinds.push_back(kind->second);
  }
}

}  // namespace
}  // namespace grappler
}  // namespace tensorflow

extern "C" {

using tensorflow::grappler::NodeTable;

// Null if the bytes are not a GraphDef.
void* gdp_nodes_new(const char* graph, size_t size) {
  auto* result = new NodeTable;
  if (!result->graph.ParseFromArray(graph, static_cast<int>(size))) {
    delete result;
    return nullptr;
  }
  // The two threads share only the graph, and only read it.
  std::thread kinds(tensorflow::grappler::FindKinds, result);
  tensorflow::grappler::FindEdges(result);
  kinds.join();
  return result;
}

// [E, 3]
const int32_t* gdp_nodes_edges(void* nodes) {
  return static_cast<NodeTable*>(nodes)->edges.data();
}

int64_t gdp_nodes_num_edges(void* nodes) {
  return static_cast<NodeTable*>(nodes)->edges.size() / 3;
}

// [N]
const int32_t* gdp_nodes_kinds(void* nodes) {
  return static_cast<NodeTable*>(nodes)->kinds.data();
}

int32_t gdp_nodes_faulty_node(void* nodes) {
  return static_cast<NodeTable*>(nodes)->faulty_node;
}

int32_t gdp_nodes_faulty_input(void* nodes) {
  return static_cast<NodeTable*>(nodes)->faulty_input;
}

void gdp_nodes_delete(void* nodes) { delete static_cast<NodeTable*>(nodes); }

}  // extern "C"

// The answer of the Python function, and how it is written into a graph.

#ifndef GDP_GRAPPLER_PLUGIN_PASS_RESPONSE_H_
#define GDP_GRAPPLER_PLUGIN_PASS_RESPONSE_H_

#include <algorithm>
#include <cstddef>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace tensorflow {
namespace grappler {

struct Response {
  std::vector<absl::string_view> devices;          // One per node.
  std::vector<std::pair<int, int>> control_edges;  // First, then.
};

inline bool ParseEdge(absl::string_view line, int num_nodes,
                      std::pair<int, int>* edge) {
  const size_t space = line.find(' ');
  if (space == absl::string_view::npos ||
      !absl::SimpleAtoi(line.substr(0, space), &edge->first) ||
      !absl::SimpleAtoi(line.substr(space + 1), &edge->second)) {
    return false;
  }
  return edge->first >= 0 && edge->first < num_nodes && edge->second >= 0 &&
         edge->second < num_nodes && edge->first != edge->second;
}

// Returns false unless the response is one device per node and then edges.
inline bool ParseResponse(absl::string_view text, int num_nodes,
                          const std::vector<std::string>& devices,
                          Response* response) {
  const std::unordered_set<absl::string_view> known(devices.begin(),
                                                    devices.end());
  response->devices.reserve(num_nodes);
  while (true) {
    const size_t end = text.find('\n');
    const absl::string_view line = text.substr(0, end);
    if (response->devices.size() < static_cast<size_t>(num_nodes)) {
      if (!known.count(line)) return false;
      response->devices.push_back(line);
    } else if (!ParseEdge(line, num_nodes,
                          &response->control_edges.emplace_back())) {
      return false;
    }
    if (end == absl::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return response->devices.size() == static_cast<size_t>(num_nodes);
}

inline bool HasDevices(const GraphDef& graph,
                       const std::vector<absl::string_view>& devices) {
  for (int i = 0; i < graph.node_size(); ++i) {
    if (graph.node(i).device() != devices[i]) return false;
  }
  return true;
}

inline void WriteDevices(const std::vector<absl::string_view>& devices,
                         GraphDef* graph) {
  for (int i = 0; i < graph->node_size(); ++i) {
    graph->mutable_node(i)->set_device(devices[i].data(), devices[i].size());
  }
}

// Appends control edges, because the control inputs of a node come last.
inline void WriteControlEdges(const std::vector<std::pair<int, int>>& edges,
                              GraphDef* graph) {
  for (const auto& [first, then] : edges) {
    const std::string input = absl::StrCat("^", graph->node(first).name());
    NodeDef* node = graph->mutable_node(then);
    if (std::find(node->input().begin(), node->input().end(), input) ==
        node->input().end()) {
      node->add_input(input);
    }
  }
}

}  // namespace grappler
}  // namespace tensorflow

#endif  // GDP_GRAPPLER_PLUGIN_PASS_RESPONSE_H_

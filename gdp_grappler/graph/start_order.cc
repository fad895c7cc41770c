#include "gdp_grappler/graph/start_order.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace tensorflow {
namespace grappler {
namespace {

// Followers that a node of TensorFlow's graph keeps in order (`EdgeSet`).
constexpr int kOrdered = 8;
// Grappler removes ops of type NoOp that only pass on control, but not these.
constexpr char kTrigger[] = "ControlTrigger";
// Marks the ops that are added. Their names change if a program imports them.
constexpr char kMark[] = "_gdp_start_order";
constexpr char kArgument[] = "_Arg";

bool IsOnGpu(const NodeDef& node) {
  return absl::StrContains(node.device(), "device:GPU:");
}

absl::string_view NodeOf(absl::string_view input) {
  return input.substr(0, input.find(':'));
}

// Ops by GPU, in the order of the graph: those that need nothing but arguments
// of their function. The arguments themselves start before all of them.
using Starts = std::map<std::string, std::vector<int>>;

class StartFinder {
 public:
  explicit StartFinder(const GraphDef& graph) : graph_(graph) {
    for (const NodeDef& node : graph.node()) {
      if (node.op() == kArgument) arguments_.emplace(node.name(), &node);
    }
  }

  // The values of GPUs whose ops all wait for others are empty.
  Starts Find() const {
    Starts result;
    for (int i = 0; i < graph_.node_size(); ++i) {
      const NodeDef& node = graph_.node(i);
      if (!IsOnGpu(node)) continue;
      std::vector<int>& starts = result[node.device()];
      if (MayWait(node) && NeedsOnlyArguments(node)) starts.push_back(i);
    }
    return result;
  }

 private:
  // Arguments, results and fed ops disappear from the graph that runs, and
  // conditions and loops have rules of their own.
  static bool MayWait(const NodeDef& node) {
    static const std::unordered_set<std::string>& others =
        *new std::unordered_set<std::string>{
            kArgument,     "_DeviceArg", "_Retval",       "_DeviceRetval",
            "Placeholder", "Enter",      "RefEnter",      "Exit",
            "RefExit",     "Merge",      "RefMerge",      "Switch",
            "RefSwitch",   "LoopCond",   "NextIteration", "RefNextIteration",
            kTrigger};
    return !others.count(node.op());
  }

  bool NeedsOnlyArguments(const NodeDef& node) const {
    for (const std::string& input : node.input()) {
      const auto argument = arguments_.find(NodeOf(input));
      if (argument == arguments_.end() ||
          argument->second->device() != node.device()) {
        return false;
      }
    }
    return true;
  }

  const GraphDef& graph_;
  std::unordered_map<absl::string_view, const NodeDef*> arguments_;
};

// A prefix for the names of triggers that no name of the graph has.
std::string NewPrefix(const GraphDef& graph) {
  std::string result = "gdp_start_order/";
  for (bool taken = true; taken;) {
    taken = false;
    for (const NodeDef& node : graph.node()) {
      taken = taken || absl::StartsWith(node.name(), result);
    }
    if (taken) result.insert(result.size() - 1, "_");
  }
  return result;
}

// Adds triggers that each precede up to `kOrdered` nodes; returns the triggers.
std::vector<int> AddLevel(const std::vector<int>& nodes,
                          const std::string& device, const std::string& prefix,
                          GraphDef* graph) {
  std::vector<int> result;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (i % kOrdered == 0) {
      result.push_back(graph->node_size());
      NodeDef* trigger = graph->add_node();
      trigger->set_name(absl::StrCat(prefix, result.back()));
      trigger->set_op(kTrigger);
      trigger->set_device(device);
      // Otherwise XLA could compile unrelated followers of a trigger together.
      (*trigger->mutable_attr())["_XlaCompile"].set_b(false);
      (*trigger->mutable_attr())[kMark].set_b(true);
    }
    graph->mutable_node(nodes[i])->add_input(
        absl::StrCat("^", graph->node(result.back()).name()));
  }
  return result;
}

bool IsAdded(const NodeDef& node) {
  return node.op() == kTrigger && node.attr().contains(kMark);
}

// Replaces the inputs of a node that are added triggers by what these wait for.
// A program may import a graph within `tf.control_dependencies`, and Grappler
// removes a control edge of an op if a trigger of this op has it as well.
void Bypass(
    const std::unordered_map<absl::string_view, const NodeDef*>& triggers,
    NodeDef* node) {
  const auto trigger_of = [&](const std::string& input) {
    return triggers.find(absl::StripPrefix(input, "^"));
  };
  if (std::none_of(node->input().begin(), node->input().end(),
                   [&](const std::string& input) {
                     return trigger_of(input) != triggers.end();
                   })) {
    return;
  }
  std::vector<std::string> inputs(node->input().begin(), node->input().end());
  std::unordered_set<std::string> known(inputs.begin(), inputs.end());
  node->clear_input();
  for (size_t i = 0; i < inputs.size(); ++i) {  // Grows in the loop.
    const auto found = trigger_of(inputs[i]);
    if (found == triggers.end()) {
      node->add_input(inputs[i]);
      continue;
    }
    for (const std::string& input : found->second->input()) {
      if (known.insert(input).second) inputs.push_back(input);
    }
  }
}

}  // namespace

bool HasStartOrder(const GraphDef& graph) {
  return std::any_of(graph.node().begin(), graph.node().end(), IsAdded);
}

void DropStartOrder(const std::unordered_set<std::string>& kept,
                    GraphDef* graph) {
  std::unordered_map<absl::string_view, const NodeDef*> triggers;
  for (const NodeDef& node : graph->node()) {
    if (IsAdded(node) && !kept.count(node.name())) {
      triggers.emplace(node.name(), &node);
    }
  }
  auto* nodes = graph->mutable_node();
  int end = 0;
  for (int i = 0; i < nodes->size(); ++i) {
    NodeDef* node = nodes->Mutable(i);
    if (triggers.count(node->name())) continue;
    Bypass(triggers, node);
    nodes->SwapElements(end++, i);
  }
  nodes->DeleteSubrange(end, nodes->size() - end);
}

void OrderStarts(GraphDef* graph) {
  const Starts starts = StartFinder(*graph).Find();
  if (starts.empty()) return;
  const std::string prefix = NewPrefix(*graph);
  for (const auto& [device, ops] : starts) {
    if (ops.size() < 2) continue;
    // Arguments are on the first level of the executor's queue, in any order.
    // With two levels of triggers all arguments come before the ops.
    std::vector<int> level = AddLevel(ops, device, prefix, graph);
    do {
      level = AddLevel(level, device, prefix, graph);
    } while (level.size() > 1);
  }
}

}  // namespace grappler
}  // namespace tensorflow

// Returns a serialized GraphDef after a change, which `free` deletes, or null
// if it is larger than 2 GB.
template <typename Change>
static char* Changed(const char* data, size_t size, const Change& change,
                     size_t* new_size) {
  tensorflow::GraphDef graph;
  if (!graph.ParseFromArray(data, static_cast<int>(size))) return nullptr;
  change(&graph);
  *new_size = graph.ByteSizeLong();
  char* result = static_cast<char*>(malloc(*new_size + 1));
  if (result != nullptr &&
      !graph.SerializeToArray(result, static_cast<int>(*new_size))) {
    free(result);
    return nullptr;
  }
  return result;
}

extern "C" {

// Both return what `Changed` does.
char* gdp_order_starts(const char* data, size_t size, size_t* new_size) {
  return Changed(data, size, tensorflow::grappler::OrderStarts, new_size);
}

char* gdp_drop_start_order(const char* data, size_t size, size_t* new_size) {
  const auto drop = [](tensorflow::GraphDef* graph) {
    tensorflow::grappler::DropStartOrder({}, graph);
  };
  return Changed(data, size, drop, new_size);
}

void gdp_delete_graph(char* graph) { free(graph); }

}  // extern "C"

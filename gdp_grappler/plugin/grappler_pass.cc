// The Grappler pass "gdp_placement", which calls a Python function.
//
// The pass itself refuses some graphs, because without Python a refusal takes
// only microseconds. For all other graphs the Python function gets a
// fingerprint, and the serialized graph if no answer is known. It answers with
// one device per node, and with control edges that keep ops in an order. The
// answer may also have another graph, the graph of an earlier instance of the
// same function. The devices and edges are then for that graph. Any other
// answer leaves the graph as it was.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "gdp_grappler/graph/start_order.h"
#include "gdp_grappler/plugin/graph_fingerprint.h"
#include "gdp_grappler/plugin/pass_response.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/grappler/grappler_item.h"
#include "tensorflow/core/grappler/optimizers/custom_graph_optimizer.h"
#include "tensorflow/core/grappler/optimizers/custom_graph_optimizer_registry.h"
#include "tensorflow/core/platform/protobuf.h"
#include "tensorflow/core/protobuf/rewriter_config.pb.h"
#include "tensorflow/core/util/device_name_utils.h"

extern "C" {

// The request to the Python function. A newline separates two items of a list.
// Mirrored by `library._Request`.
struct GdpRequest {
  const char* id;           // Name that the runtime gave to the graph.
  const char* fingerprint;  // Of nodes, inputs, attributes and devices.
  const char* settings;     // From the configuration, written by the hook.
  const char* feeds;
  const char* fetches;
  const char* devices;
  const char* graph;  // Null in the first call, which only reads the cache.
  size_t graph_size;
  int may_place;  // 0: the graph is only captured.
};

// Answers of the Python function.
enum {
  GDP_UNCHANGED = 0,
  GDP_PLACED = 1,
  GDP_NEEDS_GRAPH = 2,
  GDP_INTERRUPTED = 3,  // Send SIGINT: its handler raises an exception.
};

// A buffer from `gdp_allocate`, which the pass frees. Mirrored by
// `library._Buffer`.
struct GdpBuffer {
  char* data;
  size_t size;
};

// On GDP_PLACED `response` has one device per node and then any number of
// control edges, separated by newlines. An edge is two node numbers: "3 17"
// means that node 17 waits for node 3. `graph` is empty, or a GraphDef that
// replaces the graph of the request. The devices and edges are then for the
// nodes of this GraphDef.
typedef int (*GdpPlaceFunction)(const GdpRequest* request, GdpBuffer* response,
                                GdpBuffer* graph);

// Frees its buffer at the end of a scope, also after an exception.
struct OwnedBuffer : GdpBuffer {
  OwnedBuffer() : GdpBuffer{nullptr, 0} {}
  OwnedBuffer(const OwnedBuffer&) = delete;
  OwnedBuffer& operator=(const OwnedBuffer&) = delete;
  ~OwnedBuffer() { std::free(data); }
};

static std::atomic<GdpPlaceFunction> place_function{nullptr};

// Time spent in the pass by this process so far; for benchmarks.
static std::atomic<int64_t> pass_nanoseconds{0};

int64_t gdp_pass_nanoseconds() { return pass_nanoseconds.load(); }

void gdp_set_place_function(GdpPlaceFunction function) {
  place_function.store(function);
}

void* gdp_allocate(size_t size) { return std::malloc(size); }

}  // extern "C"

namespace tensorflow {
namespace grappler {
namespace {

// Whether ops can be placed on a device. They cannot on devices of other types,
// such as "XLA_GPU", "TPU_SYSTEM" and "COMPOSITE".
bool IsComputeDevice(const std::string& name) {
  DeviceNameUtils::ParsedName parsed;
  return DeviceNameUtils::ParseFullName(name, &parsed) &&
         (parsed.type == "CPU" || parsed.type == "GPU");
}

std::vector<std::string> ComputeDevices(const GrapplerItem& item) {
  std::vector<std::string> result;
  for (const std::string& name : item.devices()) {
    if (IsComputeDevice(name)) result.push_back(name);
  }
  std::sort(result.begin(), result.end());
  return result;
}

bool IsPlaced(const GraphDef& graph) {
  return std::all_of(
      graph.node().begin(), graph.node().end(),
      [](const NodeDef& node) { return !node.device().empty(); });
}

// Whether the user fixed an op by `scopes.pin`.
bool HasPin(const GraphDef& graph) {
  return std::any_of(
      graph.node().begin(), graph.node().end(),
      [](const NodeDef& node) { return node.attr().contains("_gdp_pin"); });
}

// Whether a graph can replace another: it must have the same arguments and
// results, and the nodes that are fetched.
bool MayReplace(const GrapplerItem& item, const GraphDef& graph) {
  std::unordered_map<absl::string_view, absl::string_view> ops;
  size_t ends = 0;
  const auto is_end = [](const NodeDef& node) {
    return node.op() == "_Arg" || node.op() == "_Retval";
  };
  for (const NodeDef& node : graph.node()) {
    ops[node.name()] = node.op();
    ends += is_end(node);
  }
  for (const NodeDef& node : item.graph.node()) {
    if (!is_end(node)) continue;
    const auto found = ops.find(node.name());
    if (found == ops.end() || found->second != node.op()) return false;
    --ends;
  }
  return ends == 0 && std::all_of(item.fetch.begin(), item.fetch.end(),
                                  [&](const std::string& fetch) {
                                    return ops.count(absl::string_view(
                                        fetch.data(), std::min(fetch.find(':'),
                                                               fetch.size())));
                                  });
}

}  // namespace

class GdpPlacement : public CustomGraphOptimizer {
 public:
  absl::Status Init(
      const RewriterConfig_CustomGraphOptimizer* config) override {
    if (config == nullptr) return absl::OkStatus();
    for (const auto& [key, value] : config->parameter_map()) {
      if (key == "settings") settings_ = value.s();
      if (key == "capture") capture_ = value.b();
      if (key == "anywhere") anywhere_ = value.b();
      if (key == "min_ops") min_ops_ = value.i();
      if (key == "iterations") iterations_ = value.i();
    }
    return absl::OkStatus();
  }

  std::string name() const override { return "gdp_placement"; }

  // A captured graph has to run, so it needs its functions.
  bool UsesFunctionLibrary() const override { return true; }

  absl::Status Optimize(Cluster*, const GrapplerItem& item,
                        GraphDef* optimized_graph) override {
    const auto start = std::chrono::steady_clock::now();
    absl::Status status;
    try {
      status = Place(item, optimized_graph);
    } catch (const std::exception& error) {
      status = absl::AbortedError(error.what());
    }
    pass_nanoseconds +=
        std::chrono::nanoseconds(std::chrono::steady_clock::now() - start)
            .count();
    return status;
  }

 private:
  absl::Status Place(const GrapplerItem& item, GraphDef* optimized_graph) {
    const GdpPlaceFunction place = place_function.load();
    if (place == nullptr) return absl::AbortedError("no placer");
    // The meta optimizer calls the same object once per iteration. Only the
    // last call counts. If devices were set earlier, later rewrites would
    // depend on them, and could change how results round.
    if (++calls_ != iterations_) return absl::AbortedError("not the last call");
    if (item.graph.node_size() < min_ops_ && !HasPin(item.graph)) {
      return absl::AbortedError("small graph");
    }
    const std::vector<std::string> devices = ComputeDevices(item);
    // The devices of a library function are known only when it is called.
    if (devices.empty()) return absl::AbortedError("library function");
    const bool may_place =
        !settings_.empty() && (devices.size() > 1 || anywhere_);
    if (!may_place && !capture_) return absl::AbortedError("one device");
    if (!IsPlaced(item.graph)) return absl::AbortedError("not placed yet");
    if (!HasStartOrder(item.graph)) {
      return Ask(place, item, devices, may_place, optimized_graph);
    }
    // A copy, because an answer may leave the graph as it was.
    GrapplerItem unordered(item);
    DropStartOrder(item.NodesToPreserve(), &unordered.graph);
    return Ask(place, unordered, devices, may_place, optimized_graph);
  }

  absl::Status Ask(GdpPlaceFunction place, const GrapplerItem& item,
                   const std::vector<std::string>& devices, bool may_place,
                   GraphDef* optimized_graph) {
    std::string feeds;
    for (const auto& feed : item.feed) {
      feeds.append(feeds.empty() ? "" : "\n").append(feed.first);
    }
    const std::string fetches = absl::StrJoin(item.fetch, "\n");
    const std::string device_list = absl::StrJoin(devices, "\n");
    const std::string fingerprint = Fingerprint(item.graph);
    GdpRequest request{
        item.id.c_str(),   fingerprint.c_str(), settings_.c_str(),
        feeds.c_str(),     fetches.c_str(),     device_list.c_str(),
        /*graph=*/nullptr, /*graph_size=*/0,    may_place ? 1 : 0};
    OwnedBuffer response, replacement;
    int answer = place(&request, &response, &replacement);
    if (answer == GDP_NEEDS_GRAPH) {
      const std::string graph = item.graph.SerializeAsString();
      request.graph = graph.data();
      request.graph_size = graph.size();
      answer = place(&request, &response, &replacement);
    }
    // Python ignores exceptions that a callback raises. So `interrupts.py` has
    // installed a handler of SIGINT. The handler raises the program's exception
    // now, after the callback has returned.
    if (answer == GDP_INTERRUPTED) std::raise(SIGINT);
    return answer == GDP_PLACED && response.data != nullptr
               ? Apply(response, replacement, item, devices, optimized_graph)
               : absl::AbortedError("unchanged");
  }

  static absl::Status Apply(const GdpBuffer& response,
                            const GdpBuffer& replacement,
                            const GrapplerItem& item,
                            const std::vector<std::string>& devices,
                            GraphDef* optimized_graph) {
    const bool replaces = replacement.data != nullptr;
    GraphDef other;
    if (replaces &&
        (!ParseProtoUnlimited(&other, replacement.data, replacement.size) ||
         !MayReplace(item, other))) {
      return absl::AbortedError("graph of another function");
    }
    Response parsed;
    if (!ParseResponse(absl::string_view(response.data, response.size),
                       (replaces ? other : item.graph).node_size(), devices,
                       &parsed)) {
      return absl::AbortedError("malformed response");
    }
    if (!replaces && parsed.control_edges.empty() &&
        HasDevices(item.graph, parsed.devices)) {
      return absl::AbortedError("unchanged");
    }
    // The meta optimizer moved the graph out of its result for this call, and
    // drops the graph after a success. So the graph can be moved and not
    // copied. If the answer is cached, a copy would take longer than all other
    // work.
    optimized_graph->Swap(replaces ? &other
                                   : const_cast<GraphDef*>(&item.graph));
    WriteDevices(parsed.devices, optimized_graph);
    WriteControlEdges(parsed.control_edges, optimized_graph);
    OrderStarts(optimized_graph);
    return absl::OkStatus();
  }

  std::string settings_;
  bool capture_ = false;
  bool anywhere_ = false;
  int64_t min_ops_ = 0;
  int64_t iterations_ = 1;
  int64_t calls_ = 0;
};

namespace {

// TensorFlow ends the process if a name is registered twice. A second copy of
// this library would do that.
bool Register() {
  const std::string name = "gdp_placement";
  const std::vector<std::string> known =
      CustomGraphOptimizerRegistry::GetRegisteredOptimizers();
  if (std::find(known.begin(), known.end(), name) != known.end()) return false;
  CustomGraphOptimizerRegistry::RegisterOptimizerOrDie(
      [] { return new GdpPlacement; }, name);
  return true;
}

const bool is_registered = Register();

}  // namespace
}  // namespace grappler
}  // namespace tensorflow

// Whether the pass of this copy of the library is the one that TensorFlow runs.
extern "C" int gdp_is_registered() {
  return tensorflow::grappler::is_registered ? 1 : 0;
}

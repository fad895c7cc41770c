// What the simulator reads and what it writes: a graph on a cluster, laid out
// once, and the schedule of one step.

#ifndef GDP_GRAPPLER_EVALUATION_SIMULATOR_GRAPH_H_
#define GDP_GRAPPLER_EVALUATION_SIMULATOR_GRAPH_H_

#include <cstdint>
#include <limits>
#include <vector>

namespace gdp {

constexpr int32_t kNone = -1;
constexpr int32_t kMaxChannels = 8;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// An op as far as it does not depend on its device.
struct Op {
  int64_t own_bytes;  // Of all outputs; 0 if they alias an input.
  int32_t first_output, first_input;  // They end where the next op's begin.
  bool alias;
};

// One tensor of an op, or (tensor == kNone) all its control edges.
struct Output {
  int64_t bytes;
  int32_t tensor;
  int32_t first_edge;  // Its edges end where the next output's begin.
};

struct Edge {
  int32_t target;
  int32_t input;  // Among the data edges by consumer; kNone: a control edge.
};

struct Param {
  int32_t op;
  int64_t bytes;
};

struct Link {
  double latency_s;
  double bytes_per_s;
  int32_t channels[kMaxChannels];  // The last one repeats.
};

// What the host and the driver take for an asynchronous device; see
// `cluster.Device`. Python writes rows of these.
struct HostTimes {
  double dispatch_s, visit_s, copy_dispatch_s, lock_s, gap_s, switch_s,
      callback_s, poll_s;
};

// What a schedule reports of a transfer.
struct Transfer {
  int32_t tensor, op, source, target;
  double start_s, end_s;
};

// What it reports of a unit's work for a transfer.
struct Work {
  int32_t transfer, device, slot;
  double start_s, end_s;
};

struct MemoryPoint {
  double time_s;
  int64_t bytes;
  int32_t pool;
};

struct Schedule {
  std::vector<double> start_s, end_s;  // By topological position.
  std::vector<int32_t> slot;           // By topological position.
  std::vector<Transfer> transfers;
  std::vector<Work> works;
  std::vector<MemoryPoint> memory;
};

// A graph on a cluster. Ops are numbered by topological position unless said
// otherwise; edges are sorted by producer, then tensor (control edges last),
// then as in the graph.
struct Graph {
  int32_t num_ops, num_devices, num_edges, num_inputs, num_groups, num_pools,
      num_units, num_channels, channels_per_link;
  double step_s;
  bool copy_work;                   // Some device has no copy engines.
  bool contended;                   // Some device has contention.
  bool streams;                     // Some device is asynchronous.
  bool cut;                         // Some card is cut into several devices.
  std::vector<int32_t> order;       // [N] position -> op of the graph.
  std::vector<int32_t> position;    // [N] by op of the graph.
  std::vector<int32_t> group;       // [N] by op of the graph.
  std::vector<int32_t> waiting;     // [N] by op of the graph: its edges.
  std::vector<uint8_t> allowed;     // [G, D]
  std::vector<double> seconds;      // [N, D]
  std::vector<int64_t> workspace;   // [N, D], or empty: there is none.
  std::vector<Op> ops;              // [N + 1]
  std::vector<Output> outputs;      // [O + 1]
  std::vector<Edge> edges;          // [E]
  std::vector<int32_t> roots;       // Ops that wait for nothing.
  std::vector<Param> params;        // Ops that hold parameters.
  std::vector<int32_t> unit, pool;  // [D]
  std::vector<int32_t> slots;       // [units]
  std::vector<double> copy_s, copy_bytes_per_s;  // [D]
  std::vector<uint8_t> asynchronous;             // [D]
  std::vector<HostTimes> host;                   // [D]
  std::vector<int32_t> context;                  // [D]
  // [D] there are other asynchronous devices in the context.
  std::vector<uint8_t> shares_context;
  std::vector<double> runs;       // [N] how often an op runs, at least once.
  std::vector<double> launches;   // [N] kernels that it launches then.
  std::vector<double> host_work;  // [N] beyond bare launches, in dispatches.
  // [N] by op of the graph, or empty: all are 1.
  std::vector<double> dispatch_factors, poll_factors;
  std::vector<int32_t> bus;        // [units], kNone: its own.
  std::vector<double> contention;  // [D]
  std::vector<Link> links;         // [D, D]
  // If cut: [D] the number of the card, kNone if it is not shared; [N, D] what
  // share of a card ops can use.
  std::vector<int32_t> card;
  std::vector<double> card_share;
};

}  // namespace gdp

#endif  // GDP_GRAPPLER_EVALUATION_SIMULATOR_GRAPH_H_

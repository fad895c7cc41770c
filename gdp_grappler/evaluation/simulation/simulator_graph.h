// Input and output of the simulator: a graph on a cluster, prepared once, and
// the schedule of one step.

#ifndef GDP_GRAPPLER_EVALUATION_SIMULATOR_GRAPH_H_
#define GDP_GRAPPLER_EVALUATION_SIMULATOR_GRAPH_H_

#include <cstdint>
#include <limits>
#include <vector>

namespace gdp {

constexpr int32_t kNone = -1;
constexpr int32_t kMaxChannels = 8;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The data of an op that do not depend on its device.
struct Op {
  // Bytes of outputs on the op's device, and on its host; 0 if `alias`.
  int64_t own_bytes, host_bytes;
  int32_t first_output, first_input;  // The ranges end at those of the next op.
  bool alias;                         // See `SimulatorLayout.aliases`.
};

// One tensor of an op, or (tensor == kNone) all its control edges.
struct Output {
  int64_t bytes;
  int32_t tensor;
  // The edges end at the first edge of the next output.
  uint32_t first_edge : 31;
  uint32_t on_host : 1;  // An op on a GPU makes the tensor on the host.
};

struct Edge {
  uint32_t target : 31;
  uint32_t on_host : 1;  // A target on a GPU reads the tensor on the host.
  int32_t input;  // Index of the data edge by consumer; kNone: control edge.
};

struct Param {
  int32_t op;
  int64_t bytes;
};

struct Link {
  double latency_s;
  double bytes_per_s;
  // A link with fewer channels repeats its last channel.
  int32_t channels[kMaxChannels];
};

// Seconds of the host and the driver for an asynchronous device; see
// `cluster.Device`. Python writes arrays of this struct.
struct HostTimes {
  double dispatch_s, visit_s, copy_dispatch_s, lock_s, gap_s, switch_s,
      callback_s, poll_s;
};

// A transfer in a schedule.
struct Transfer {
  int32_t tensor, op, source, target;
  double start_s, end_s;
};

// Work of a compute unit for a transfer in a schedule.
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
  // [N] by topological position. An asynchronous device starts the kernels of
  // an op after a thread has dispatched the op.
  std::vector<double> start_s, end_s, dispatched_s;
  std::vector<int32_t> slot;  // By topological position.
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
  std::vector<uint8_t> on_host;     // [N] by op of the graph.
  std::vector<int32_t> hosts;       // [D] where all that is `on_host` is.
  std::vector<int32_t> waiting;     // [N] by op of the graph: incoming edges.
  std::vector<uint8_t> allowed;     // [G, D]
  std::vector<double> seconds;      // [N, D]
  std::vector<int64_t> workspace;   // [N, D], or empty: all are 0.
  std::vector<Op> ops;              // [N + 1]
  std::vector<Output> outputs;      // [O + 1]
  std::vector<Edge> edges;          // [E]
  std::vector<int32_t> roots;       // Ops without inputs.
  std::vector<Param> params;        // Ops that hold parameters.
  std::vector<int32_t> unit, pool;  // [D]
  std::vector<int32_t> slots;       // [units]
  std::vector<double> copy_s, copy_bytes_per_s;  // [D]
  std::vector<uint8_t> asynchronous;             // [D]
  std::vector<HostTimes> host;                   // [D]
  std::vector<int32_t> context;                  // [D]
  // [D] whether the context has other asynchronous devices.
  std::vector<uint8_t> shares_context;
  std::vector<double> runs;       // [N] executions in a step, at least 1.
  std::vector<double> launches;   // [N] kernels launched in a step.
  std::vector<double> host_work;  // [N] further work, in units of dispatch_s.
  // [N] by op of the graph, or empty: all are 1.
  std::vector<double> dispatch_factors, poll_factors;
  std::vector<int32_t> bus;        // [units], kNone: a bus of its own.
  std::vector<double> contention;  // [D]
  std::vector<Link> links;         // [D, D]
  // Empty unless `cut`: [D] number of the card, kNone if the card is not
  // shared; [N, D] share of its card that an op can use.
  std::vector<int32_t> card;
  std::vector<double> card_share;
};

}  // namespace gdp

#endif  // GDP_GRAPPLER_EVALUATION_SIMULATOR_GRAPH_H_

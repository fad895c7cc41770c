// A graph on a cluster in the layout that the features of moves need.

#ifndef GDP_GRAPPLER_FEATURES_MOVES_MOVE_GRAPH_H_
#define GDP_GRAPPLER_FEATURES_MOVES_MOVE_GRAPH_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gdp_grappler/rows.h"

extern "C" {

// Sizes: N ops, E edges, T tensors, G groups, D devices, P memory pools, U
// compute units.
struct GdpMoveGraph {
  int32_t num_ops, num_edges, num_tensors, num_groups, num_devices, num_pools,
      num_units;
  const int32_t* edges;         // [E, 2]
  const int32_t* edge_tensors;  // [E], -1 for a control edge
  const double* tensor_bytes;   // [T]
  const int32_t* groups;        // [N]
  const int32_t* order;         // [N], producers before consumers
  const double* seconds;        // [N, D], of the device or of its host
  const double* memory_bytes;   // [N]
  const double* own_s;          // [N, D], of the device alone
  const double* host_s;         // [N, D], of the dispatch
  const uint8_t* asynchronous;  // [D]
  const double* issue_s;        // [D, D], of the issue of a copy
  const double* wire_s;         // [D, D], until the first byte arrives
  const double* callback_s;     // [D, D], of a notification at the first look
  const double* poll_s;         // [D, D], more, if there is a second look
  const double* latency_s;      // [D, D], until the receiver is notified
  const double* bytes_per_s;    // [D, D]
  const int32_t* pools;         // [D]
  const double* pool_bytes;     // [P]
  const int32_t* units;         // [D]
  const uint8_t* serial;        // [U], runs one op at a time
};

}  // extern "C"

namespace gdp {

constexpr int32_t kNobody = -1;

// A tensor of an op, or all its control edges, with the consumers.
struct Net {
  double bytes;
  int32_t producer;
  int32_t first_pin;  // Pins end where the next net's begin.
};

struct MoveGraph {
  int32_t num_ops, num_groups, num_devices, num_pools, num_units;
  std::vector<int32_t> group, position;  // [N]
  std::vector<double> group_seconds;     // [G, D]
  std::vector<double> group_bytes;       // [G]
  double total_bytes = 0;
  std::vector<float> own_s, host_s;                         // [N, D]
  std::vector<uint8_t> asynchronous;                        // [D]
  std::vector<double> issue_s, wire_s, callback_s, poll_s;  // [D, D]
  std::vector<double> latency_s, bytes_per_s;               // [D, D]
  std::vector<int32_t> pool, unit;                          // [D]
  std::vector<double> pool_bytes;                           // [P]
  std::vector<uint8_t> serial;                              // [U]
  std::vector<Net> nets;                                    // [H + 1]
  std::vector<int32_t> pins;  // Consuming ops of all nets.
  Rows nets_of_op;            // Nets that an op produces.
  Rows nets_of_group;         // Nets between a group and others.
  std::vector<int32_t> net_of_tensor, net_of_control;  // [T], [N]

  explicit MoveGraph(const GdpMoveGraph& g)
      : num_ops(g.num_ops),
        num_groups(g.num_groups),
        num_devices(g.num_devices),
        num_pools(g.num_pools),
        num_units(g.num_units),
        group(g.groups, g.groups + g.num_ops),
        position(g.num_ops),
        group_seconds(int64_t{g.num_groups} * g.num_devices),
        group_bytes(g.num_groups),
        own_s(g.own_s, g.own_s + int64_t{g.num_ops} * g.num_devices),
        host_s(g.host_s, g.host_s + int64_t{g.num_ops} * g.num_devices),
        asynchronous(g.asynchronous, g.asynchronous + g.num_devices),
        issue_s(g.issue_s, g.issue_s + g.num_devices * g.num_devices),
        wire_s(g.wire_s, g.wire_s + g.num_devices * g.num_devices),
        callback_s(g.callback_s, g.callback_s + g.num_devices * g.num_devices),
        poll_s(g.poll_s, g.poll_s + g.num_devices * g.num_devices),
        latency_s(g.latency_s, g.latency_s + g.num_devices * g.num_devices),
        bytes_per_s(g.bytes_per_s,
                    g.bytes_per_s + g.num_devices * g.num_devices),
        pool(g.pools, g.pools + g.num_devices),
        unit(g.units, g.units + g.num_devices),
        pool_bytes(g.pool_bytes, g.pool_bytes + g.num_pools),
        serial(g.serial, g.serial + g.num_units),
        net_of_tensor(g.num_tensors, kNobody),
        net_of_control(g.num_ops, kNobody) {
    for (int32_t i = 0; i < num_ops; ++i) position[g.order[i]] = i;
    for (int32_t op = 0; op < num_ops; ++op) {
      for (int32_t d = 0; d < num_devices; ++d) {
        group_seconds[int64_t{group[op]} * num_devices + d] +=
            g.seconds[int64_t{op} * num_devices + d];
      }
      group_bytes[group[op]] += g.memory_bytes[op];
      total_bytes += g.memory_bytes[op];
    }
    LayOutNets(g);
  }

  double TransferSeconds(const Net& net, int32_t from, int32_t to) const {
    const int32_t link = from * num_devices + to;
    return latency_s[link] + net.bytes / bytes_per_s[link];
  }

 private:
  void LayOutNets(const GdpMoveGraph& g) {
    std::vector<int32_t> net_of_edge(g.num_edges), targets(g.num_edges);
    for (int32_t e = 0; e < g.num_edges; ++e) {
      const int32_t tensor = g.edge_tensors[e], producer = g.edges[2 * e];
      int32_t& net =
          tensor < 0 ? net_of_control[producer] : net_of_tensor[tensor];
      if (net == kNobody) {
        net = static_cast<int32_t>(nets.size());
        nets.push_back({tensor < 0 ? 0 : g.tensor_bytes[tensor], producer, 0});
      }
      net_of_edge[e] = net;
      targets[e] = g.edges[2 * e + 1];
    }
    const int32_t count = static_cast<int32_t>(nets.size());
    Rows rows;
    rows.Fill(count, net_of_edge, targets);
    pins = std::move(rows.values);
    nets.push_back({0, kNobody, 0});
    std::vector<int32_t> producers, all, of_groups, joining;
    std::vector<int32_t> seen(num_groups, kNobody);
    for (int32_t n = 0; n <= count; ++n) {
      nets[n].first_pin = rows.starts[n];
      if (n == count) break;
      producers.push_back(nets[n].producer);
      all.push_back(n);
      const int32_t own = group[nets[n].producer];
      seen[own] = n;
      bool crossing = false;
      for (int32_t p = rows.starts[n]; p < rows.starts[n + 1]; ++p) {
        const int32_t other = group[pins[p]];
        if (seen[other] == n) continue;
        seen[other] = n;
        crossing = true;
        of_groups.push_back(other);
        joining.push_back(n);
      }
      if (crossing) {
        of_groups.push_back(own);
        joining.push_back(n);
      }
    }
    nets_of_op.Fill(num_ops, producers, all);
    nets_of_group.Fill(num_groups, of_groups, joining);
  }
};

}  // namespace gdp

#endif  // GDP_GRAPPLER_FEATURES_MOVES_MOVE_GRAPH_H_

// A placement and its simulated step, with the slack of ops and loads of
// devices.

#ifndef GDP_GRAPPLER_FEATURES_MOVES_MOVE_INCUMBENT_H_
#define GDP_GRAPPLER_FEATURES_MOVES_MOVE_INCUMBENT_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gdp_grappler/features/moves/move_graph.h"

extern "C" {

// Arrays of a simulated step with M transfers.
struct GdpMoveSchedule {
  const int32_t* devices;      // [G]
  const double* start_s;       // [N]
  const double* end_s;         // [N]
  const double* dispatched_s;  // [N]
  double step_s;               // Positive.
  int32_t num_transfers;
  const int32_t* transfer_tensors;   // [M], -1 for control edges
  const int32_t* transfer_ops;       // [M]
  const int32_t* transfer_targets;   // [M]
  const double* transfer_arrival_s;  // [M]
  const double* peak_bytes;          // [P]
};

}  // extern "C"

namespace gdp {

// Number of bins: intervals of equal length into which the step is divided.
constexpr int32_t kBins = 64;
// An op with this share of the step as slack counts as half critical.
constexpr double kCriticalShare = 0.02;

// Sums of a group, in one cache line, because groups are read in random order.
struct alignas(64) GroupTimes {
  double work_s;
  double critical_s;  // Work times criticality.
  double waiting_s, longest_wait_s;
  double slack_s;           // Smallest slack.
  double weighted_slack_s;  // Sum of slack times work.
  double first_s, last_s;   // First start and last end.
};

// The bins in which a group begins and ends.
struct GroupBins {
  uint8_t first, last;
  uint8_t middle;  // Bin of the middle of the group's work.
};
static_assert(kBins <= 256);

struct Incumbent {
  const MoveGraph& graph;
  double step_s = 0;
  std::vector<int32_t> devices;                           // [G]
  std::vector<double> start_s, end_s, latest_s, ready_s;  // [N]
  std::vector<double> critical;                           // [N], 0 to 1.
  std::vector<int32_t> order;      // [N], ops by dispatch, producers first.
  std::vector<double> arrival_s;   // Arrivals of nets at pins.
  std::vector<GroupTimes> groups;  // [G]
  std::vector<GroupBins> bins;     // [G]
  std::vector<double> load_s, critical_load_s, out_s, in_s;  // [D]
  std::vector<double> busy_s;                                // [D, kBins]
  std::vector<double> peak_bytes;                            // [P]
  double total_s = 0;

  explicit Incumbent(const MoveGraph& g) : graph(g) {}

  // Falls from 1 without slack towards 0.
  double Criticality(double slack_s) const {
    const double x = std::max(slack_s, 0.) / half_critical_s_;
    return 1 / (1 + x * x);
  }

  // Finds groups that another placement [G] has on other devices. Groups are
  // compared in blocks, because most stay. The loop over a block has no branch.
  void FindMoved(const int32_t* next, std::vector<int32_t>* moved) const {
    constexpr int32_t kBlock = 64;
    const int32_t* now = devices.data();
    moved->clear();
    for (int32_t first = 0; first < graph.num_groups; first += kBlock) {
      const int32_t last = std::min(first + kBlock, graph.num_groups);
      if (std::equal(now + first, now + last, next + first)) continue;
      int32_t found[kBlock], count = 0;
      for (int32_t g = first; g < last; ++g) {
        found[count] = g;
        count += next[g] != now[g];
      }
      moved->insert(moved->end(), found, found + count);
    }
  }

  void Observe(const GdpMoveSchedule& s) {
    step_s = s.step_s;
    half_critical_s_ = kCriticalShare * step_s;
    devices.assign(s.devices, s.devices + graph.num_groups);
    start_s.assign(s.start_s, s.start_s + graph.num_ops);
    end_s.assign(s.end_s, s.end_s + graph.num_ops);
    peak_bytes.assign(s.peak_bytes, s.peak_bytes + graph.num_pools);
    KeepTransfers(s);
    SetOrder(s.dispatched_s);
    FindSlack();
    SumUpGroups();
    SumUpDevices();
  }

 private:
  double half_critical_s_ = 0;  // Slack of a half critical op.
  std::vector<int32_t> first_transfer_, next_, target_;
  std::vector<double> transfer_arrival_s_;

  int32_t DeviceOf(int32_t op) const { return devices[graph.group[op]]; }

  // The bin of a time from 0 to the end of the step.
  int32_t BinOf(double time_s) const {
    const double bin = time_s / step_s * kBins;
    return bin > 0 ? static_cast<int32_t>(std::min(bin, kBins - 1.)) : 0;
  }

  // Time at which a net arrives on a device.
  double Arrival(int32_t net, int32_t device) const {
    const Net& n = graph.nets[net];
    const int32_t home = DeviceOf(n.producer);
    if (device == home) return end_s[n.producer];
    for (int32_t t = first_transfer_[net]; t != kNobody; t = next_[t]) {
      if (target_[t] == device) return transfer_arrival_s_[t];
    }
    return end_s[n.producer] + graph.TransferSeconds(n, home, device);
  }

  void KeepTransfers(const GdpMoveSchedule& s) {
    first_transfer_.assign(graph.nets.size(), kNobody);
    next_.assign(s.num_transfers, kNobody);
    target_.assign(s.transfer_targets, s.transfer_targets + s.num_transfers);
    transfer_arrival_s_.assign(s.transfer_arrival_s,
                               s.transfer_arrival_s + s.num_transfers);
    for (int32_t t = 0; t < s.num_transfers; ++t) {
      const int32_t tensor = s.transfer_tensors[t];
      const int32_t net = tensor < 0 ? graph.net_of_control[s.transfer_ops[t]]
                                     : graph.net_of_tensor[tensor];
      next_[t] = first_transfer_[net];
      first_transfer_[net] = t;
    }
  }

  // Sorts ops by the ends of their dispatches. An op that launches no kernel is
  // dispatched while earlier kernels of its device wait. What it hands on is
  // there only when they have ended, so it counts as an op of that time.
  void SetOrder(const double* dispatched_s) {
    order.resize(graph.num_ops);
    for (int32_t i = 0; i < graph.num_ops; ++i) order[graph.position[i]] = i;
    std::stable_sort(order.begin(), order.end(),
                     [dispatched_s](int32_t a, int32_t b) {
                       return dispatched_s[a] < dispatched_s[b];
                     });
    std::vector<double> filled_s(graph.num_devices, 0);
    for (const int32_t op : order) {
      const int32_t device = DeviceOf(op);
      if (!graph.asynchronous[device]) continue;
      double& filled = filled_s[device];
      if (end_s[op] > start_s[op]) {
        filled = std::max(filled, end_s[op]);
      } else {
        start_s[op] = end_s[op] = std::max(end_s[op], filled);
      }
    }
  }

  // Finds the latest start of each op, and the time when its inputs are there.
  void FindSlack() {
    latest_s.assign(graph.num_ops, 0);
    ready_s.assign(graph.num_ops, 0);
    arrival_s.resize(graph.pins.size());
    std::vector<double> next_s(graph.num_units, step_s);
    for (int32_t i = graph.num_ops; i-- > 0;) {
      const int32_t op = order[i], unit = graph.unit[DeviceOf(op)];
      double end = graph.serial[unit] ? next_s[unit] : step_s;
      for (const int32_t net : graph.nets_of_op[op]) {
        end = std::min(end, LatestEnd(net));
      }
      latest_s[op] = end - (end_s[op] - start_s[op]);
      next_s[unit] = latest_s[op];
    }
    critical.resize(graph.num_ops);
    for (int32_t op = 0; op < graph.num_ops; ++op) {
      critical[op] = Criticality(latest_s[op] - start_s[op]);
    }
  }

  double LatestEnd(int32_t net) {
    const Net& n = graph.nets[net];
    double result = step_s;
    for (int32_t p = n.first_pin; p < graph.nets[net + 1].first_pin; ++p) {
      const int32_t consumer = graph.pins[p];
      const double arrival = Arrival(net, DeviceOf(consumer));
      arrival_s[p] = arrival;
      ready_s[consumer] = std::max(ready_s[consumer], arrival);
      result =
          std::min(result, latest_s[consumer] - (arrival - end_s[n.producer]));
    }
    return result;
  }

  void SumUpGroups() {
    const int32_t count = graph.num_groups;
    groups.assign(count, {0, 0, 0, 0, step_s, 0, step_s, 0});
    std::vector<double> middle(count), weight(count);
    for (int32_t op = 0; op < graph.num_ops; ++op) {
      const int32_t g = graph.group[op];
      const double work = end_s[op] - start_s[op];
      const double slack = std::max(latest_s[op] - start_s[op], 0.);
      const double wait = std::max(start_s[op] - ready_s[op], 0.);
      GroupTimes& t = groups[g];
      t.critical_s += work * critical[op];
      t.waiting_s += wait;
      t.longest_wait_s = std::max(t.longest_wait_s, wait);
      t.slack_s = std::min(t.slack_s, slack);
      t.weighted_slack_s += work * slack;
      t.first_s = std::min(t.first_s, start_s[op]);
      t.last_s = std::max(t.last_s, end_s[op]);
      middle[g] += (work + 1e-9) * (start_s[op] + end_s[op]) / 2;
      weight[g] += work + 1e-9;
    }
    bins.resize(count);
    for (int32_t g = 0; g < count; ++g) {
      GroupTimes& t = groups[g];
      t.work_s =
          graph.group_seconds[int64_t{g} * graph.num_devices + devices[g]];
      const int32_t first = BinOf(t.first_s);
      bins[g] = {static_cast<uint8_t>(first),
                 static_cast<uint8_t>(std::max(BinOf(t.last_s), first)),
                 static_cast<uint8_t>(
                     BinOf(weight[g] > 0 ? middle[g] / weight[g] : 0))};
    }
  }

  void SumUpDevices() {
    for (auto* column : {&load_s, &critical_load_s, &out_s, &in_s}) {
      column->assign(graph.num_devices, 0);
    }
    busy_s.assign(graph.num_devices * kBins, 0);
    total_s = 0;
    const double width = step_s / kBins;
    for (int32_t g = 0; g < graph.num_groups; ++g) {
      load_s[devices[g]] += groups[g].work_s;
      critical_load_s[devices[g]] += groups[g].critical_s;
      total_s += groups[g].work_s;
    }
    for (int32_t op = 0; op < graph.num_ops; ++op) {
      double* busy = &busy_s[DeviceOf(op) * kBins];
      double at = start_s[op];
      for (int32_t b = BinOf(at); at < end_s[op] && b < kBins; ++b) {
        const double until = std::min(end_s[op], (b + 1) * width);
        busy[b] += std::max(until - at, 0.);
        at = until;
      }
    }
    for (size_t n = 0; n + 1 < graph.nets.size(); ++n) {
      for (int32_t t = first_transfer_[n]; t != kNobody; t = next_[t]) {
        const int32_t from = DeviceOf(graph.nets[n].producer);
        const double seconds =
            graph.TransferSeconds(graph.nets[n], from, target_[t]);
        out_s[from] += seconds;
        in_s[target_[t]] += seconds;
      }
    }
  }
};

}  // namespace gdp

#endif  // GDP_GRAPPLER_FEATURES_MOVES_MOVE_INCUMBENT_H_

// The state of a list scheduler: placed tasks, used memory, planned transfers.

#ifndef GDP_GRAPPLER_PLACERS_LIST_SCHEDULING_SCHEDULE_STATE_H_
#define GDP_GRAPPLER_PLACERS_LIST_SCHEDULING_SCHEDULE_STATE_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "gdp_grappler/placers/list_scheduling/timeline.h"
#include "gdp_grappler/rows.h"

// M tasks, T tensors, U uses, B bundles, D devices. A tensor of 0 bytes stands
// for control edges.
struct GdpTasks {
  int32_t num_tasks, num_tensors, num_uses, num_bundles;
  const int32_t* tensor_task;   // [T] the task that computes the tensor.
  const int64_t* tensor_bytes;  // [T]
  const int32_t* uses;          // [U, 2] tensor and another task, by tensor.
  const int32_t* bundle;        // [M] tasks of one bundle share a device.
  const int64_t* bundle_bytes;  // [B] memory.
  const uint8_t* allowed;       // [B, D]
  const double* seconds;        // [M, D]
  const int32_t* favourite;     // [M] favourite child or -1.
};

struct GdpMachines {
  int32_t num_devices, num_units, num_pools, num_channels, channels_per_link;
  const int32_t* units;            // [D]
  const int32_t* pools;            // [D]
  const int32_t* slots;            // [units]
  const double* copy_s;            // [D]
  const double* copy_bytes_per_s;  // [D]
  const double* latency_s;         // [D, D]
  const double* bytes_per_s;       // [D, D]
  const int32_t* channels;         // [D, D, channels_per_link]
  const int64_t* pool_bytes;       // [P] capacity of each memory.
};

namespace gdp {

constexpr int32_t kNone = -1;
// Number of gaps of a channel, the latest ones, into which transfers are
// planned. With more gaps, plans are hardly better, but long queues take time.
constexpr size_t kMostGaps = 64;
constexpr double kNever = std::numeric_limits<double>::infinity();

// The producers and consumers of tensors.
struct Dataflow {
  Dataflow(int32_t num_tasks, int32_t num_tensors, int32_t num_uses,
           const int32_t* tensor_task, const int32_t* uses) {
    inputs.Fill(
        num_tasks, num_uses, [&](int32_t u) { return uses[2 * u + 1]; },
        [&](int32_t u) { return uses[2 * u]; });
    outputs.Fill(
        num_tasks, num_tensors, [&](int32_t i) { return tensor_task[i]; },
        [](int32_t i) { return i; });
    consumers.Fill(
        num_tensors, num_uses, [&](int32_t u) { return uses[2 * u]; },
        [&](int32_t u) { return uses[2 * u + 1]; });
  }

  int32_t num_inputs(int32_t task) const {
    return inputs.starts[task + 1] - inputs.starts[task];
  }

  // Producers before consumers. The task that became ready first is next, or
  // with `depth_first` the task that became ready last. The result is shorter
  // than M if the tasks form a cycle.
  std::vector<int32_t> TopologicalOrder(bool depth_first) const {
    const int32_t num_tasks = static_cast<int32_t>(inputs.starts.size()) - 1;
    std::vector<int32_t> waiting(num_tasks), ready, order;
    order.reserve(num_tasks);
    for (int32_t task = 0; task < num_tasks; ++task) {
      waiting[task] = num_inputs(task);
      if (!waiting[task]) ready.push_back(task);
    }
    if (depth_first) std::reverse(ready.begin(), ready.end());
    for (size_t next = 0; next < ready.size();) {
      const int32_t task = depth_first ? ready.back() : ready[next++];
      if (depth_first) ready.pop_back();
      order.push_back(task);
      for (const int32_t tensor : outputs[task]) {
        for (const int32_t consumer : consumers[tensor]) {
          if (!--waiting[consumer]) ready.push_back(consumer);
        }
      }
    }
    return order;
  }

  Rows inputs;     // [M] tensors.
  Rows outputs;    // [M] tensors.
  Rows consumers;  // [T] tasks.
};

// The resource for which transfers wait; see native_scheduler.py.
enum class Waiting { kNothing, kChannels, kPorts };

class ScheduleState {
 public:
  ScheduleState(const GdpTasks& tasks, const GdpMachines& machines,
                Waiting waiting)
      : t(tasks),
        m(machines),
        D(machines.num_devices),
        flow(tasks.num_tasks, tasks.num_tensors, tasks.num_uses,
             tasks.tensor_task, tasks.uses),
        device(tasks.num_tasks, kNone),
        bundle_device(tasks.num_bundles, kNone),
        start_s(tasks.num_tasks, 0.0),
        end_s(tasks.num_tasks, 0.0),
        waiting_(waiting),
        planned_(machines.num_pools, 0),
        claimed_(machines.num_channels, 0.0),
        ports_(machines.num_devices, 0.0) {
    double shortest_s = kNever;
    for (int32_t a = 0; a < D; ++a) {
      for (int32_t b = 0; b < D; ++b) {
        if (a != b) {
          shortest_s = std::min(shortest_s, m.latency_s[int64_t{a} * D + b]);
        }
      }
    }
    channels_.assign(m.num_channels, Timeline(shortest_s, kMostGaps));
    there_s_.assign(int64_t{t.num_tensors} * D, kNever);
    bundle_seconds.assign(int64_t{t.num_bundles} * D, 0.0);
    for (int32_t task = 0; task < t.num_tasks; ++task) {
      for (int32_t d = 0; d < D; ++d) {
        bundle_seconds[int64_t{t.bundle[task]} * D + d] += Seconds(task, d);
      }
    }
  }

  // Upward ranks (Topcuoglu et al. 2002, equation 4), with means over the
  // allowed devices of each task and over all links between devices.
  std::vector<double> UpwardRanks(const std::vector<int32_t>& order) const {
    double latency_s = 0, s_per_byte = 0;
    const double pairs = std::max(1, D * (D - 1));
    for (int32_t a = 0; a < D; ++a) {
      for (int32_t b = 0; b < D; ++b) {
        if (a == b) continue;
        latency_s += m.latency_s[a * D + b] / pairs;
        s_per_byte += 1 / m.bytes_per_s[a * D + b] / pairs;
      }
    }
    std::vector<double> ranks(t.num_tasks, 0.0);
    for (auto task = order.rbegin(); task != order.rend(); ++task) {
      double after_s = 0;
      for (const int32_t tensor : flow.outputs[*task]) {
        const double sent_s =
            latency_s +
            static_cast<double>(t.tensor_bytes[tensor]) * s_per_byte;
        for (const int32_t consumer : flow.consumers[tensor]) {
          after_s = std::max(after_s, sent_s + ranks[consumer]);
        }
      }
      ranks[*task] = MeanSeconds(*task) + after_s;
    }
    return ranks;
  }

  double Seconds(int32_t task, int32_t d) const {
    return t.seconds[int64_t{task} * D + d];
  }

  bool Allowed(int32_t task, int32_t d) const {
    const int32_t bundle = t.bundle[task];
    return bundle_device[bundle] == kNone
               ? t.allowed[int64_t{bundle} * D + d] != 0
               : bundle_device[bundle] == d;
  }

  // Whether the bundle of a task is on `d` or has room there.
  bool Fits(int32_t task, int32_t d) const {
    const int32_t bundle = t.bundle[task];
    return bundle_device[bundle] == d || Overflow(bundle, d) <= 0;
  }

  // The allowed device with the least overflow for a bundle.
  int32_t LeastOverflow(int32_t bundle) const {
    int32_t best = kNone;
    for (int32_t d = 0; d < D; ++d) {
      if (t.allowed[int64_t{bundle} * D + d] &&
          (best == kNone || Overflow(bundle, d) < Overflow(bundle, best))) {
        best = d;
      }
    }
    return best;
  }

  void Fix(int32_t bundle, int32_t d) {
    if (bundle_device[bundle] != kNone) return;
    bundle_device[bundle] = d;
    planned_[m.pools[d]] += t.bundle_bytes[bundle];
  }

  // The time at which all inputs of a task are on a device, and the seconds of
  // the transfers that are not planned yet.
  struct Arrival {
    double time_s, remote_s;
  };

  Arrival Estimate(int32_t task, int32_t d) { return Collect(task, d, false); }

  // Plans the transfers that a task on a device needs.
  Arrival Fetch(int32_t task, int32_t d) { return Collect(task, d, true); }

  const GdpTasks& t;
  const GdpMachines& m;
  const int32_t D;
  const Dataflow flow;
  std::vector<int32_t> device;         // [M]
  std::vector<int32_t> bundle_device;  // [B]
  std::vector<double> start_s, end_s;  // [M]
  std::vector<double> bundle_seconds;  // [B, D]
  std::vector<int32_t> fetched;        // Tensors that the last `Fetch` sent.

 private:
  struct Wanted {
    double ready_s;
    int32_t tensor;
    bool operator<(const Wanted& other) const {
      return ready_s != other.ready_s ? ready_s < other.ready_s
                                      : tensor < other.tensor;
    }
  };

  double MeanSeconds(int32_t task) const {
    double sum = 0;
    int32_t count = 0;
    for (int32_t d = 0; d < D; ++d) {
      if (!t.allowed[int64_t{t.bundle[task]} * D + d]) continue;
      sum += Seconds(task, d);
      ++count;
    }
    return count ? sum / count : 0;
  }

  int64_t Overflow(int32_t bundle, int32_t d) const {
    const int32_t pool = m.pools[d];
    return planned_[pool] + t.bundle_bytes[bundle] - m.pool_bytes[pool];
  }

  double CopyWork(int32_t d, int64_t bytes) const {
    return m.copy_s[d] + static_cast<double>(bytes) / m.copy_bytes_per_s[d];
  }

  Arrival Collect(int32_t task, int32_t d, bool plan) {
    Arrival result = {0, 0};
    wanted_.clear();
    if (plan) fetched.clear();
    for (const int32_t tensor : flow.inputs[task]) {
      const int32_t maker = t.tensor_task[tensor];
      if (device[maker] == d) {
        result.time_s = std::max(result.time_s, end_s[maker]);
        continue;
      }
      const double there_s = there_s_[int64_t{tensor} * D + d];
      if (there_s < kNever) {
        result.time_s = std::max(result.time_s, there_s);
      } else {
        wanted_.push_back({end_s[maker], tensor});
      }
    }
    if (wanted_.size() > 1) std::sort(wanted_.begin(), wanted_.end());
    if (waiting_ == Waiting::kPorts && !plan) claimed_ports_ = ports_;
    for (const Wanted& w : wanted_) Transfer(w, d, plan, &result);
    for (const int32_t channel : touched_) claimed_[channel] = 0;
    touched_.clear();
    return result;
  }

  // Sends a tensor after its producer has ended. If `plan` is false, the
  // transfer only delays other inputs of the same task.
  void Transfer(const Wanted& wanted, int32_t d, bool plan, Arrival* result) {
    const int64_t bytes = t.tensor_bytes[wanted.tensor];
    const int32_t source = device[t.tensor_task[wanted.tensor]];
    const int64_t link = int64_t{source} * D + d;
    const double length =
        m.latency_s[link] + static_cast<double>(bytes) / m.bytes_per_s[link];
    double start = wanted.ready_s + CopyWork(source, bytes);
    if (waiting_ == Waiting::kPorts) {
      start = PassPorts(source, d, start, length, plan);
    } else if (waiting_ == Waiting::kChannels && bytes > 0) {
      const int32_t* first = m.channels + link * m.channels_per_link;
      const int32_t* last = first + m.channels_per_link;
      for (double before = -1; before < start;) {
        before = start;
        for (const int32_t* c = first; c != last; ++c) {
          start = channels_[*c].Earliest(std::max(start, claimed_[*c]), length);
        }
      }
      for (const int32_t* c = first; c != last; ++c) {
        if (!plan) {
          claimed_[*c] = start + length;
          touched_.push_back(*c);
        } else if (c == first || *c != c[-1]) {
          channels_[*c].Take(start, start + length);
        }
      }
    }
    const double there_s = start + length + CopyWork(d, bytes);
    result->time_s = std::max(result->time_s, there_s);
    result->remote_s += length;
    if (plan) {
      there_s_[int64_t{wanted.tensor} * D + d] = there_s;
      fetched.push_back(wanted.tensor);
    }
  }

  // The time at which the receiver starts; the sender does not wait for it.
  double PassPorts(int32_t source, int32_t d, double start, double length,
                   bool plan) {
    std::vector<double>& ports = plan ? ports_ : claimed_ports_;
    const double sent = std::max(start, ports[source]);
    ports[source] = sent + length;
    const double received = std::max(sent, ports[d]);
    ports[d] = received + length;
    return received;
  }

  const Waiting waiting_;
  std::vector<double> there_s_;   // [T, D] arrival of a copy.
  std::vector<int64_t> planned_;  // [P] bytes.
  std::vector<Timeline> channels_;
  // [channels], in `Estimate`: end of the transfers of the task's other inputs.
  std::vector<double> claimed_;
  std::vector<int32_t> touched_;
  std::vector<double> ports_;          // [D] end of the last transfer.
  std::vector<double> claimed_ports_;  // [D] the same, in `Estimate`.
  std::vector<Wanted> wanted_;
};

}  // namespace gdp

#endif  // GDP_GRAPPLER_PLACERS_LIST_SCHEDULING_SCHEDULE_STATE_H_

// List scheduling, and the preparation of its tasks, over arrays.
//
// A plain C interface, without TensorFlow and Python. native_scheduler.py
// describes the functions. tests/helpers/reference_list_scheduler.py is a
// readable version of earliest task first.

#include <algorithm>
#include <cstdint>
#include <new>
#include <numeric>
#include <vector>

#include "gdp_grappler/placers/list_scheduling/earliest_task_first.h"
#include "gdp_grappler/placers/list_scheduling/favourites.h"
#include "gdp_grappler/placers/list_scheduling/fill.h"
#include "gdp_grappler/placers/list_scheduling/schedule_state.h"
#include "gdp_grappler/placers/list_scheduling/timeline.h"

namespace {

enum Status : int32_t { kOk = 0, kOutOfMemory = 1, kCycle = 2 };

enum Option : int32_t {
  kQueues = 1,
  kEarliestFinish = 2,
  kLocalFirst = 4,
  kFavourites = 8,
  kInsert = 16,
  kPorts = 32,
  kInOrder = 64,
  kThorough = 128,
};

gdp::Waiting WaitingOf(int32_t options) {
  if (options & kPorts) return gdp::Waiting::kPorts;
  return options & kQueues ? gdp::Waiting::kChannels : gdp::Waiting::kNothing;
}

// HEFT (Topcuoglu et al. 2002): the task with the highest rank is next, in the
// gap in which it ends first.
class Heft {
 public:
  explicit Heft(gdp::ScheduleState* state)
      : s_(*state), slots_(s_.m.num_units) {
    for (int32_t u = 0; u < s_.m.num_units; ++u) {
      slots_[u].resize(s_.m.slots[u]);
    }
  }

  void Run(const std::vector<double>& ranks, std::vector<int32_t> order) {
    std::stable_sort(order.begin(), order.end(),
                     [&](int32_t a, int32_t b) { return ranks[a] > ranks[b]; });
    for (const int32_t task : order) Place(task);
  }

 private:
  struct Span {
    double start_s = gdp::kNever;
    int32_t slot = 0;
  };

  Span Earliest(int32_t d, double ready_s, double seconds) const {
    Span best;
    const std::vector<gdp::Timeline>& slots = slots_[s_.m.units[d]];
    for (size_t i = 0; i < slots.size(); ++i) {
      const double start_s = slots[i].Earliest(ready_s, seconds);
      if (start_s < best.start_s) best = {start_s, static_cast<int32_t>(i)};
    }
    return best;
  }

  int32_t Choose(int32_t task) {
    const int32_t bundle = s_.t.bundle[task];
    if (s_.bundle_device[bundle] != gdp::kNone) {
      return s_.bundle_device[bundle];
    }
    int32_t best = gdp::kNone;
    double best_s = gdp::kNever;
    for (int32_t d = 0; d < s_.D; ++d) {
      if (!s_.Allowed(task, d) || !s_.Fits(task, d)) continue;
      const double ready_s = s_.Estimate(task, d).time_s;
      const double finish_s =
          Earliest(d, ready_s, s_.Seconds(task, d)).start_s +
          s_.bundle_seconds[int64_t{bundle} * s_.D + d];
      if (finish_s < best_s) {
        best = d;
        best_s = finish_s;
      }
    }
    return best == gdp::kNone ? s_.LeastOverflow(bundle) : best;
  }

  void Place(int32_t task) {
    const int32_t d = Choose(task);
    const double seconds = s_.Seconds(task, d);
    s_.Fix(s_.t.bundle[task], d);
    s_.device[task] = d;
    const Span span = Earliest(d, s_.Fetch(task, d).time_s, seconds);
    s_.start_s[task] = span.start_s;
    s_.end_s[task] = span.start_s + seconds;
    if (seconds > 0) {
      slots_[s_.m.units[d]][span.slot].Take(span.start_s, s_.end_s[task]);
    }
  }

  gdp::ScheduleState& s_;
  std::vector<std::vector<gdp::Timeline>> slots_;  // [units, slots]
};

int32_t Schedule(const GdpTasks& tasks, const GdpMachines& machines,
                 int32_t options, int32_t* devices, double* start_s,
                 double* end_s) {
  gdp::ScheduleState state(tasks, machines, WaitingOf(options));
  const std::vector<int32_t> order = state.flow.TopologicalOrder(false);
  if (static_cast<int32_t>(order.size()) < tasks.num_tasks) return kCycle;
  const std::vector<double> ranks =
      options & kInOrder ? std::vector<double>(tasks.num_tasks, 0.0)
                         : state.UpwardRanks(order);
  if (options & kInsert) {
    Heft(&state).Run(ranks, order);
  } else {
    gdp::EarliestTaskFirst(
        &state, ranks, order,
        {(options & kEarliestFinish) != 0, (options & kLocalFirst) != 0,
         (options & kFavourites) != 0, (options & kThorough) != 0})
        .Run();
  }
  std::copy(state.device.begin(), state.device.end(), devices);
  std::copy(state.start_s.begin(), state.start_s.end(), start_s);
  std::copy(state.end_s.begin(), state.end_s.end(), end_s);
  return kOk;
}

int32_t Find(std::vector<int32_t>* parents, int32_t x) {
  while ((*parents)[x] != x) {
    x = (*parents)[x] = (*parents)[(*parents)[x]];
  }
  return x;
}

}  // namespace

extern "C" {

// Places `tasks`; `devices`, `start_s` and `end_s` are [M].
int32_t gdp_list_schedule(const GdpTasks* tasks, const GdpMachines* machines,
                          int32_t options, int32_t* devices, double* start_s,
                          double* end_s) try {
  return Schedule(*tasks, *machines, options, devices, start_s, end_s);
} catch (const std::bad_alloc&) {
  return kOutOfMemory;
}

// Writes a topological order [M].
int32_t gdp_topological_order(int32_t num_tasks, int32_t num_tensors,
                              int32_t num_uses, const int32_t* tensor_task,
                              const int32_t* uses, int32_t depth_first,
                              int32_t* order) try {
  const gdp::Dataflow flow(num_tasks, num_tensors, num_uses, tensor_task, uses);
  const std::vector<int32_t> result = flow.TopologicalOrder(depth_first);
  if (static_cast<int32_t>(result.size()) < num_tasks) return kCycle;
  std::copy(result.begin(), result.end(), order);
  return kOk;
} catch (const std::bad_alloc&) {
  return kOutOfMemory;
}

// Joins tasks with their only consumers; see `fuse` in native_scheduler.py.
// `pairs` [E, 2] are different pairs of producer and consumer. All pairs into a
// task precede the pairs out of the task. Writes labels [M].
int32_t gdp_fuse(int32_t num_tasks, int32_t num_pairs, const int32_t* pairs,
                 const double* sent_s, const double* work_s,
                 const int32_t* kinds, double grain, int32_t* labels) try {
  std::vector<int32_t> fan_out(num_tasks, 0), fan_in(num_tasks, 0);
  for (int32_t e = 0; e < num_pairs; ++e) {
    ++fan_out[pairs[2 * e]];
    ++fan_in[pairs[2 * e + 1]];
  }
  std::vector<double> together_s(work_s, work_s + num_tasks);
  std::iota(labels, labels + num_tasks, 0);
  for (int32_t e = 0; e < num_pairs; ++e) {
    const int32_t producer = pairs[2 * e], consumer = pairs[2 * e + 1];
    if (fan_out[producer] > 1 || kinds[producer] != kinds[consumer]) continue;
    if (fan_in[consumer] > 1 && together_s[producer] > grain * sent_s[e]) {
      continue;
    }
    labels[producer] = consumer;
    together_s[consumer] += together_s[producer];
  }
  for (int32_t e = num_pairs - 1; e >= 0; --e) {
    const int32_t producer = pairs[2 * e];
    labels[producer] = labels[labels[producer]];
  }
  return kOk;
} catch (const std::bad_alloc&) {
  return kOutOfMemory;
}

// Joins the bundles of pairs, in the order of `pairs` [E, 2]; see `join` in
// native_scheduler.py. Two bundles of one kind are joined if their work stays
// below a limit, or if one of them has at most the work `worth_s` of the pair.
// Writes labels [B].
int32_t gdp_join(int32_t num_bundles, int32_t num_pairs, const int32_t* pairs,
                 const double* worth_s, const double* work_s,
                 const int32_t* kinds, double limit_s, int32_t* labels) try {
  std::vector<int32_t> parents(num_bundles);
  std::iota(parents.begin(), parents.end(), 0);
  std::vector<double> sum_s(work_s, work_s + num_bundles);
  for (int32_t e = 0; e < num_pairs; ++e) {
    const int32_t a = Find(&parents, pairs[2 * e]);
    const int32_t b = Find(&parents, pairs[2 * e + 1]);
    if (a == b || kinds[a] != kinds[b] ||
        (sum_s[a] + sum_s[b] > limit_s &&
         std::min(sum_s[a], sum_s[b]) > worth_s[e])) {
      continue;
    }
    parents[std::max(a, b)] = std::min(a, b);
    sum_s[std::min(a, b)] = sum_s[a] + sum_s[b];
  }
  for (int32_t b = 0; b < num_bundles; ++b) labels[b] = Find(&parents, b);
  return kOk;
} catch (const std::bad_alloc&) {
  return kOutOfMemory;
}

// Fills `targets` with bundles in an order [B]; writes devices [B].
int32_t gdp_fill(int32_t num_bundles, int32_t num_devices, int32_t num_pools,
                 int32_t num_targets, const int32_t* order, const double* bytes,
                 const uint8_t* allowed, const int32_t* targets,
                 const int32_t* pools, const double* pool_bytes,
                 double share_bytes, int32_t* devices) try {
  gdp::Fill fill(num_devices, allowed, pools,
                 std::vector<int32_t>(targets, targets + num_targets),
                 std::vector<double>(pool_bytes, pool_bytes + num_pools),
                 share_bytes);
  for (int32_t i = 0; i < num_bundles; ++i) {
    devices[order[i]] = fill.Next(order[i], bytes[order[i]]);
  }
  return kOk;
} catch (const std::bad_alloc&) {
  return kOutOfMemory;
}

// Writes the favourite child of each task or -1, and the favourite children
// that all rounds have matched. `pairs` [E, 2] are positions in topological
// order, sorted by the first.
int32_t gdp_favourites(int32_t num_tasks, int32_t num_pairs,
                       const int32_t* pairs, const double* sent_s,
                       const double* work_s, int32_t num_limits,
                       const double* limits, int32_t* child,
                       int32_t* certain) try {
  gdp::Favourites(num_tasks, num_pairs, pairs, sent_s, work_s)
      .Run(limits, num_limits, child, certain);
  return kOk;
} catch (const std::bad_alloc&) {
  return kOutOfMemory;
}

}  // extern "C"

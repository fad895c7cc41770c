// Earliest task first: the task that can start first is next.

#ifndef GDP_GRAPPLER_PLACERS_LIST_SCHEDULING_EARLIEST_TASK_FIRST_H_
#define GDP_GRAPPLER_PLACERS_LIST_SCHEDULING_EARLIEST_TASK_FIRST_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "gdp_grappler/placers/list_scheduling/schedule_state.h"

namespace gdp {

// A task may start later than its estimate, because other tasks have used the
// link since then. So the scheduler estimates the start of such tasks again.
// Each placed task may delay all tasks that wait for a link. If all of these
// were estimated again each time, the time of the scheduler would grow with the
// square of the number of tasks.
//
// Tasks above which the number of second estimates is limited.
constexpr int32_t kManyTasks = 40000;
// Number of second estimates, if limited. After each placed task, at most an
// equal share of them is made. The scheduler then uses old estimates.
constexpr int32_t kSecondLooks = 4000000;

// The rules of ETF; see native_scheduler.py.
struct EtfOptions {
  bool earliest_finish;  // The end of the bundle determines the device.
  bool local_first;      // The ready task with the least data to fetch first.
  bool favourites;       // Devices wait for favourite children.
  bool thorough;         // The number of second estimates is not limited.
};

// ETF (Hwang et al. 1989) with memory limits as in m-ETF, and the reserved
// devices of SCT (Hanen and Munier 1995) as in m-SCT (Jeon et al. 2020).
//
// Each device has two heaps of ready tasks. The heap `now_` has the tasks whose
// data is there when the device becomes free, by urgency. The heap `later_` has
// the tasks whose data arrives later, by arrival. An entry may become invalid;
// it is removed when it reaches the top of its heap.
class EarliestTaskFirst {
 public:
  EarliestTaskFirst(ScheduleState* state, const std::vector<double>& ranks,
                    const std::vector<int32_t>& order, EtfOptions options)
      : s_(*state),
        options_(options),
        patience_(s_.t.num_tasks > kManyTasks && !options.thorough
                      ? std::max(kSecondLooks / s_.t.num_tasks, 1)
                      : std::numeric_limits<int32_t>::max()),
        left_(patience_),
        urgency_(s_.t.num_tasks),
        waiting_(s_.t.num_tasks),
        choices_(s_.t.num_tasks, 0),
        arrival_(int64_t{s_.t.num_tasks} * s_.D, kNever),
        later_(s_.D),
        now_(s_.D),
        reserved_for_(s_.D, kNone),
        reserved_until_(s_.D, 0.0),
        free_(s_.m.num_units, 0.0),
        slot_free_(s_.m.num_units) {
    for (int32_t u = 0; u < s_.m.num_units; ++u) {
      slot_free_[u].assign(s_.m.slots[u], 0.0);
    }
    bundle_tasks_.Fill(
        s_.t.num_bundles, s_.t.num_tasks,
        [&](int32_t i) { return s_.t.bundle[i]; }, [](int32_t i) { return i; });
    std::vector<int32_t> urgent = order;
    std::stable_sort(urgent.begin(), urgent.end(),
                     [&](int32_t a, int32_t b) { return ranks[a] > ranks[b]; });
    for (int32_t i = 0; i < s_.t.num_tasks; ++i) urgency_[urgent[i]] = i;
    for (const int32_t task : order) {
      waiting_[task] = s_.flow.num_inputs(task);
    }
    for (const int32_t task : order) {
      if (!s_.flow.num_inputs(task)) Ready(task);
    }
  }

  void Run() {
    for (int32_t left = s_.t.num_tasks; left > 0;) {
      Choice choice = Next();
      // `Next` may have forced the bundle onto another device.
      if (choice.task == kNone || !s_.Allowed(choice.task, choice.device) ||
          !s_.Fits(choice.task, choice.device)) {
        continue;
      }
      if (options_.earliest_finish) choice.device = EarliestFinish(choice);
      if (Place(choice)) {
        --left;
        left_ = patience_;
      }
    }
  }

 private:
  struct Entry {
    double key;  // Arrival of the data, or seconds of data to fetch, or 0.
    int32_t urgency, task;
    bool operator>(const Entry& other) const {
      return key != other.key ? key > other.key : urgency > other.urgency;
    }
  };
  using Heap =
      std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>>;

  struct Choice {
    double start_s = kNever;
    int32_t urgency = 0, task = kNone, device = kNone;
    double remote_s = 0;
    bool BetterThan(const Choice& o) const {
      return std::tie(start_s, urgency, remote_s) <
             std::tie(o.start_s, o.urgency, o.remote_s);
    }
  };

  double& Arrival(int32_t task, int32_t d) {
    return arrival_[int64_t{task} * s_.D + d];
  }

  double Free(int32_t d) const { return free_[s_.m.units[d]]; }

  bool Placed(int32_t task) const { return s_.device[task] != kNone; }

  // Adds a task to the heaps; all its producers are placed.
  void Ready(int32_t task) {
    choices_[task] = 0;
    for (int32_t d = 0; d < s_.D; ++d) {
      if (s_.Allowed(task, d) && s_.Fits(task, d)) {
        ++choices_[task];
        Await(task, d);
      }
    }
    if (!choices_[task]) Force(task);
  }

  void Await(int32_t task, int32_t d) {
    Arrival(task, d) = s_.Estimate(task, d).time_s;
    later_[d].push({Arrival(task, d), urgency_[task], task});
  }

  // Chooses a device for the bundle of a task if the bundle fits nowhere.
  void Force(int32_t task) {
    const int32_t bundle = s_.t.bundle[task];
    const int32_t d = s_.LeastOverflow(bundle);
    s_.Fix(bundle, d);
    for (const int32_t other : bundle_tasks_[bundle]) {
      if (!waiting_[other] && !Placed(other)) Await(other, d);
    }
  }

  // Whether an entry is valid. If the device has no room left for the task, the
  // task has one choice less.
  bool Live(const Entry& entry, int32_t d) {
    if (Placed(entry.task) || !s_.Allowed(entry.task, d)) return false;
    if (s_.Fits(entry.task, d)) return true;
    if (--choices_[entry.task] == 0) Force(entry.task);
    return false;
  }

  // Moves the tasks whose data is there when the device becomes free to `now_`.
  void Settle(int32_t d) {
    const double free_s = Free(d);
    Heap& later = later_[d];
    while (!later.empty()) {
      const Entry entry = later.top();
      if (entry.key == Arrival(entry.task, d) && Live(entry, d)) {
        if (entry.key > free_s || left_ == 0) break;
        later.pop();
        const ScheduleState::Arrival arrival = s_.Estimate(entry.task, d);
        Arrival(entry.task, d) = arrival.time_s;
        if (arrival.time_s > free_s) {
          later.push({arrival.time_s, entry.urgency, entry.task});
          --left_;
        } else {
          now_[d].push({options_.local_first ? arrival.remote_s : 0.0,
                        entry.urgency, entry.task});
        }
      } else {
        PopStale(&later, entry);
      }
    }
    while (!now_[d].empty() && !Live(now_[d].top(), d)) now_[d].pop();
  }

  // Removes an entry, unless `Live` has added another entry above it.
  static void PopStale(Heap* heap, const Entry& entry) {
    if (heap->top().task == entry.task && heap->top().key == entry.key) {
      heap->pop();
    }
  }

  // The best task on one device.
  Choice BestOn(int32_t d) {
    Settle(d);
    Choice best;
    const double free_s = Free(d);
    if (!now_[d].empty()) {
      best.task = now_[d].top().task;
      best.start_s = free_s;
    } else if (!later_[d].empty()) {
      best.task = later_[d].top().task;
      // The estimate may be too early, if there was no second estimate.
      best.start_s = std::max(free_s, later_[d].top().key);
    } else {
      return best;
    }
    best.device = d;
    best.urgency = urgency_[best.task];
    if (options_.favourites) Favour(d, free_s, &best);
    return best;
  }

  // A reserved device takes the favourite child or an urgent task, which could
  // start on any device (Hanen and Munier 1995).
  void Favour(int32_t d, double free_s, Choice* best) {
    const int32_t child = reserved_for_[d];
    if (child == kNone || Placed(child) || child == best->task) return;
    if (!Urgent(best->task, best->start_s)) {
      best->start_s = std::max(best->start_s, reserved_until_[d]);
    }
    if (!waiting_[child] && s_.Allowed(child, d) && s_.Fits(child, d)) {
      const double start_s = std::max(free_s, Arrival(child, d));
      if (start_s <= best->start_s) {
        *best = Choice{start_s, urgency_[child], child, d};
      }
    }
  }

  bool Urgent(int32_t task, double time_s) {
    for (int32_t d = 0; d < s_.D; ++d) {
      if (s_.Allowed(task, d) && Arrival(task, d) > time_s) return false;
    }
    return true;
  }

  Choice Next() {
    Choice best;
    for (int32_t d = 0; d < s_.D; ++d) {
      Choice choice = BestOn(d);
      if (choice.task == kNone || choice.start_s > best.start_s) continue;
      if (choice.task == best.task && choice.start_s == best.start_s) {
        // The same task on two devices: the device that has to fetch less data
        // wins.
        choice.remote_s = s_.Estimate(choice.task, d).remote_s;
        best.remote_s = s_.Estimate(best.task, best.device).remote_s;
      }
      if (choice.BetterThan(best)) best = choice;
    }
    return best;
  }

  // The device on which the bundle of the chosen task would end first, if the
  // bundle ran alone.
  int32_t EarliestFinish(const Choice& choice) {
    const int32_t bundle = s_.t.bundle[choice.task];
    if (s_.bundle_device[bundle] != kNone) return choice.device;
    int32_t best = choice.device;
    double best_s = kNever, best_remote_s = kNever;
    for (int32_t d = 0; d < s_.D; ++d) {
      if (!s_.Allowed(choice.task, d) || !s_.Fits(choice.task, d)) continue;
      const ScheduleState::Arrival arrival = s_.Estimate(choice.task, d);
      const double finish_s = std::max(Free(d), arrival.time_s) +
                              s_.bundle_seconds[int64_t{bundle} * s_.D + d];
      if (std::tie(finish_s, arrival.remote_s) <
          std::tie(best_s, best_remote_s)) {
        best = d;
        best_s = finish_s;
        best_remote_s = arrival.remote_s;
      }
    }
    return best;
  }

  // Places a task. Returns false if a second estimate says that the data of the
  // task arrives later.
  bool Place(const Choice& choice) {
    const int32_t task = choice.task, d = choice.device;
    const double known_s = std::max(Free(d), Arrival(task, d));
    const ScheduleState::Arrival arrival = s_.Estimate(task, d);
    if (!options_.earliest_finish && left_ > 0 && arrival.time_s > known_s) {
      --left_;
      Arrival(task, d) = arrival.time_s;
      if (!now_[d].empty() && now_[d].top().task == task) now_[d].pop();
      later_[d].push({arrival.time_s, urgency_[task], task});
      return false;
    }
    s_.Fix(s_.t.bundle[task], d);
    s_.device[task] = d;
    std::vector<double>& slots = slot_free_[s_.m.units[d]];
    double& slot = *std::min_element(slots.begin(), slots.end());
    s_.start_s[task] = std::max(slot, s_.Fetch(task, d).time_s);
    slot = s_.end_s[task] = s_.start_s[task] + s_.Seconds(task, d);
    free_[s_.m.units[d]] = *std::min_element(slots.begin(), slots.end());
    for (const int32_t tensor : s_.fetched) ArrivesSooner(tensor, d);
    if (options_.favourites) Reserve(task, d);
    for (const int32_t tensor : s_.flow.outputs[task]) {
      for (const int32_t consumer : s_.flow.consumers[tensor]) {
        if (!--waiting_[consumer]) Ready(consumer);
      }
    }
    return true;
  }

  // A tensor is being sent to a device, so other tasks that need the tensor
  // there may start sooner.
  void ArrivesSooner(int32_t tensor, int32_t d) {
    for (const int32_t task : s_.flow.consumers[tensor]) {
      // kNever: the task may not be on the device, or is not ready.
      const double known_s = Arrival(task, d);
      if (known_s == kNever || known_s <= Free(d) || Placed(task)) continue;
      const double time_s = s_.Estimate(task, d).time_s;
      if (time_s < known_s) {
        Arrival(task, d) = time_s;
        later_[d].push({time_s, urgency_[task], task});
      }
    }
  }

  // Reserves a device until the favourite child could start elsewhere.
  void Reserve(int32_t task, int32_t d) {
    reserved_for_[d] = s_.t.favourite[task];
    if (reserved_for_[d] == kNone) return;
    double longest_s = 0;
    for (const int32_t tensor : s_.flow.outputs[task]) {
      for (int32_t other = 0; other < s_.D; ++other) {
        if (other == d) continue;
        const int64_t link = int64_t{d} * s_.D + other;
        longest_s = std::max(
            longest_s, s_.m.latency_s[link] +
                           static_cast<double>(s_.t.tensor_bytes[tensor]) /
                               s_.m.bytes_per_s[link]);
      }
    }
    reserved_until_[d] = s_.end_s[task] + longest_s;
  }

  ScheduleState& s_;
  const EtfOptions options_;
  const int32_t patience_;              // Second estimates per placed task.
  int32_t left_;                        // Second estimates that are left.
  Rows bundle_tasks_;                   // [B]
  std::vector<int32_t> urgency_;        // [M] 0 has the highest rank.
  std::vector<int32_t> waiting_;        // [M] inputs with unplaced producers.
  std::vector<int32_t> choices_;        // [M] devices with room.
  std::vector<double> arrival_;         // [M, D]
  std::vector<Heap> later_, now_;       // [D]
  std::vector<int32_t> reserved_for_;   // [D] a favourite child.
  std::vector<double> reserved_until_;  // [D]
  std::vector<double> free_;            // [units] when the first slot is free.
  std::vector<std::vector<double>> slot_free_;  // [units, slots]
};

}  // namespace gdp

#endif  // GDP_GRAPPLER_PLACERS_LIST_SCHEDULING_EARLIEST_TASK_FIRST_H_

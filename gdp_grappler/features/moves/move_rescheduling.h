// Takes groups out of a placement and places them again, one after the other,
// as a list scheduler does. All other groups keep their devices and times.
//
// A group is one piece of work. It begins when all its inputs are there, and
// ends when all its work is done in the free time of its device. Free time is
// kept in kBins bins of the step. After the end of the step, devices are free.

#ifndef GDP_GRAPPLER_FEATURES_MOVES_MOVE_RESCHEDULING_H_
#define GDP_GRAPPLER_FEATURES_MOVES_MOVE_RESCHEDULING_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "gdp_grappler/features/moves/move_graph.h"
#include "gdp_grappler/features/moves/move_incumbent.h"

namespace gdp {

// Weights of terms that are added to the end of a group on a device.
struct ReschedulingWeights {
  double late;  // Largest lateness of its outputs.
  double sent;  // Seconds of all its transfers, even if early.
  double busy;  // Seconds of all work of the device.
};

class Rescheduler {
 public:
  Rescheduler(const MoveGraph& graph, const Incumbent& incumbent)
      : g_(graph), now_(incumbent) {}

  // Places groups anew that `next` [G] has on other devices than the incumbent,
  // if they are more than one and at most `most`. `allowed` is [G, D]. Returns
  // whether it did so.
  bool Reschedule(const uint8_t* allowed, const ReschedulingWeights& weights,
                  int32_t most, int32_t* next) {
    now_.FindMoved(next, &removed_);
    const int64_t count = removed_.size();
    if (count < 2 || count > most) return false;
    TakeOut();
    for (const int32_t group : removed_) {
      const Choice best = Best(allowed, weights, group, next);
      next[group] = best.device;
      PutBack(group, best);
    }
    return true;
  }

 private:
  enum State : uint8_t { kStays, kIsOut, kIsBack };

  struct Choice {
    int32_t device;
    double end_s, cost;
    bool has_room;

    bool IsBetterThan(const Choice& other) const {
      if (has_room != other.has_room) return has_room;
      return cost < other.cost;
    }
  };

  const MoveGraph& g_;
  const Incumbent& now_;
  std::vector<int32_t> removed_;
  std::vector<uint8_t> state_;           // [G]
  std::vector<double> end_s_;            // [G], end of groups that are back.
  std::vector<double> busy_s_, load_s_;  // [U, kBins], [D]
  std::vector<double> room_bytes_;       // [P]
  std::vector<int64_t> seen_;            // [D], net that was sent last.
  int64_t net_ = 0;

  double Seconds(int32_t group, int32_t device) const {
    return g_.group_seconds[int64_t{group} * g_.num_devices + device];
  }

  double* BusyOn(int32_t device) { return &busy_s_[g_.unit[device] * kBins]; }

  // Takes the groups out, in the order in which they run at present.
  void TakeOut() {
    state_.assign(g_.num_groups, kStays);
    end_s_.resize(g_.num_groups);
    seen_.resize(g_.num_devices, 0);
    // Devices that share a unit take turns.
    busy_s_.assign(g_.num_units * kBins, 0);
    for (int32_t d = 0; d < g_.num_devices; ++d) {
      const double* busy = &now_.busy_s[d * kBins];
      for (int32_t b = 0; b < kBins; ++b) BusyOn(d)[b] += busy[b];
    }
    load_s_ = now_.load_s;
    room_bytes_ = g_.pool_bytes;
    for (int32_t p = 0; p < g_.num_pools; ++p) {
      room_bytes_[p] -= now_.peak_bytes[p];
    }
    for (const int32_t g : removed_) {
      state_[g] = kIsOut;
      const GroupTimes& times = now_.groups[g];
      load_s_[now_.devices[g]] -= times.work_s;
      room_bytes_[g_.pool[now_.devices[g]]] += g_.group_bytes[g];
      Spread(now_.devices[g], -times.work_s, times.first_s, times.last_s);
    }
    std::stable_sort(removed_.begin(), removed_.end(),
                     [this](int32_t a, int32_t b) {
                       return now_.groups[a].first_s < now_.groups[b].first_s;
                     });
  }

  void PutBack(int32_t group, const Choice& at) {
    const double work = Seconds(group, at.device);
    state_[group] = kIsBack;
    end_s_[group] = at.end_s;
    load_s_[at.device] += work;
    room_bytes_[g_.pool[at.device]] -= g_.group_bytes[group];
    Spread(at.device, work, at.end_s - work, at.end_s);
  }

  void Spread(int32_t device, double work, double from_s, double to_s) {
    const int32_t first = now_.BinOf(from_s);
    const int32_t last = std::max(now_.BinOf(to_s), first);
    double* busy = BusyOn(device);
    for (int32_t b = first; b <= last; ++b) {
      busy[b] = std::max(busy[b] + work / (last - first + 1), 0.);
    }
  }

  Choice Best(const uint8_t* allowed, const ReschedulingWeights& weights,
              int32_t group, const int32_t* next) {
    // The drawn device, if all others take infinitely long.
    Choice best{next[group], now_.groups[group].last_s,
                std::numeric_limits<double>::infinity(), false};
    for (int32_t d = 0; d < g_.num_devices; ++d) {
      if (!allowed[int64_t{group} * g_.num_devices + d]) continue;
      const Choice choice = At(d, weights, group, next);
      if (choice.IsBetterThan(best)) best = choice;
    }
    return best;
  }

  Choice At(int32_t device, const ReschedulingWeights& weights, int32_t group,
            const int32_t* next) {
    const double work = Seconds(group, device);
    double sent = 0, ready = 0, late = 0;
    const Rows& nets = g_.nets_of_group;
    const auto first = nets.values.begin() + nets.starts[group];
    const auto last = nets.values.begin() + nets.starts[group + 1];
    for (auto net = first; net != last; ++net) {
      ready = std::max(ready, Ready(*net, group, device, next, &sent));
    }
    const double end = End(device, ready, work);
    for (auto net = first; net != last; ++net) {
      late = std::max(late, Late(*net, group, device, end, next, &sent));
    }
    return {device, end,
            end + weights.late * late + weights.sent * sent +
                weights.busy * (load_s_[device] + work),
            room_bytes_[g_.pool[device]] >= g_.group_bytes[group]};
  }

  // When an input arrives on a device; 0 if the group itself or a group that is
  // out makes it.
  double Ready(int32_t number, int32_t group, int32_t device,
               const int32_t* next, double* sent) const {
    const Net& net = g_.nets[number];
    const int32_t own = g_.group[net.producer];
    if (own == group || state_[own] == kIsOut) return 0;
    const bool is_back = state_[own] == kIsBack;
    const double end = is_back ? end_s_[own] : now_.end_s[net.producer];
    if (next[own] == device) return end;
    const double seconds = g_.TransferSeconds(net, next[own], device);
    *sent += seconds;
    return is_back ? end + seconds : now_.Arrival(number, device);
  }

  // Lateness of an output for consumers that are placed.
  double Late(int32_t number, int32_t group, int32_t device, double end,
              const int32_t* next, double* sent) {
    const Net& net = g_.nets[number];
    if (g_.group[net.producer] != group) return 0;
    ++net_;
    double late = 0;
    for (int32_t p = net.first_pin; p < g_.nets[number + 1].first_pin; ++p) {
      const int32_t other = g_.group[g_.pins[p]];
      if (other == group || state_[other] == kIsOut) continue;
      double at = end;
      if (next[other] != device) {
        const double seconds = g_.TransferSeconds(net, device, next[other]);
        if (seen_[next[other]] != net_) *sent += seconds;
        seen_[next[other]] = net_;
        at += seconds;
      }
      late = std::max(late, at - now_.latest_s[g_.pins[p]]);
    }
    return late;
  }

  // End of work that is ready at a time, and runs in the free time of a device.
  double End(int32_t device, double ready, double work) {
    if (!g_.serial[g_.unit[device]]) return ready + work;
    const double* busy = BusyOn(device);
    const double width = now_.step_s / kBins;
    double at = ready;
    for (int32_t b = now_.BinOf(at); b < kBins; ++b) {
      // If a bin has begun, only its rest counts.
      const double left = std::max((b + 1) * width - at, 0.);
      const double room =
          std::max(width - busy[b], 0.) * std::min(left / width, 1.);
      if (room > 0 && room >= work) return at + left * (work / room);
      work -= room;
      at += left;
    }
    return at + work;
  }
};

}  // namespace gdp

#endif  // GDP_GRAPPLER_FEATURES_MOVES_MOVE_RESCHEDULING_H_

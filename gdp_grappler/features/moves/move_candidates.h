// Computes the features of moves, one move after the other.

#ifndef GDP_GRAPPLER_FEATURES_MOVES_MOVE_CANDIDATES_H_
#define GDP_GRAPPLER_FEATURES_MOVES_MOVE_CANDIDATES_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gdp_grappler/features/moves/move_graph.h"
#include "gdp_grappler/features/moves/move_incumbent.h"
#include "gdp_grappler/features/moves/move_retiming.h"
#include "gdp_grappler/features/moves/move_ties.h"
#include "gdp_grappler/features/moves/move_traffic.h"

namespace gdp {

// In the order of `NATIVE` in schema.py.
enum Feature : int32_t {
  kGroups,
  kWorkShare,
  kWork,
  kWorkChange,
  kBytesShare,
  kTargets,
  kSources,
  kBackflow,
  kSourceBusy,
  kTargetBusy,
  kSourceBusyAfter,
  kTargetBusyAfter,
  kHighestBusy,
  kHighestBusyChange,
  kMeanBusy,
  kDeviationChange,
  kSourceCritical,
  kTargetCritical,
  kTargetEmpty,
  kSourceEmptied,
  kSentBefore,
  kSentAfter,
  kSentChange,
  kMessagesChange,
  kCriticalSentBefore,
  kCriticalSentAfter,
  kCriticalSentChange,
  kSourceAffinity,
  kTargetAffinity,
  kWireBusy,
  kWireBusyChange,
  kCriticalWork,
  kCriticalShareOfWork,
  kWaiting,
  kLongestWait,
  kLeastSlack,
  kSlack,
  kSpan,
  kMiddle,
  kTargetBusyThen,
  kSourceBusyThen,
  kCrowding,
  kLateInputs,
  kLateOutputs,
  kDelayed,
  kHastened,
  kRetimed,
  kSourceFull,
  kTargetFull,
  kTargetFullAfter,
  kOverflow,
  kOverflowAfter,
  kSlower,
  kDevicesUsed,
  kDevices,
  kGraphGroups,
  kNumFeatures
};

// Maps shares from 1e-4 to 1 to a logarithmic scale from 0 to 1, with sign.
inline float Log(double share) {
  constexpr double kFine = 1e4;
  const double size =
      std::log1p(std::min(std::abs(share), 1e3) * kFine) / std::log1p(kFine);
  return static_cast<float>(share < 0 ? -size : size);
}

inline float Share(double part, double whole) {
  return whole > 0 ? static_cast<float>(std::min(part / whole, 10.)) : 0;
}

class Candidates {
 public:
  Candidates(const MoveGraph& graph, const Incumbent& incumbent,
             const Ties& ties, const DispatchOrder& order)
      : g_(graph),
        now_(incumbent),
        traffic_(graph, incumbent, ties),
        retiming_(order) {}

  // Writes kNumFeatures of a placement `next` [G]; all 0 if nothing moves.
  // `retimed_s` is the retimed step of the observed placement.
  void Describe(const int32_t* next, double retimed_s, float* out) {
    std::fill_n(out, kNumFeatures, 0.f);
    now_.FindMoved(next, &moved_);
    if (moved_.empty()) return;
    FindEnds(next);
    DescribeSize(out);
    DescribeLoad(out);
    DescribeTime(next, out);
    DescribeTransfers(traffic_.Sum(moved_, next), out);
    DescribeMemory(out);
    out[kRetimed] =
        Log((retiming_.StepSeconds(next) - retimed_s) / now_.step_s);
  }

 private:
  // Number of groups by which memory is prefetched.
  static constexpr size_t kAhead = 32;

  // Changes at one end of a move.
  struct End {
    double load_s = 0, moved_s = 0, bytes = 0;
  };

  const MoveGraph& g_;
  const Incumbent& now_;
  std::vector<int32_t> moved_;
  int32_t source_ = 0, target_ = 0, num_sources_ = 0, num_targets_ = 0;
  double old_s_ = 0, new_s_ = 0, moved_bytes_ = 0;
  std::vector<double> lost_s_, gained_s_, bytes_;  // [D], changes by the move.
  std::vector<double> load_s_;                     // [D], after the move.
  Traffic traffic_;
  Retiming retiming_;

  double Seconds(int32_t group, int32_t device) const {
    return g_.group_seconds[int64_t{group} * g_.num_devices + device];
  }

  // Finds the devices that lose and gain most work.
  void FindEnds(const int32_t* next) {
    for (auto* column : {&lost_s_, &gained_s_, &bytes_}) {
      column->assign(g_.num_devices, 0);
    }
    load_s_ = now_.load_s;
    double old_s = 0, new_s = 0, moved_bytes = 0;
    End source, target;
    int32_t from = kNobody, to = kNobody;
    const auto keep = [&] {
      if (from == kNobody) return;
      load_s_[from] = source.load_s;
      lost_s_[from] = source.moved_s;
      bytes_[from] = source.bytes;
      load_s_[to] = target.load_s;
      gained_s_[to] = target.moved_s;
      bytes_[to] = target.bytes;
    };
    const size_t count = moved_.size();
    for (size_t i = 0; i < count; ++i) {
      const int32_t later = moved_[std::min(i + kAhead, count - 1)];
      __builtin_prefetch(&now_.groups[later]);
      __builtin_prefetch(&g_.group_bytes[later]);
      __builtin_prefetch(
          &g_.group_seconds[int64_t{later} * g_.num_devices + next[later]]);
      const int32_t g = moved_[i];
      // Consecutive groups usually move between the same devices.
      if (now_.devices[g] != from || next[g] != to) {
        keep();
        from = now_.devices[g];
        to = next[g];
        source = {load_s_[from], lost_s_[from], bytes_[from]};
        target = {load_s_[to], gained_s_[to], bytes_[to]};
      }
      const double before = now_.groups[g].work_s, after = Seconds(g, to);
      const double bytes = g_.group_bytes[g];
      old_s += before;
      new_s += after;
      moved_bytes += bytes;
      source.load_s -= before;
      target.load_s += after;
      // Groups without work count a little, so that each move has both ends.
      source.moved_s += before + 1e-12;
      target.moved_s += after + 1e-12;
      source.bytes -= bytes;
      target.bytes += bytes;
    }
    keep();
    old_s_ = old_s;
    new_s_ = new_s;
    moved_bytes_ = moved_bytes;
    const auto most = [](const std::vector<double>& v) {
      return static_cast<int32_t>(std::max_element(v.begin(), v.end()) -
                                  v.begin());
    };
    source_ = most(lost_s_);
    target_ = most(gained_s_);
    const auto some = [](double x) { return x > 0; };
    num_sources_ = std::count_if(lost_s_.begin(), lost_s_.end(), some);
    num_targets_ = std::count_if(gained_s_.begin(), gained_s_.end(), some);
  }

  void DescribeSize(float* out) const {
    out[kGroups] = static_cast<float>(std::log1p(moved_.size()) /
                                      std::log1p(g_.num_groups));
    out[kWorkShare] = Log(Share(old_s_, now_.total_s));
    out[kWork] = Log(old_s_ / now_.step_s);
    out[kWorkChange] = Log((new_s_ - old_s_) / now_.step_s);
    out[kBytesShare] = Log(Share(moved_bytes_, g_.total_bytes));
    out[kTargets] = Share(num_targets_, g_.num_devices);
    out[kSources] = Share(num_sources_, g_.num_devices);
    out[kSlower] = static_cast<float>(
        std::clamp(std::log10((new_s_ + 1e-9) / (old_s_ + 1e-9)), -3., 3.));
    const auto used = [](double load) { return load > 0; };
    out[kDevicesUsed] =
        Share(std::count_if(now_.load_s.begin(), now_.load_s.end(), used),
              g_.num_devices);
    out[kDevices] = static_cast<float>(std::log2(g_.num_devices) / 4);
    out[kGraphGroups] = static_cast<float>(std::log(g_.num_groups) / 10);
  }

  void DescribeLoad(float* out) const {
    const double step = now_.step_s;
    const auto highest = [](const std::vector<double>& v) {
      return *std::max_element(v.begin(), v.end());
    };
    const auto deviation = [](const std::vector<double>& v) {
      double sum = 0, squares = 0;
      for (const double x : v) {
        sum += x;
        squares += x * x;
      }
      const double mean = sum / v.size();
      return std::sqrt(std::max(squares / v.size() - mean * mean, 0.));
    };
    out[kSourceBusy] = Share(now_.load_s[source_], step);
    out[kTargetBusy] = Share(now_.load_s[target_], step);
    out[kSourceBusyAfter] = Share(load_s_[source_], step);
    out[kTargetBusyAfter] = Share(load_s_[target_], step);
    out[kHighestBusy] = Share(highest(now_.load_s), step);
    out[kHighestBusyChange] =
        Log((highest(load_s_) - highest(now_.load_s)) / step);
    out[kMeanBusy] = Share(now_.total_s, step * g_.num_devices);
    out[kDeviationChange] =
        Log((deviation(load_s_) - deviation(now_.load_s)) / step);
    out[kSourceCritical] = Share(now_.critical_load_s[source_], step);
    out[kTargetCritical] = Share(now_.critical_load_s[target_], step);
    out[kTargetEmpty] = now_.load_s[target_] <= 0;
    out[kSourceEmptied] = load_s_[source_] <= 1e-9 * step;
  }

  void DescribeTransfers(const TrafficSums& sums, float* out) const {
    const double step = now_.step_s;
    const auto highest = [](double most, const std::vector<double>& v) {
      for (const double x : v) most = std::max(most, x);
      return most;
    };
    const double wire = highest(highest(0, now_.out_s), now_.in_s);
    const double new_wire =
        highest(highest(0, traffic_.out_s()), traffic_.in_s());
    const auto change = [step](double before, double after) {
      return Log((after - before) / step);
    };
    out[kSentBefore] = Log(sums.sent_before_s / step);
    out[kSentAfter] = Log(sums.sent_after_s / step);
    out[kSentChange] = change(sums.sent_before_s, sums.sent_after_s);
    out[kMessagesChange] = Log(sums.messages * 1e-3);
    out[kCriticalSentBefore] = Log(sums.critical_before_s / step);
    out[kCriticalSentAfter] = Log(sums.critical_after_s / step);
    out[kCriticalSentChange] =
        change(sums.critical_before_s, sums.critical_after_s);
    out[kSourceAffinity] = Share(traffic_.affinity()[source_], sums.pull);
    out[kTargetAffinity] = Share(traffic_.affinity()[target_], sums.pull);
    out[kWireBusy] = Share(wire, step);
    out[kWireBusyChange] = change(wire, new_wire);
    out[kLateInputs] = Log(std::max(sums.late_inputs_s, 0.) / step);
    out[kLateOutputs] = Log(std::max(sums.late_outputs_s, 0.) / step);
    out[kDelayed] = Log(sums.delayed_s / step);
    out[kHastened] = Log(sums.hastened_s / step);
  }

  void DescribeTime(const int32_t* next, float* out) const {
    const double step = now_.step_s, width = step / kBins;
    const double* target = &now_.busy_s[target_ * kBins];
    const double* source = &now_.busy_s[source_ * kBins];
    double critical = 0, waiting = 0, longest = 0, least = step, slack = 0,
           first = step, last = 0, there = 0, here = 0, weight = 0, middle = 0,
           straight = 0;
    double added[kBins] = {};
    for (const int32_t g : moved_) {
      const GroupTimes& t = now_.groups[g];
      const GroupBins bins = now_.bins[g];
      const double work = t.work_s + 1e-12;
      critical += t.critical_s;
      waiting += t.waiting_s;
      longest = std::max(longest, t.longest_wait_s);
      least = std::min(least, t.slack_s);
      slack += t.weighted_slack_s;
      first = std::min(first, t.first_s);
      last = std::max(last, t.last_s);
      weight += work;
      middle += work * bins.middle;
      there += work * target[bins.middle];
      here += work * source[bins.middle];
      if (now_.devices[g] != source_) continue;
      const double each = t.work_s / (bins.last - bins.first + 1);
      for (int32_t b = bins.first; b <= bins.last; ++b) added[b] += each;
      if (next[g] == target_) straight += work;
    }
    double crowding = 0, all = 0;
    for (int32_t b = 0; b < kBins; ++b) {
      if (added[b] > 0) {
        crowding += std::max(target[b] + added[b] - width, 0.);
      }
    }
    for (const double lost : lost_s_) all += lost;
    out[kBackflow] = 1 - Share(straight, all);
    out[kCriticalWork] = Log(critical / step);
    out[kCriticalShareOfWork] = Share(critical, old_s_);
    out[kWaiting] = Log(waiting / (moved_.size() * step));
    out[kLongestWait] = Log(longest / step);
    out[kLeastSlack] = Log(least / step);
    out[kSlack] = Log(slack / (weight * step));
    out[kSpan] = Share(std::max(last - first, 0.), step);
    out[kMiddle] = static_cast<float>(middle / (weight * kBins));
    out[kTargetBusyThen] = Share(there, weight * width);
    out[kSourceBusyThen] = Share(here, weight * width);
    out[kCrowding] = Log(crowding / step);
  }

  void DescribeMemory(float* out) const {
    const auto full = [this](int32_t device, double more) {
      const int32_t pool = g_.pool[device];
      return Share(now_.peak_bytes[pool] + more, g_.pool_bytes[pool]);
    };
    std::vector<double> more(g_.num_pools, 0);
    for (int32_t d = 0; d < g_.num_devices; ++d) more[g_.pool[d]] += bytes_[d];
    double overflow = 0, after = 0;
    for (int32_t p = 0; p < g_.num_pools; ++p) {
      const double room = std::max(g_.pool_bytes[p], 1.);
      overflow += std::max(now_.peak_bytes[p] / room - 1, 0.);
      after += std::max((now_.peak_bytes[p] + more[p]) / room - 1, 0.);
    }
    out[kSourceFull] = full(source_, 0);
    out[kTargetFull] = full(target_, 0);
    out[kTargetFullAfter] = full(target_, more[g_.pool[target_]]);
    out[kOverflow] = Log(overflow);
    out[kOverflowAfter] = Log(after);
  }
};

}  // namespace gdp

#endif  // GDP_GRAPPLER_FEATURES_MOVES_MOVE_CANDIDATES_H_

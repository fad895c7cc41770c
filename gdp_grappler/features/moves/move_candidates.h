// The features of one move after the other.

#ifndef GDP_GRAPPLER_FEATURES_MOVES_MOVE_CANDIDATES_H_
#define GDP_GRAPPLER_FEATURES_MOVES_MOVE_CANDIDATES_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "gdp_grappler/features/moves/move_graph.h"
#include "gdp_grappler/features/moves/move_incumbent.h"

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

// Shares from 1e-4 to 1 on a logarithmic scale from 0 to 1, with their sign.
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
  Candidates(const MoveGraph& graph, const Incumbent& incumbent)
      : g_(graph), now_(incumbent) {}

  // Writes kNumFeatures of a placement `next` [G]; all 0 if nothing moves.
  void Describe(const int32_t* next, float* out) {
    std::fill_n(out, kNumFeatures, 0.f);
    now_.FindMoved(next, &moved_);
    if (moved_.empty()) return;
    FindEnds(next);
    SumNets(next);
    DescribeSize(next, out);
    DescribeLoad(out);
    DescribeTransfers(out);
    DescribeTime(out);
    DescribeMemory(out);
  }

 private:
  const MoveGraph& g_;
  const Incumbent& now_;
  std::vector<int32_t> moved_;
  int32_t source_ = 0, target_ = 0, num_sources_ = 0, num_targets_ = 0;
  double old_s_ = 0, new_s_ = 0;
  std::vector<double> lost_s_, gained_s_, bytes_;  // [D], weights of moves.
  std::vector<double> load_s_, out_s_, in_s_;      // [D], after the move.
  // Nets that were looked at for the present candidate, devices for a net.
  std::vector<int64_t> seen_net_, before_, after_;
  int64_t candidate_ = 0, net_ = 0;
  double sent_before_ = 0, sent_after_ = 0, critical_before_ = 0,
         critical_after_ = 0, late_inputs_ = 0, late_outputs_ = 0, delayed_ = 0,
         hastened_ = 0, pull_ = 0;
  int64_t messages_ = 0;
  std::vector<double> affinity_;  // [D], bytes shared with what stays there.

  double Seconds(int32_t group, int32_t device) const {
    return g_.group_seconds[int64_t{group} * g_.num_devices + device];
  }

  // The devices that lose and gain most work.
  void FindEnds(const int32_t* next) {
    for (auto* column : {&lost_s_, &gained_s_, &bytes_, &affinity_}) {
      column->assign(g_.num_devices, 0);
    }
    load_s_ = now_.load_s;
    old_s_ = new_s_ = 0;
    for (const int32_t g : moved_) {
      const int32_t from = now_.devices[g], to = next[g];
      const double before = now_.work_s[g], after = Seconds(g, to);
      old_s_ += before;
      new_s_ += after;
      load_s_[from] -= before;
      load_s_[to] += after;
      // What takes no time counts a little, so that it has ends as well.
      lost_s_[from] += before + 1e-12;
      gained_s_[to] += after + 1e-12;
      bytes_[from] -= g_.group_bytes[g];
      bytes_[to] += g_.group_bytes[g];
    }
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

  void SumNets(const int32_t* next) {
    out_s_ = now_.out_s;
    in_s_ = now_.in_s;
    sent_before_ = sent_after_ = critical_before_ = critical_after_ = 0;
    late_inputs_ = late_outputs_ = delayed_ = hastened_ = pull_ = 0;
    messages_ = 0;
    seen_net_.resize(g_.nets.size(), 0);
    before_.resize(g_.num_devices, 0);
    after_.resize(g_.num_devices, 0);
    ++candidate_;
    for (const int32_t g : moved_) {
      const Rows& nets = g_.nets_of_group;
      for (int32_t i = nets.starts[g]; i < nets.starts[g + 1]; ++i) {
        const int32_t net = nets.values[i];
        if (seen_net_[net] == candidate_) continue;
        seen_net_[net] = candidate_;
        SumNet(net, next);
      }
    }
  }

  void SumNet(int32_t number, const int32_t* next) {
    const Net& net = g_.nets[number];
    const int32_t own = g_.group[net.producer];
    const int32_t home = now_.devices[own], new_home = next[own];
    const bool leaves = new_home != home;
    ++net_;
    for (int32_t p = net.first_pin; p < g_.nets[number + 1].first_pin; ++p) {
      const int32_t op = g_.pins[p], group = g_.group[op];
      if (group == own) continue;
      const int32_t there = now_.devices[group], new_there = next[group];
      const bool moves = new_there != there;
      const bool sent = there != home && before_[there] != net_;
      const bool sends = new_there != new_home && after_[new_there] != net_;
      if (!moves && !leaves && !sent && !sends) continue;
      const double arrival = now_.Arrival(number, there);
      const double latest = now_.latest_s[op];
      if (sent) {
        before_[there] = net_;
        const double seconds = g_.TransferSeconds(net, home, there);
        sent_before_ += seconds;
        critical_before_ += seconds * now_.Criticality(latest - arrival);
        out_s_[home] -= seconds;
        in_s_[there] -= seconds;
        --messages_;
      }
      double new_arrival = now_.end_s[net.producer];
      if (new_there != new_home) {
        const double seconds = g_.TransferSeconds(net, new_home, new_there);
        // A transfer that is there already takes what it took.
        const bool stays = !leaves && !moves;
        new_arrival = stays ? arrival : new_arrival + seconds;
        if (sends) {
          after_[new_there] = net_;
          sent_after_ += seconds;
          critical_after_ += seconds * now_.Criticality(latest - new_arrival);
          out_s_[new_home] += seconds;
          in_s_[new_there] += seconds;
          ++messages_;
        }
      }
      if (moves || leaves) {
        Pin(op, moves, arrival, new_arrival);
        if (!moves) Pull(net, there);
        if (!leaves) Pull(net, home);
      }
    }
  }

  // What comes to an op at another time, as far as is known.
  void Pin(int32_t op, bool moves, double before, double after) {
    double& late = moves ? late_inputs_ : late_outputs_;
    late = std::max(late, after - now_.latest_s[op]);
    const double tight = now_.Criticality(now_.start_s[op] - before);
    delayed_ += now_.critical[op] * std::max(after - now_.start_s[op], 0.);
    hastened_ += now_.critical[op] * tight * std::max(before - after, 0.);
  }

  // Something that moves shares a net with something that stays.
  void Pull(const Net& net, int32_t device) {
    affinity_[device] += net.bytes + 1;
    pull_ += net.bytes + 1;
  }

  void DescribeSize(const int32_t* next, float* out) const {
    double bytes = 0, straight = 0;
    for (const int32_t g : moved_) {
      bytes += g_.group_bytes[g];
      if (now_.devices[g] == source_ && next[g] == target_) {
        straight += now_.work_s[g] + 1e-12;
      }
    }
    double all = 0;
    for (const double lost : lost_s_) all += lost;
    out[kGroups] = static_cast<float>(std::log1p(moved_.size()) /
                                      std::log1p(g_.num_groups));
    out[kWorkShare] = Log(Share(old_s_, now_.total_s));
    out[kWork] = Log(old_s_ / now_.step_s);
    out[kWorkChange] = Log((new_s_ - old_s_) / now_.step_s);
    out[kBytesShare] = Log(Share(bytes, g_.total_bytes));
    out[kTargets] = Share(num_targets_, g_.num_devices);
    out[kSources] = Share(num_sources_, g_.num_devices);
    out[kBackflow] = 1 - Share(straight, all);
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

  void DescribeTransfers(float* out) const {
    const double step = now_.step_s;
    double wire = 0, new_wire = 0;
    for (int32_t d = 0; d < g_.num_devices; ++d) {
      wire = std::max({wire, now_.out_s[d], now_.in_s[d]});
      new_wire = std::max({new_wire, out_s_[d], in_s_[d]});
    }
    out[kSentBefore] = Log(sent_before_ / step);
    out[kSentAfter] = Log(sent_after_ / step);
    out[kSentChange] = Log((sent_after_ - sent_before_) / step);
    out[kMessagesChange] = Log(messages_ * 1e-3);
    out[kCriticalSentBefore] = Log(critical_before_ / step);
    out[kCriticalSentAfter] = Log(critical_after_ / step);
    out[kCriticalSentChange] = Log((critical_after_ - critical_before_) / step);
    out[kSourceAffinity] = Share(affinity_[source_], pull_);
    out[kTargetAffinity] = Share(affinity_[target_], pull_);
    out[kWireBusy] = Share(wire, step);
    out[kWireBusyChange] = Log((new_wire - wire) / step);
    out[kLateInputs] = Log(std::max(late_inputs_, 0.) / step);
    out[kLateOutputs] = Log(std::max(late_outputs_, 0.) / step);
    out[kDelayed] = Log(delayed_ / step);
    out[kHastened] = Log(hastened_ / step);
  }

  void DescribeTime(float* out) const {
    const double step = now_.step_s, width = step / kBins;
    const double* target = &now_.busy_s[target_ * kBins];
    const double* source = &now_.busy_s[source_ * kBins];
    double critical = 0, waiting = 0, longest = 0, least = step, slack = 0,
           first = step, last = 0, there = 0, here = 0, weight = 0, middle = 0;
    double added[kBins] = {};
    for (const int32_t g : moved_) {
      const double work = now_.work_s[g] + 1e-12;
      const int32_t bin = now_.bin[g];
      critical += now_.critical_s[g];
      waiting += now_.waiting_s[g];
      longest = std::max(longest, now_.longest_wait_s[g]);
      least = std::min(least, now_.slack_s[g]);
      slack += now_.weighted_slack_s[g];
      first = std::min(first, now_.first_s[g]);
      last = std::max(last, now_.last_s[g]);
      weight += work;
      middle += work * bin;
      there += work * target[bin];
      here += work * source[bin];
      if (now_.devices[g] == source_) Spread(g, added);
    }
    double crowding = 0;
    for (int32_t b = 0; b < kBins; ++b) {
      if (added[b] > 0) {
        crowding += std::max(target[b] + added[b] - width, 0.);
      }
    }
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

  // Adds a group's work to the bins in which it runs.
  void Spread(int32_t group, double* bins) const {
    const int32_t first = now_.BinOf(now_.first_s[group]);
    const int32_t last = std::max(now_.BinOf(now_.last_s[group]), first);
    const double each = now_.work_s[group] / (last - first + 1);
    for (int32_t b = first; b <= last; ++b) bins[b] += each;
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

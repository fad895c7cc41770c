// Transfers of nets before and after a move, and their arrivals.

#ifndef GDP_GRAPPLER_FEATURES_MOVES_MOVE_TRAFFIC_H_
#define GDP_GRAPPLER_FEATURES_MOVES_MOVE_TRAFFIC_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "gdp_grappler/features/moves/move_graph.h"
#include "gdp_grappler/features/moves/move_incumbent.h"
#include "gdp_grappler/features/moves/move_ties.h"

namespace gdp {

// Sums over nets between moved groups and any groups. The late seconds are
// those of the latest arrival.
struct TrafficSums {
  double sent_before_s = 0, sent_after_s = 0, critical_before_s = 0,
         critical_after_s = 0, late_inputs_s = 0, late_outputs_s = 0,
         delayed_s = 0, hastened_s = 0;
  double pull = 0;  // Sum of the affinity over all devices.
  int64_t messages = 0;
};

class Traffic {
 public:
  Traffic(const MoveGraph& graph, const Incumbent& incumbent, const Ties& ties)
      : g_(graph),
        now_(incumbent),
        ties_(ties),
        links_(graph.num_devices * graph.num_devices),
        seen_(graph.nets.size()),
        sent_to_(graph.num_devices, 0),
        nets_(graph.nets.size() + kAhead, 0) {
    for (int32_t from = 0; from < graph.num_devices; ++from) {
      for (int32_t to = 0; to < graph.num_devices; ++to) {
        const int32_t link = from * graph.num_devices + to;
        if (from != to) {
          links_[link] = {graph.latency_s[link], graph.bytes_per_s[link]};
        }
      }
    }
  }

  // [D], after the move. Affinity is bytes shared with groups that stay.
  const std::vector<double>& out_s() const { return out_s_; }
  const std::vector<double>& in_s() const { return in_s_; }
  const std::vector<double>& affinity() const { return affinity_; }

  // Sums for a placement `next` [G] that has `moved` groups elsewhere.
  TrafficSums Sum(const std::vector<int32_t>& moved, const int32_t* next) {
    out_s_ = now_.out_s;
    in_s_ = now_.in_s;
    affinity_.assign(g_.num_devices, 0);
    FindNets(moved, next);
    TrafficSums sums;
    const Origin* origins = ties_.origins.data();
    for (int32_t k = 0; k < num_nets_; ++k) {
      // Nets are far apart in memory, so prefetch them. The elements of `nets_`
      // after the last net are nets of earlier moves.
      __builtin_prefetch(&origins[nets_[k + kAhead]]);
      const int32_t soon = origins[nets_[k + kAhead / 2]].first_tie;
      __builtin_prefetch(ties_.ties.data() + soon);
      __builtin_prefetch(ties_.times.data() + soon);
      __builtin_prefetch(&ties_.times.data()[soon].sent_critical);
      Add(origins[nets_[k]], next, &sums);
    }
    return sums;
  }

 private:
  // Number of nets by which memory is prefetched.
  static constexpr int32_t kAhead = 32;

  // Transfers from a device to itself take no time.
  struct Link {
    double latency_s = 0;
    double bytes_per_s = std::numeric_limits<double>::infinity();

    double Seconds(double bytes) const {
      return latency_s + bytes / bytes_per_s;
    }
  };

  // A net of groups that move. A way is a number for a pair: a move, and a
  // device to which it takes groups.
  struct Seen {
    uint32_t way = 0;   // The way of the first group.
    int32_t count = 0;  // Groups of the net that go the same way.
  };

  const MoveGraph& g_;
  const Incumbent& now_;
  const Ties& ties_;
  std::vector<double> out_s_, in_s_, affinity_;
  std::vector<Link> links_;       // [D, D]
  std::vector<Seen> seen_;        // [H]
  uint32_t first_way_ = 0;        // Way of the present move to device 0.
  std::vector<int64_t> sent_to_;  // [D], net that was sent last.
  int64_t net_ = 0;
  std::vector<int32_t> nets_;  // [H], the first num_nets_ are in use.
  int32_t num_nets_ = 0;

  // Finds the nets of the moved groups, each once. Quiet nets that go to one
  // device as a whole are left out, because nothing changes for them.
  void FindNets(const std::vector<int32_t>& moved, const int32_t* next) {
    const uint32_t devices = g_.num_devices;
    if (first_way_ > std::numeric_limits<uint32_t>::max() - 2 * devices) {
      std::fill(seen_.begin(), seen_.end(), Seen());
      first_way_ = 0;
    }
    first_way_ += devices;
    const uint32_t first_way = first_way_;
    const int32_t* starts = g_.nets_of_group.starts.data();
    const int32_t* values = g_.nets_of_group.values.data();
    const int32_t num_values = g_.nets_of_group.values.size();
    const int32_t* to_move = ties_.to_move.data();
    Seen* seen = seen_.data();
    int32_t* at = nets_.data();
    const size_t count = moved.size();
    for (size_t first = 0, last = 0; first < count; first = last) {
      const int32_t to = next[moved[first]];
      // Consecutive groups with one device are handled as one row.
      while (++last < count && moved[last] == moved[last - 1] + 1 &&
             next[moved[last]] == to) {
      }
      const uint32_t way = first_way + to;
      const int32_t end = starts[moved[last - 1] + 1];
      for (int32_t i = starts[moved[first]]; i < end; ++i) {
        __builtin_prefetch(&seen[values[std::min(i + kAhead, num_values - 1)]]);
        const int32_t net = values[i];
        const Seen now = seen[net];
        const bool is_new = now.way - first_way >= devices;
        const uint32_t its_way = is_new ? way : now.way;
        seen[net] = {its_way, (is_new ? 0 : now.count) + (its_way == way)};
        *at = net;
        at += is_new;
      }
    }
    const int32_t found = at - nets_.data();
    at = nets_.data();
    for (int32_t k = 0; k < found; ++k) {
      const int32_t net = nets_[k];
      *at = net;
      at += seen[net].count != to_move[net];
    }
    num_nets_ = at - nets_.data();
  }

  // Adds the ties of a net in their stored order, so that rounding does not
  // depend on which groups move.
  void Add(const Origin& origin, const int32_t* next, TrafficSums* sums) {
    const Tie* ties = ties_.ties.data();
    const int32_t last = origin.last_tie, home = origin.device;
    const int32_t new_home = next[origin.group];
    const bool leaves = new_home != home;
    int64_t* sent_to = sent_to_.data();
    const int64_t net = ++net_;
    sent_to[new_home] = net;
    for (int32_t i = origin.first_tie; i < last; ++i) {
      const Tie tie = ties[i];
      const int32_t there = next[tie.group];
      const bool moves = there != tie.device;
      const bool sends = sent_to[there] != net;
      if (tie.quiet && there == new_home) continue;
      if (!moves && !leaves && !tie.first && !sends) continue;
      sent_to[there] = net;
      const TieTimes& times = ties_.times[i];
      if (tie.first) {
        sums->sent_before_s += times.sent_s;
        sums->critical_before_s += times.sent_critical;
        out_s_[home] -= times.sent_s;
        in_s_[tie.device] -= times.sent_s;
        --sums->messages;
      }
      // A transfer that exists already takes its present time.
      double seconds = times.sent_s, critical = times.sent_critical;
      if (moves || leaves) {
        seconds =
            links_[new_home * g_.num_devices + there].Seconds(origin.bytes);
        const double arrival = origin.end_s + seconds;
        AddChange(origin, times, arrival, moves, sums);
        // A moved group shares a net with a group that stays.
        if (moves != leaves) {
          affinity_[moves ? home : tie.device] += origin.bytes + 1;
          sums->pull += origin.bytes + 1;
        }
        if (sends) {
          critical = seconds * now_.Criticality(times.latest_s - arrival);
        }
      }
      if (sends) {
        sums->sent_after_s += seconds;
        sums->critical_after_s += critical;
        out_s_[new_home] += seconds;
        in_s_[there] += seconds;
        ++sums->messages;
      }
    }
  }

  // Adds the effect of an input that arrives at another time.
  static void AddChange(const Origin& origin, const TieTimes& times,
                        double arrival, bool moves, TrafficSums* sums) {
    const double late = arrival - times.latest_s;
    sums->late_inputs_s = std::max(sums->late_inputs_s, moves ? late : 0);
    sums->late_outputs_s = std::max(sums->late_outputs_s, moves ? 0 : late);
    sums->delayed_s += times.critical * std::max(arrival - times.start_s, 0.);
    sums->hastened_s += times.eager * std::max(times.arrival_s - arrival, 0.);
  }
};

}  // namespace gdp

#endif  // GDP_GRAPPLER_FEATURES_MOVES_MOVE_TRAFFIC_H_

// The nets between groups in the present placement. Most readers need only the
// eight bytes of a `Tie`, so its times are in an array of their own.

#ifndef GDP_GRAPPLER_FEATURES_MOVES_MOVE_TIES_H_
#define GDP_GRAPPLER_FEATURES_MOVES_MOVE_TIES_H_

#include <cstdint>
#include <vector>

#include "gdp_grappler/features/moves/move_graph.h"
#include "gdp_grappler/features/moves/move_incumbent.h"

namespace gdp {

// The producer's end of a net.
struct Origin {
  double bytes, end_s;
  int32_t group, device;
  int32_t first_tie, last_tie;  // Excluding the last.
};

// A consuming op in another group than the producer's.
struct Tie {
  int32_t group;
  int32_t device : 30;
  // The input arrives in time without being sent. This stays true if both ends
  // move together to any device.
  uint32_t quiet : 1;
  uint32_t first : 1;  // First of its net on a device that gets the net.
};

// The times of a tie.
struct TieTimes {
  double arrival_s, latest_s, start_s, critical;
  double eager;  // How critical the op and its input are for the op's start.
  double sent_s, sent_critical;  // If the net is sent.
};

struct Ties {
  std::vector<Origin> origins;  // [H]
  std::vector<Tie> ties;
  std::vector<TieTimes> times;
  // [H], number of groups of the net if all its ties are quiet. Nothing then
  // changes for the net if all its groups move to one device. If a tie is not
  // quiet, one more than the number of groups: no move reaches this number.
  std::vector<int32_t> to_move;

  void Observe(const MoveGraph& graph, const Incumbent& now) {
    const int32_t count = static_cast<int32_t>(graph.nets.size()) - 1;
    origins.resize(count);
    to_move.assign(count, 0);
    for (const int32_t net : graph.nets_of_group.values) ++to_move[net];
    ties.resize(graph.pins.size());
    times.resize(graph.pins.size());
    std::vector<int32_t> sent(graph.num_devices, kNobody);
    int32_t at = 0;
    for (int32_t n = 0; n < count; ++n) {
      const Net& net = graph.nets[n];
      const int32_t own = graph.group[net.producer], home = now.devices[own];
      const double end = now.end_s[net.producer];
      bool all_quiet = true;
      origins[n] = {net.bytes, end, own, home, at, at};
      for (int32_t p = net.first_pin; p < graph.nets[n + 1].first_pin; ++p) {
        const int32_t op = graph.pins[p], group = graph.group[op];
        if (group == own) continue;
        const int32_t there = now.devices[group];
        const double start = now.start_s[op], latest = now.latest_s[op];
        const double arrival = now.arrival_s[p], critical = now.critical[op];
        TieTimes& t = times[at];
        t = {arrival, latest, start, critical, 0, 0, 0};
        t.eager = critical * now.Criticality(start - arrival);
        if (there != home) {
          t.sent_s = graph.TransferSeconds(net, home, there);
          t.sent_critical = t.sent_s * now.Criticality(latest - arrival);
        }
        const bool first = there != home && sent[there] != n;
        sent[there] = n;
        const bool quiet =
            there == home && arrival <= start && arrival <= latest;
        all_quiet &= quiet;
        ties[at++] = {group, there, quiet, first};
      }
      origins[n].last_tie = at;
      to_move[n] += !all_quiet;
    }
  }
};

}  // namespace gdp

#endif  // GDP_GRAPPLER_FEATURES_MOVES_MOVE_TIES_H_

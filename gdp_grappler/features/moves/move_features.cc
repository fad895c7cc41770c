// The features of moves, for many moves from one placement.
//
// A plain C interface over arrays, without TensorFlow and Python. schema.py and
// featurizer.py explain the features.

#include <algorithm>
#include <cstdint>
#include <deque>
#include <new>

#include "gdp_grappler/features/moves/move_candidates.h"
#include "gdp_grappler/features/moves/move_graph.h"
#include "gdp_grappler/features/moves/move_incumbent.h"
#include "gdp_grappler/features/moves/move_rescheduling.h"
#include "gdp_grappler/features/moves/move_retiming.h"
#include "gdp_grappler/features/moves/move_ties.h"
#include "gdp_grappler/workers.h"

namespace {

// Results of the C functions.
enum Status : int32_t { kOk = 0, kOutOfMemory = 1 };

// Fewest groups, over all moves, for which another thread pays off.
constexpr int64_t kFewestGroups = 1 << 14;

// The state of one thread.
struct Desk {
  gdp::Candidates candidates;
  gdp::Rescheduler rescheduler;

  Desk(const gdp::MoveGraph& graph, const gdp::Incumbent& incumbent,
       const gdp::Ties& ties, const gdp::StartOrder& order)
      : candidates(graph, incumbent, ties, order),
        rescheduler(graph, incumbent) {}
};

}  // namespace

struct GdpMoveFeatures {
  gdp::MoveGraph graph;
  gdp::Incumbent incumbent;
  gdp::Ties ties;
  gdp::StartOrder order;
  double retimed_s = 0;  // Retimed step of the observed placement.
  std::deque<Desk> desks;

  explicit GdpMoveFeatures(const GdpMoveGraph& g)
      : graph(g), incumbent(graph), order(graph) {}

  // Calls `work(desk, k)` for each of `count` moves, in up to `threads`
  // threads.
  template <typename Work>
  Status OfEach(int64_t count, int32_t threads, const Work& work) {
    const int64_t groups = count * graph.num_groups;
    const int64_t wanted =
        std::clamp<int64_t>(groups / kFewestGroups, 1, threads);
    while (static_cast<int64_t>(desks.size()) < std::min(wanted, count)) {
      desks.emplace_back(graph, incumbent, ties, order);
    }
    const auto all = [&](int32_t worker, gdp::Numbers* numbers) {
      for (int64_t k; numbers->Next(&k);) work(&desks[worker], k);
    };
    return gdp::ShareOut(count, wanted, all) ? kOk : kOutOfMemory;
  }
};

extern "C" {

// Number of features of a move.
int32_t gdp_move_features_count() { return gdp::kNumFeatures; }

// Null if memory runs out.
GdpMoveFeatures* gdp_move_features_create(const GdpMoveGraph* graph) try {
  return new GdpMoveFeatures(*graph);
} catch (const std::bad_alloc&) {
  return nullptr;
}

void gdp_move_features_destroy(GdpMoveFeatures* features) { delete features; }

// Sets the placement from which moves are made. Returns a Status.
int32_t gdp_move_features_observe(GdpMoveFeatures* features,
                                  const GdpMoveSchedule* schedule) try {
  features->incumbent.Observe(*schedule);
  features->ties.Observe(features->graph, features->incumbent);
  features->order.Observe(features->incumbent);
  gdp::Retiming retiming(features->order);
  features->retimed_s =
      retiming.StepSeconds(features->incumbent.devices.data());
  return kOk;
} catch (const std::bad_alloc&) {
  return kOutOfMemory;
}

// Writes features [count, F] of placements `devices` [count, G], as moves from
// the observed placement, in up to `threads` threads. Returns a Status.
int32_t gdp_move_features_describe(GdpMoveFeatures* features, int64_t count,
                                   const int32_t* devices, int32_t threads,
                                   float* out) try {
  const int64_t groups = features->graph.num_groups;
  return features->OfEach(count, threads, [&](Desk* desk, int64_t k) {
    desk->candidates.Describe(devices + k * groups, features->retimed_s,
                              out + k * gdp::kNumFeatures);
  });
} catch (const std::bad_alloc&) {
  return kOutOfMemory;
}

// Places the moved groups in rows of `devices` [count, G] anew, with `weights`
// [count, 3] of `ReschedulingWeights`. This is done in rows marked in `places`
// [count] that move more than one and at most `most` groups, in up to `threads`
// threads. `allowed` is [G, D]. Afterwards, `places` marks the rows in which it
// was done. Returns a Status.
int32_t gdp_move_features_reschedule(GdpMoveFeatures* features, int64_t count,
                                     const uint8_t* allowed,
                                     const double* weights, int32_t most,
                                     int32_t threads, uint8_t* places,
                                     int32_t* devices) try {
  const int64_t groups = features->graph.num_groups;
  return features->OfEach(count, threads, [&](Desk* desk, int64_t k) {
    if (!places[k]) return;
    const double* w = weights + 3 * k;
    places[k] = desk->rescheduler.Reschedule(allowed, {w[0], w[1], w[2]}, most,
                                             devices + k * groups);
  });
} catch (const std::bad_alloc&) {
  return kOutOfMemory;
}

}  // extern "C"

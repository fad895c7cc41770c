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
#include "gdp_grappler/features/moves/move_retiming.h"
#include "gdp_grappler/features/moves/move_ties.h"
#include "gdp_grappler/workers.h"

namespace {

// Results of the C functions.
enum Status : int32_t { kOk = 0, kOutOfMemory = 1 };

// Fewest groups, over all moves, for which another thread pays off.
constexpr int64_t kFewestGroups = 1 << 14;

}  // namespace

struct GdpMoveFeatures {
  gdp::MoveGraph graph;
  gdp::Incumbent incumbent;
  gdp::Ties ties;
  gdp::DispatchOrder order;
  double retimed_s = 0;  // Retimed step of the observed placement.
  std::deque<gdp::Candidates> candidates;  // One for each thread.

  explicit GdpMoveFeatures(const GdpMoveGraph& g)
      : graph(g), incumbent(graph), order(graph) {}

  // Features of moves, computed in up to `threads` threads.
  Status Describe(int64_t count, const int32_t* devices, int32_t threads,
                  float* out) {
    const int64_t groups = graph.num_groups;
    const int64_t wanted =
        std::clamp<int64_t>(count * groups / kFewestGroups, 1, threads);
    while (static_cast<int64_t>(candidates.size()) < std::min(wanted, count)) {
      candidates.emplace_back(graph, incumbent, ties, order);
    }
    const auto all = [&](int32_t worker, gdp::Numbers* numbers) {
      for (int64_t k; numbers->Next(&k);) {
        candidates[worker].Describe(devices + k * groups, retimed_s,
                                    out + k * gdp::kNumFeatures);
      }
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
  return features->Describe(count, devices, threads, out);
} catch (const std::bad_alloc&) {
  return kOutOfMemory;
}

}  // extern "C"

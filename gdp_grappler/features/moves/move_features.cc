// The features of moves, for many moves from one placement.
//
// Plain C interface over arrays; no TensorFlow, no Python. What the features
// mean is said in schema.py and featurizer.py.

#include <cstdint>
#include <memory>
#include <new>

#include "gdp_grappler/features/moves/move_candidates.h"
#include "gdp_grappler/features/moves/move_graph.h"
#include "gdp_grappler/features/moves/move_incumbent.h"
#include "gdp_grappler/features/moves/move_repair.h"
#include "gdp_grappler/features/moves/move_ties.h"

struct GdpMoveFeatures {
  gdp::MoveGraph graph;
  gdp::Incumbent incumbent;
  gdp::Ties ties;
  gdp::Candidates candidates;
  gdp::Repair repair;

  explicit GdpMoveFeatures(const GdpMoveGraph& g)
      : graph(g),
        incumbent(graph),
        candidates(graph, incumbent, ties),
        repair(graph, incumbent) {}
};

namespace {

// Results of the C functions.
enum Status : int32_t { kOk = 0, kOutOfMemory = 1 };

}  // namespace

extern "C" {

// How many features a move has.
int32_t gdp_move_features_count() { return gdp::kNumFeatures; }

// Null if memory runs out.
GdpMoveFeatures* gdp_move_features_create(const GdpMoveGraph* graph) try {
  return new GdpMoveFeatures(*graph);
} catch (const std::bad_alloc&) {
  return nullptr;
}

void gdp_move_features_destroy(GdpMoveFeatures* features) { delete features; }

// Says from where moves are made. Returns a Status.
int32_t gdp_move_features_observe(GdpMoveFeatures* features,
                                  const GdpMoveSchedule* schedule) try {
  features->incumbent.Observe(*schedule);
  features->ties.Observe(features->graph, features->incumbent);
  return kOk;
} catch (const std::bad_alloc&) {
  return kOutOfMemory;
}

// Features [count, F] of placements `devices` [count, G] as moves from the one
// observed last. Returns a Status.
int32_t gdp_move_features_describe(GdpMoveFeatures* features, int64_t count,
                                   const int32_t* devices, float* out) try {
  const int64_t groups = features->graph.num_groups;
  for (int64_t k = 0; k < count; ++k) {
    features->candidates.Describe(devices + k * groups,
                                  out + k * gdp::kNumFeatures);
  }
  return kOk;
} catch (const std::bad_alloc&) {
  return kOutOfMemory;
}

// Places what moves in rows of `devices` [count, G] anew, with `weights`
// [count, 3] of `RepairWeights`, where `places` [count] says so, if it is more
// than one group and not more than so many. `allowed` [G, D]. Afterwards
// `places` says where it did. Returns a Status.
int32_t gdp_move_features_replace(GdpMoveFeatures* features, int64_t count,
                                  const uint8_t* allowed, const double* weights,
                                  int32_t most, uint8_t* places,
                                  int32_t* devices) try {
  const int64_t groups = features->graph.num_groups;
  for (int64_t k = 0; k < count; ++k) {
    if (!places[k]) continue;
    const double* w = weights + 3 * k;
    places[k] = features->repair.Replace(allowed, {w[0], w[1], w[2]}, most,
                                         devices + k * groups);
  }
  return kOk;
} catch (const std::bad_alloc&) {
  return kOutOfMemory;
}

}  // extern "C"

// Draws the moves of a search, many at a time.
//
// A plain C interface over arrays, without TensorFlow and Python. moves.py
// describes the kinds of moves.

#include "gdp_grappler/placers/search/moves/move_drawer.h"

#include <cstdint>
#include <cstring>
#include <new>
#include <vector>

#include "gdp_grappler/placers/search/moves/move_random.h"
#include "gdp_grappler/placers/search/moves/move_sets.h"

struct GdpMoveDrawer {
  gdp::MoveDrawer drawer;
};

namespace {

// Results of the C functions.
enum Status : int32_t { kOk = 0, kOutOfMemory = 1 };

}  // namespace

extern "C" {

// Number of kinds of moves.
int32_t gdp_move_drawer_kinds() { return gdp::kNumKinds; }

// A drawer for a layout, which is copied; null if memory runs out.
GdpMoveDrawer* gdp_move_drawer_create(const GdpMoveLayout* layout) try {
  return new GdpMoveDrawer{gdp::MoveDrawer(*layout)};
} catch (const std::bad_alloc&) {
  return nullptr;
}

void gdp_move_drawer_destroy(GdpMoveDrawer* drawer) { delete drawer; }

// Draws `count` moves from the placement `devices` [G], and writes the
// placements after the moves to `out` [count, G]. `kinds` [count] has the kind
// of each move. With probability `compound` one more move is added to a move.
// The probability holds again after each added move. `usual` [num_kinds] has
// the cumulative probabilities of the kinds of added moves. Returns a Status.
int32_t gdp_move_drawer_draw(GdpMoveDrawer* handle, const int32_t* devices,
                             int64_t count, const int32_t* kinds,
                             double compound, const double* usual,
                             uint64_t seed, int32_t* out) try {
  gdp::MoveDrawer& drawer = handle->drawer;
  gdp::MoveRandom random(seed);
  const std::vector<double> sums(usual, usual + gdp::kNumKinds);
  drawer.Observe(devices);
  for (int64_t k = 0; k < count; ++k) {
    int32_t* row = out + k * drawer.num_groups;
    std::memcpy(row, devices, drawer.num_groups * sizeof(*row));
    if (!drawer.CanMove()) continue;
    drawer.Draw(kinds[k], row, &random);
    while (random.Chance(compound)) {
      drawer.Draw(random.Weighted(sums), row, &random);
    }
  }
  return kOk;
} catch (const std::bad_alloc&) {
  return kOutOfMemory;
}

}  // extern "C"

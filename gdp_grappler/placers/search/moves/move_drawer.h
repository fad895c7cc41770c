// Draws moves of every kind, and applies them to placements of the groups.

#ifndef GDP_GRAPPLER_PLACERS_SEARCH_MOVES_MOVE_DRAWER_H_
#define GDP_GRAPPLER_PLACERS_SEARCH_MOVES_MOVE_DRAWER_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gdp_grappler/placers/search/moves/coordinate_sets.h"
#include "gdp_grappler/placers/search/moves/move_random.h"
#include "gdp_grappler/placers/search/moves/move_sets.h"

namespace gdp {

// In the order of `Moves.kinds`.
enum Kind : int32_t {
  kGroup,
  kBall,
  kPatch,
  kUnit,
  kPart,
  kScope,
  kWindow,
  kBorder,
  kSwap,
  kDevice,
  kCoordinateSet,
  kCoordinateSetPart,
  kCoordinateSetSwap,
  kCoordinateWhole,
  kCoordinateTrade,
  kNumKinds
};

// Number of random groups to try for a group on a given device. If none is on
// the device, a scan of all groups lists the groups of the device.
constexpr int32_t kTries = 16;

// The groups of a set that move. kAll: all groups go to the target.
// kOfOneDevice: the groups of one device go to the target. kExchanged: the
// groups of one device go to the target, and the target's groups go to that
// device.
enum class Who { kAll, kOfOneDevice, kExchanged };

struct Move {
  int32_t start, here, target;
  Who who;
};

inline Who WhoGoes(int32_t kind) {
  switch (kind) {
    case kPart:
    case kWindow:
    case kDevice:
    case kCoordinateSetPart:
      return Who::kOfOneDevice;
    case kSwap:
    case kCoordinateSetSwap:
    case kCoordinateTrade:
      return Who::kExchanged;
    default:
      return Who::kAll;
  }
}

inline std::vector<int32_t> Movable(const GdpMoveLayout& g) {
  std::vector<int32_t> result(g.order, g.order + g.num_movable);
  std::sort(result.begin(), result.end());
  return result;
}

class MoveDrawer {
 public:
  explicit MoveDrawer(const GdpMoveLayout& g)
      : num_groups(g.num_groups),
        num_devices_(g.num_devices),
        movable_(Movable(g)),
        allowed_(g.allowed, g.allowed + int64_t{g.num_groups} * g.num_devices),
        growth_(g),
        stretches_(g),
        units_(LabelsOf(g.units, g.num_units, g.num_groups, movable_)),
        scopes_(LabelsOf(g.scopes, g.num_scopes, g.num_groups, movable_)),
        coordinate_sets_(g, movable_),
        loads_(g, movable_) {}

  const int32_t num_groups;

  bool CanMove() const { return !movable_.empty(); }

  // From now on, the loads are those of this placement [G].
  void Observe(const int32_t* devices) {
    if (coordinate_sets_.AreThere()) loads_.Observe(devices);
  }

  // Applies a random move to a placement [G].
  void Draw(int32_t kind, int32_t* row, MoveRandom* random) {
    const Move move = Begin(kind, row, random);
    if (kind == kCoordinateTrade && coordinate_sets_.AreThere()) {
      Trade(move, row, random);
    } else {
      Make(move, Set(kind, move.start, row, random), row);
    }
  }

 private:
  int32_t num_devices_;
  std::vector<int32_t> movable_;  // [M]
  std::vector<uint8_t> allowed_;  // [D, G], 0 or 1
  Growth growth_;
  Stretches stretches_;
  std::vector<Labels> units_, scopes_;
  CoordinateSets coordinate_sets_;
  Loads loads_;
  std::vector<int32_t> set_;

  // [G], whether each group may be on a device.
  const uint8_t* AllowedAt(int32_t device) const {
    return allowed_.data() + int64_t{device} * num_groups;
  }

  int32_t NumMovable() const { return static_cast<int32_t>(movable_.size()); }

  // Draws a group to move and its target. For coordinate sets, seconds and
  // loads set the probabilities. For other kinds all groups are equally likely,
  // and devices of neighbours are preferred as targets.
  Move Begin(int32_t kind, const int32_t* row, MoveRandom* random) {
    const bool by_loads = kind >= kCoordinateSet && coordinate_sets_.AreThere();
    const int32_t start =
        by_loads ? loads_.Start(random) : movable_[random->Below(NumMovable())];
    const int32_t here = row[start];
    const auto possible = [&](int32_t device) {
      return device != here && AllowedAt(device)[start];
    };
    if (by_loads && random->Chance(kRelieving)) {
      return {start, here, loads_.Idle(possible, random), WhoGoes(kind)};
    }
    int32_t target = -1;
    if (random->Chance(.5)) {
      target = growth_.DeviceNear(start, row, possible, random);
    }
    if (target < 0) target = Any(possible, random);
    return {start, here, target, WhoGoes(kind)};
  }

  template <typename Possible>
  int32_t Any(const Possible& possible, MoveRandom* random) {
    set_.clear();
    for (int32_t d = 0; d < num_devices_; ++d) {
      if (possible(d)) set_.push_back(d);
    }
    return set_[random->Below(static_cast<int32_t>(set_.size()))];
  }

  Span Set(int32_t kind, int32_t start, const int32_t* row,
           MoveRandom* random) {
    switch (kind) {
      case kGroup:
        set_.assign(1, start);
        return All(set_);
      case kBall:
        return Grown(start, nullptr, random);
      case kUnit:
      case kPart:
        return Labelled(units_, start, row, random);
      case kScope:
        return Labelled(scopes_, start, row, random);
      case kWindow:
      case kSwap:
        return stretches_.Around(start, Size(random));
      case kBorder:
        return stretches_.Border(start, Size(random), row, random);
      case kDevice:
        return All(movable_);
      case kCoordinateSet:
      case kCoordinateSetPart:
      case kCoordinateSetSwap:
        if (coordinate_sets_.AreThere()) {
          return coordinate_sets_.Around(start, random);
        }
        break;
      case kCoordinateWhole:
        if (coordinate_sets_.AreThere()) {
          return coordinate_sets_.Axis(random).Like(start);
        }
        break;
    }
    return Grown(start, row, random);
  }

  // A random size, up to half of the movable groups.
  int32_t Size(MoveRandom* random) const {
    return random->Size(std::max(NumMovable() / 2, 1));
  }

  Span Grown(int32_t start, const int32_t* row, MoveRandom* random) {
    return growth_.Grown(start, std::min(Size(random), kMostGrown), row,
                         random);
  }

  Span Labelled(const std::vector<Labels>& levels, int32_t start,
                const int32_t* row, MoveRandom* random) {
    if (levels.empty()) return Grown(start, row, random);
    return levels[random->Below(static_cast<int32_t>(levels.size()))].Like(
        start);
  }

  // Two devices exchange their groups that have one of two values of a random
  // coordinate. One is the value of the start. The other one is the value of a
  // random group on the target, if there is such a group.
  void Trade(const Move& move, int32_t* row, MoveRandom* random) {
    const int32_t other = On(move.target, row, random);
    const Labels& axis = coordinate_sets_.Axis(random);
    Make(move, axis.Like(move.start), row);
    if (other >= 0 && axis.of_group[other] != axis.of_group[move.start]) {
      Make(move, axis.Like(other), row);
    }
  }

  // A random group on a device, or -1.
  int32_t On(int32_t device, const int32_t* row, MoveRandom* random) {
    for (int32_t i = 0; i < kTries; ++i) {
      const int32_t group = random->Below(num_groups);
      if (row[group] == device) return group;
    }
    set_.clear();
    for (int32_t g = 0; g < num_groups; ++g) {
      if (row[g] == device) set_.push_back(g);
    }
    if (set_.empty()) return -1;
    return set_[random->Below(static_cast<int32_t>(set_.size()))];
  }

  // Moves the groups of a set that may be on the target. The loop has no
  // branches, because a CPU could not predict them. A mask is all ones or zero.
  void Make(const Move& move, const Span& groups, int32_t* row) const {
    const int32_t here = move.here, target = move.target;
    const int32_t all = move.who == Who::kAll;
    const int32_t exchanged = move.who == Who::kExchanged;
    const uint8_t *there = AllowedAt(target), *back = AllowedAt(here);
    for (const int32_t group : groups) {
      const int32_t device = row[group];
      const int32_t goes = -((all | (device == here)) & there[group]);
      const int32_t returns = -(exchanged & (device == target) & back[group]);
      row[group] =
          device ^ (goes & (device ^ target)) ^ (returns & (device ^ here));
    }
  }
};

}  // namespace gdp

#endif  // GDP_GRAPPLER_PLACERS_SEARCH_MOVES_MOVE_DRAWER_H_

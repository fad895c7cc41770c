// Sets of groups that move together: connected sets, intervals of the
// topological order, and sets of equal labels.

#ifndef GDP_GRAPPLER_PLACERS_SEARCH_MOVES_MOVE_SETS_H_
#define GDP_GRAPPLER_PLACERS_SEARCH_MOVES_MOVE_SETS_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gdp_grappler/placers/search/moves/move_random.h"
#include "gdp_grappler/rows.h"

extern "C" {

// Sizes: G groups, E directed edges, D devices, M groups with more than one
// device.
struct GdpMoveLayout {
  int32_t num_groups, num_edges, num_devices, num_movable, num_units,
      num_scopes, num_axes;
  const int32_t* starts;        // [G + 1], where each group's edges begin
  const int32_t* neighbours;    // [E]
  const double* eagerness;      // [E], probability that a set grows along edge
  const int32_t* order;         // [M], in topological order
  const int32_t* units;         // [num_units, G], from 0
  const int32_t* scopes;        // [num_scopes, G], from 0
  const int32_t* axes;          // [num_axes, G], coordinates from 0
  const double* seconds;        // [G, D]
  const uint8_t* allowed;       // [D, G], 0 or 1
  const uint8_t* accelerators;  // [D]
};

}  // extern "C"

namespace gdp {

// Largest size of a connected set. Larger sets are units, scopes or intervals
// of the topological order, which take less time to make.
constexpr int32_t kMostGrown = 1000;

// Groups in consecutive memory; valid until the next set is made.
struct Span {
  const int32_t *first, *last;

  int64_t size() const { return last - first; }
  const int32_t* begin() const { return first; }
  const int32_t* end() const { return last; }
};

inline Span All(const std::vector<int32_t>& values) {
  return {values.data(), values.data() + values.size()};
}

// A label for each group, and the movable groups sorted by label.
struct Labels {
  std::vector<int32_t> of_group;  // [G]
  Rows members;

  Labels(const int32_t* labels, int32_t num_groups,
         const std::vector<int32_t>& movable)
      : of_group(labels, labels + num_groups) {
    std::vector<int32_t> rows;
    for (const int32_t group : movable) rows.push_back(of_group[group]);
    members.Fill(count(), rows, movable);
  }

  int32_t count() const {
    return 1 + *std::max_element(of_group.begin(), of_group.end());
  }

  // The groups with labels from `low` to `high` - 1.
  Span Between(int32_t low, int32_t high) const {
    const int32_t* values = members.values.data();
    return {values + members.starts[low], values + members.starts[high]};
  }

  Span Like(int32_t group) const {
    return Between(of_group[group], of_group[group] + 1);
  }
};

// The `Labels` of each of `count` levels, from an array [count, G].
inline std::vector<Labels> LabelsOf(const int32_t* levels, int32_t count,
                                    int32_t num_groups,
                                    const std::vector<int32_t>& movable) {
  std::vector<Labels> result;
  for (int32_t i = 0; i < count; ++i) {
    result.emplace_back(levels + int64_t{i} * num_groups, num_groups, movable);
  }
  return result;
}

// Connected sets.
class Growth {
 public:
  explicit Growth(const GdpMoveLayout& g)
      : starts_(g.starts, g.starts + g.num_groups + 1),
        joined_(g.num_groups, 0) {
    edges_.reserve(g.num_edges);
    for (int32_t e = 0; e < g.num_edges; ++e) {
      edges_.push_back({g.eagerness[e], g.neighbours[e]});
    }
  }

  // The device of a random neighbour of a group for which `wanted` is true; -1
  // if there is none.
  template <typename Wanted>
  int32_t DeviceNear(int32_t group, const int32_t* row, const Wanted& wanted,
                     MoveRandom* random) {
    near_.clear();
    for (int32_t e = starts_[group]; e < starts_[group + 1]; ++e) {
      const int32_t device = row[edges_[e].group];
      if (wanted(device)) near_.push_back(device);
    }
    if (near_.empty()) return -1;
    return near_[random->Below(static_cast<int32_t>(near_.size()))];
  }

  // `size` connected groups around one, or fewer if fewer are connected. The
  // rule is that of `grown` in connected_sets.py. If a placement `row` is
  // given, the set only has groups on the device of `start`.
  Span Grown(int32_t start, int32_t size, const int32_t* row,
             MoveRandom* random) {
    if (++draw_ == 0) {  // The number of draws has overflowed.
      std::fill(joined_.begin(), joined_.end(), 0);
      draw_ = 1;
    }
    set_.clear();
    frontier_.clear();
    Join(start, row);
    while (!frontier_.empty() && static_cast<int32_t>(set_.size()) < size) {
      const int32_t index =
          random->Below(static_cast<int32_t>(frontier_.size()));
      const Edge edge = frontier_[index];
      const bool inside = joined_[edge.group] == draw_;
      if (!inside && !random->Chance(edge.eagerness)) continue;
      frontier_[index] = frontier_.back();
      frontier_.pop_back();
      if (!inside) Join(edge.group, row);
    }
    return All(set_);
  }

 private:
  struct Edge {
    double eagerness;
    int32_t group;
  };

  std::vector<int32_t> starts_;   // [G + 1]
  std::vector<Edge> edges_;       // [E]
  std::vector<uint32_t> joined_;  // [G], number of the last draw with the group
  uint32_t draw_ = 0;
  std::vector<int32_t> set_, near_;
  std::vector<Edge> frontier_;

  void Join(int32_t group, const int32_t* row) {
    joined_[group] = draw_;
    set_.push_back(group);
    for (int32_t e = starts_[group]; e < starts_[group + 1]; ++e) {
      const int32_t other = edges_[e].group;
      if (joined_[other] == draw_) continue;
      if (row != nullptr && row[other] != row[group]) continue;
      frontier_.push_back(edges_[e]);
    }
  }
};

// Intervals of the topological order of groups.
class Stretches {
 public:
  explicit Stretches(const GdpMoveLayout& g)
      : order_(g.order, g.order + g.num_movable), rank_(g.num_groups, -1) {
    for (int32_t i = 0; i < g.num_movable; ++i) rank_[order_[i]] = i;
  }

  // An interval of `size` groups around one; shorter at the end of the order.
  Span Around(int32_t group, int32_t size) const {
    const int32_t first = std::max(rank_[group] - size / 2, 0);
    return Between(first, std::min(first + size, Count()));
  }

  // At most `size` groups of one device, up to the next change of devices or
  // from the last change on.
  Span Border(int32_t group, int32_t size, const int32_t* row,
              MoveRandom* random) const {
    const int32_t rank = rank_[group];
    int32_t end = rank;
    if (random->Chance(.5)) {
      while (end < Count() && row[order_[end]] == row[group]) ++end;
      return Between(std::max(rank, end - size), end);
    }
    while (end > 0 && row[order_[end - 1]] == row[group]) --end;
    return Between(end, std::min(rank + 1, end + size));
  }

 private:
  std::vector<int32_t> order_, rank_;  // [M], [G]

  int32_t Count() const { return static_cast<int32_t>(order_.size()); }

  Span Between(int32_t first, int32_t last) const {
    return {order_.data() + first, order_.data() + last};
  }
};

}  // namespace gdp

#endif  // GDP_GRAPPLER_PLACERS_SEARCH_MOVES_MOVE_SETS_H_

// Sets of groups with equal coordinates, and the loads of devices.
//
// A coordinate set is a set of groups with equal values of some coordinates,
// such as one layer over all time steps. Sets of busy devices are drawn more
// often, and idle devices are preferred as their targets.

#ifndef GDP_GRAPPLER_PLACERS_SEARCH_MOVES_COORDINATE_SETS_H_
#define GDP_GRAPPLER_PLACERS_SEARCH_MOVES_COORDINATE_SETS_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "gdp_grappler/placers/search/moves/move_random.h"
#include "gdp_grappler/placers/search/moves/move_sets.h"

namespace gdp {

// Largest number of coordinates that define a coordinate set.
constexpr int32_t kMostAxes = 3;
// Probability that the interval of the last coordinate of a set begins with the
// smallest value or ends with the largest value.
constexpr double kOpen = .5;
// Probability that the draw of a group to move prefers busy devices.
constexpr double kBalancing = .5;
// Probability that the target of a set is one of the least busy devices.
constexpr double kRelieving = .5;

class CoordinateSets {
 public:
  CoordinateSets(const GdpMoveLayout& g, const std::vector<int32_t>& movable)
      : axes_(LabelsOf(g.axes, g.num_axes, g.num_groups, movable)) {
    double sum = 0;
    for (const Labels& axis : axes_) {
      const double count = axis.count();
      coarseness_.push_back(sum += 1 / (count * count));
    }
    picked_.resize(axes_.size());
  }

  // Whether groups differ in any coordinate.
  bool AreThere() const { return !axes_.empty(); }

  // A coordinate set that contains a group. All coordinates of the set but the
  // last are those of the group. The last one is in an interval that contains
  // the value of the group. The length of the interval is log-uniform, or the
  // interval reaches to the smallest or to the largest value.
  Span Around(int32_t group, MoveRandom* random) {
    const int32_t count = std::min(random->Below(kMostAxes) + 1, NumAxes());
    ranges_.clear();
    // Restore the order of the axes. Otherwise the result would depend on
    // earlier draws, and not on the seed alone.
    std::iota(picked_.begin(), picked_.end(), 0);
    for (int32_t i = 0; i < count; ++i) {
      std::swap(picked_[i], picked_[i + random->Below(NumAxes() - i)]);
      const Labels& axis = axes_[picked_[i]];
      const int32_t at = axis.of_group[group];
      ranges_.push_back(i + 1 < count ? Range{&axis, at, at + 1}
                                      : Stretch(axis, at, random));
    }
    return Inside();
  }

  // A random coordinate. Coordinates with few values are preferred: a move of a
  // layer changes more than a move of a time step.
  const Labels& Axis(MoveRandom* random) const {
    return axes_[random->Weighted(coarseness_)];
  }

 private:
  // Values of a coordinate, from `low` to `high` - 1.
  struct Range {
    const Labels* axis;
    int32_t low, high;

    Span Groups() const { return axis->Between(low, high); }
    bool Has(int32_t group) const {
      const int32_t value = axis->of_group[group];
      return (value >= low) & (value < high);
    }
  };

  std::vector<Labels> axes_;
  std::vector<double> coarseness_;  // Cumulative weights of the axes.
  std::vector<int32_t> picked_;     // All axes; the axes of a set come first.
  std::vector<Range> ranges_;
  std::vector<int32_t> set_;

  int32_t NumAxes() const { return static_cast<int32_t>(axes_.size()); }

  static Range Stretch(const Labels& axis, int32_t at, MoveRandom* random) {
    const int32_t count = axis.count();
    if (random->Chance(kOpen)) {
      return random->Chance(.5) ? Range{&axis, at, count}
                                : Range{&axis, 0, at + 1};
    }
    const int32_t size = random->Size(count);
    const int32_t first = at - random->Below(size);
    return {&axis, std::max(first, 0), std::min(first + size, count)};
  }

  // The groups in all ranges.
  Span Inside() {
    std::swap(ranges_[0], *std::min_element(ranges_.begin(), ranges_.end(),
                                            [](const Range& a, const Range& b) {
                                              return a.Groups().size() <
                                                     b.Groups().size();
                                            }));
    const Span groups = ranges_[0].Groups();
    if (ranges_.size() == 1) return groups;
    // The loop has no branches, because a CPU could not predict them.
    set_.resize(groups.size() + 1);
    int32_t* end = set_.data();
    for (const int32_t group : groups) {
      bool inside = true;
      for (size_t i = 1; i < ranges_.size(); ++i) {
        inside &= ranges_[i].Has(group);
      }
      *end = group;
      end += inside;
    }
    return {set_.data(), end};
  }
};

// The loads of the devices in one placement, in seconds of work.
class Loads {
 public:
  Loads(const GdpMoveLayout& g, const std::vector<int32_t>& movable)
      : num_devices_(g.num_devices),
        seconds_(g.seconds, g.seconds + int64_t{g.num_groups} * g.num_devices),
        accelerators_(g.accelerators, g.accelerators + g.num_devices),
        movable_(movable) {}

  // Computes the loads of a placement [G], if it is not the last placement.
  void Observe(const int32_t* devices) {
    const size_t count = seconds_.size() / num_devices_;
    if (!observed_.empty() &&
        std::memcmp(devices, observed_.data(), count * sizeof(*devices)) == 0) {
      return;
    }
    observed_.clear();  // The loads are invalid if memory runs out below.
    std::vector<int32_t> kept(devices, devices + count);
    busy_s_.assign(num_devices_, 0);
    for (size_t g = 0; g < count; ++g)
      busy_s_[devices[g]] += Seconds(g, devices[g]);
    SumUp(devices);
    observed_ = std::move(kept);
  }

  // A random movable group, with a probability in proportion to its seconds.
  // Sometimes groups of busy devices are more likely.
  int32_t Start(MoveRandom* random) const {
    const bool balancing = random->Chance(kBalancing);
    return movable_[random->Weighted(balancing ? sooner_ : evenly_)];
  }

  // A random device of the less busy half of the devices for which `possible`
  // is true. If accelerators are among them, only accelerators count. At least
  // one device must be possible.
  template <typename Possible>
  int32_t Idle(const Possible& possible, MoveRandom* random) {
    others_.clear();
    bool accelerators = false;
    for (int32_t d = 0; d < num_devices_; ++d) {
      if (!possible(d) || (accelerators && !accelerators_[d])) continue;
      if (accelerators_[d] && !accelerators) {
        accelerators = true;
        others_.clear();
      }
      others_.push_back(d);
    }
    std::sort(others_.begin(), others_.end(), [this](int32_t a, int32_t b) {
      return std::make_pair(busy_s_[a], a) < std::make_pair(busy_s_[b], b);
    });
    return others_[random->Below(static_cast<int32_t>(others_.size() + 1) / 2)];
  }

 private:
  int32_t num_devices_;
  std::vector<double> seconds_;        // [G, D]
  std::vector<uint8_t> accelerators_;  // [D]
  std::vector<int32_t> movable_;       // [M]
  std::vector<int32_t> observed_;      // [G]
  std::vector<double> busy_s_;         // [D]
  // Cumulative sums over movable groups: of their seconds, and of their seconds
  // times a factor that is larger on busy devices.
  std::vector<double> evenly_, sooner_;
  std::vector<int32_t> others_;

  double Seconds(int64_t group, int32_t device) const {
    return seconds_[group * num_devices_ + device];
  }

  void SumUp(const int32_t* devices) {
    const double most =
        std::max(*std::max_element(busy_s_.begin(), busy_s_.end()), 1e-300);
    std::vector<double> factors;
    for (const double busy_s : busy_s_) {
      const double share = busy_s / most;
      factors.push_back(share * share * share * share);
    }
    evenly_.resize(movable_.size());
    sooner_.resize(movable_.size());
    double evenly = 0, sooner = 0;
    for (size_t i = 0; i < movable_.size(); ++i) {
      const int32_t device = devices[movable_[i]];
      const double own_s = Seconds(movable_[i], device);
      evenly_[i] = evenly += own_s;
      sooner_[i] = sooner += own_s * factors[device];
    }
  }
};

}  // namespace gdp

#endif  // GDP_GRAPPLER_PLACERS_SEARCH_MOVES_COORDINATE_SETS_H_

// Cards that are cut into several logical devices.

#ifndef GDP_GRAPPLER_EVALUATION_SIMULATOR_CARDS_H_
#define GDP_GRAPPLER_EVALUATION_SIMULATOR_CARDS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "gdp_grappler/evaluation/simulation/simulator_queues.h"

namespace gdp {

// The share of one card that kernels use, as a step function of time. A kernel
// that is enqueued later gets the share that earlier ones leave free.
class CardUse {
 public:
  void Reset() {
    steps_.assign(1, {0, 0});
    first_ = 0;
  }

  // Runs a kernel that can use `share` of the card, in (0, 1], and takes
  // `seconds` if it gets this share. The kernel starts at the first moment from
  // `*start` on at which a part of the card is free; `*start` is set to it.
  // Returns the end. No later call may ask for moments before `now`.
  double Run(double share, double seconds, double now, double* start) {
    Forget(now);
    size_t i = Find(*start);
    double time = *start, left = seconds;
    bool started = false;
    while (true) {
      const double rate = Rate(steps_[i].used, share);
      if (rate > 0 && !started) {
        started = true;
        *start = time;
      }
      const bool last = i + 1 == steps_.size();
      const double until = last ? 0 : steps_[i + 1].start_s;
      if (last || (rate > 0 && time + left / rate <= until)) {
        const double end = time + left / rate;
        if (!(end > time)) return end;
        i = Cut(i, time);
        Cut(i, end);
        steps_[i].used += share * rate;
        return end;
      }
      if (rate > 0) {
        i = Cut(i, time);
        steps_[i].used += share * rate;
        left = std::max(0.0, left - (until - time) * rate);
      }
      time = until;
      ++i;
    }
  }

 private:
  // Rounding error of sums of shares.
  static constexpr double kRounding = 1e-9;
  static constexpr size_t kMostForgotten = 256;

  struct Step {
    double start_s;  // The step lasts until the next step starts.
    double used;     // Used share of the card, at most 1; 0 in the last step.
  };

  static double Rate(double used, double share) {
    const double free = 1 - used;
    return free < kRounding ? 0 : std::min(1.0, free / share);
  }

  // Index of the step that contains a time.
  size_t Find(double time) const {
    const auto after = std::upper_bound(
        steps_.begin() + static_cast<std::ptrdiff_t>(first_), steps_.end(),
        time, [](double t, const Step& step) { return t < step.start_s; });
    return static_cast<size_t>(after - steps_.begin()) - 1;
  }

  // Splits step `i` at a time in it. Returns the index of the step that starts
  // at this time.
  size_t Cut(size_t i, double time) {
    if (steps_[i].start_s == time) return i;
    if (i + 1 < steps_.size() && steps_[i + 1].start_s == time) return i + 1;
    steps_.insert(steps_.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                  {time, steps_[i].used});
    return i + 1;
  }

  void Forget(double now) {
    while (first_ + 1 < steps_.size() && steps_[first_ + 1].start_s <= now) {
      ++first_;
    }
    if (first_ < kMostForgotten) return;
    steps_.erase(steps_.begin(),
                 steps_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
  }

  Vector<Step> steps_ = {{0, 0}};
  size_t first_ = 0;  // Steps before this one are in the past.
};

}  // namespace gdp

#endif  // GDP_GRAPPLER_EVALUATION_SIMULATOR_CARDS_H_

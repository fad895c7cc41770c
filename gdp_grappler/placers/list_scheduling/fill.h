// Fills one device after the other, as in m-TOPO; see native_scheduler.py.

#ifndef GDP_GRAPPLER_PLACERS_LIST_SCHEDULING_FILL_H_
#define GDP_GRAPPLER_PLACERS_LIST_SCHEDULING_FILL_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "gdp_grappler/placers/list_scheduling/schedule_state.h"

namespace gdp {

class Fill {
 public:
  // `left_bytes` [P] is the capacity of the memories; `allowed` is [B, D]. A
  // target gets about `share_bytes`.
  Fill(int32_t num_devices, const uint8_t* allowed, const int32_t* pools,
       std::vector<int32_t> targets, std::vector<double> left_bytes,
       double share_bytes)
      : D_(num_devices),
        allowed_(allowed),
        pools_(pools),
        targets_(std::move(targets)),
        share_bytes_(share_bytes),
        left_(std::move(left_bytes)),
        used_(num_devices, 0.0) {}

  // The device of the next bundle of the order.
  int32_t Next(int32_t bundle, double bytes) {
    if (Welcome(bundle)) Advance(bytes);
    const int32_t device = Nearest(bundle, bytes);
    used_[device] += bytes;
    left_[pools_[device]] -= bytes;
    return device;
  }

 private:
  bool Allowed(int32_t bundle, int32_t d) const {
    return allowed_[int64_t{bundle} * D_ + d] != 0;
  }

  bool Welcome(int32_t bundle) const {
    for (const int32_t d : targets_) {
      if (Allowed(bundle, d)) return true;
    }
    return false;
  }

  double Room(int32_t d, double bytes) const {
    return left_[pools_[d]] - bytes;
  }

  // Goes to the next target if the current one is full. A target that is not
  // empty is full if it has no room for the bundle, or if its load without the
  // bundle is closer to its share than its load with the bundle.
  void Advance(double bytes) {
    while (current_ + 1 < targets_.size()) {
      const int32_t d = targets_[current_];
      if (used_[d] <= 0 ||
          (used_[d] + bytes / 2 <= share_bytes_ && Room(d, bytes) >= 0)) {
        return;
      }
      ++current_;
    }
  }

  // The next allowed target with room, else the roomiest one. Other devices
  // count only for a bundle that may be on no target.
  int32_t Nearest(int32_t bundle, double bytes) const {
    int32_t roomiest = kNone;
    for (size_t i = 0; i < targets_.size(); ++i) {
      const int32_t d = targets_[(current_ + i) % targets_.size()];
      if (Suits(bundle, d, bytes, &roomiest)) return d;
    }
    if (roomiest != kNone) return roomiest;
    for (int32_t d = 0; d < D_; ++d) {
      if (Suits(bundle, d, bytes, &roomiest)) return d;
    }
    return roomiest;
  }

  bool Suits(int32_t bundle, int32_t d, double bytes, int32_t* roomiest) const {
    if (!Allowed(bundle, d)) return false;
    if (*roomiest == kNone || Room(d, bytes) > Room(*roomiest, bytes)) {
      *roomiest = d;
    }
    return Room(d, bytes) >= 0;
  }

  const int32_t D_;
  const uint8_t* allowed_;
  const int32_t* pools_;
  const std::vector<int32_t> targets_;
  const double share_bytes_;
  std::vector<double> left_;  // [P]
  std::vector<double> used_;  // [D]
  size_t current_ = 0;
};

}  // namespace gdp

#endif  // GDP_GRAPPLER_PLACERS_LIST_SCHEDULING_FILL_H_

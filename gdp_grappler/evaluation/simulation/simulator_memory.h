// The memories of the simulator.

#ifndef GDP_GRAPPLER_EVALUATION_SIMULATOR_MEMORY_H_
#define GDP_GRAPPLER_EVALUATION_SIMULATOR_MEMORY_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gdp_grappler/evaluation/simulation/simulator_graph.h"
#include "gdp_grappler/evaluation/simulation/simulator_queues.h"

namespace gdp {

// The use of each memory pool, now and at most. A buffer lives while it has
// references. Places of buffers are reused, so that they stay in the cache.
class Memory {
 public:
  explicit Memory(int32_t num_pools)
      : live_(num_pools), peak_(num_pools), reported_(num_pools) {}

  // `points` gets the changes of use, unless it is null.
  void Reset(std::vector<MemoryPoint>* points) {
    points_ = points;
    buffers_.clear();
    free_buffers_.clear();
    std::fill(live_.begin(), live_.end(), 0);
    std::fill(peak_.begin(), peak_.end(), 0);
    std::fill(reported_.begin(), reported_.end(), -1);
  }

  const Vector<int64_t>& peak() const { return peak_; }

  // Adds memory without a buffer; negative bytes free it.
  void Add(int32_t pool, int64_t bytes) { live_[pool] += bytes; }

  // Makes a buffer without references. The caller adds its bytes with `Add`.
  int32_t NewBuffer(int32_t pool, int64_t bytes) {
    if (free_buffers_.empty()) {
      buffers_.push_back({bytes, 0, pool});
      return static_cast<int32_t>(buffers_.size()) - 1;
    }
    const int32_t index = free_buffers_.back();
    free_buffers_.pop_back();
    buffers_[index] = {bytes, 0, pool};
    return index;
  }

  void Retain(int32_t buffer) {
    if (buffer != kNone) ++buffers_[buffer].references;
  }

  void Release(int32_t buffer) {
    if (buffer == kNone || --buffers_[buffer].references > 0) return;
    live_[buffers_[buffer].pool] -= buffers_[buffer].bytes;
    free_buffers_.push_back(buffer);
  }

  // Updates peaks and points after all events of one moment.
  void Settle(double time_s) {
    for (size_t pool = 0; pool < live_.size(); ++pool) {
      peak_[pool] = std::max(peak_[pool], live_[pool]);
      if (points_ && live_[pool] != reported_[pool]) {
        points_->push_back({time_s, live_[pool], static_cast<int32_t>(pool)});
        reported_[pool] = live_[pool];
      }
    }
  }

 private:
  struct Buffer {
    int64_t bytes;
    int32_t references;
    int32_t pool;
  };

  std::vector<MemoryPoint>* points_ = nullptr;
  Vector<Buffer> buffers_;
  Vector<int32_t> free_buffers_;
  Vector<int64_t> live_, peak_;  // [P]
  Vector<int64_t> reported_;     // [P] use in the last point.
};

}  // namespace gdp

#endif  // GDP_GRAPPLER_EVALUATION_SIMULATOR_MEMORY_H_

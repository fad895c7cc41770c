// The threads that feed asynchronous devices.

#ifndef GDP_GRAPPLER_EVALUATION_SIMULATOR_CHAINS_H_
#define GDP_GRAPPLER_EVALUATION_SIMULATOR_CHAINS_H_

#include <cstddef>
#include <cstdint>
#include <limits>

#include "gdp_grappler/evaluation/simulation/simulator_queues.h"

namespace gdp {

// Chains of dispatches. A chain is the queue of one thread, with ops and copies
// (as ~copy). An item is in one chain at a time, so it needs one link.
class Chains {
 public:
  explicit Chains(int32_t num_ops) : next_op_(num_ops) {}

  void Reset() {
    chains_.clear();
    free_.clear();
    num_started_ = 0;
  }

  int32_t Start(int32_t device) {
    int32_t index = static_cast<int32_t>(chains_.size());
    if (free_.empty()) {
      chains_.emplace_back();
    } else {
      index = free_.back();
      free_.pop_back();
    }
    chains_[index] = {kEmpty, kEmpty, kEmpty, device, num_started_++};
    return index;
  }

  void End(int32_t chain) { free_.push_back(chain); }

  void Append(int32_t chain, int32_t item) {
    Chain& c = chains_[chain];
    Next(item) = kEmpty;
    if (c.first == kEmpty) {
      c.first = item;
    } else {
      Next(c.last) = item;
    }
    c.last = item;
  }

  // Takes up the first item. Returns false if there is none.
  bool Advance(int32_t chain) {
    Chain& c = chains_[chain];
    c.current = c.first;
    if (c.first == kEmpty) return false;
    c.first = Next(c.first);
    return true;
  }

  // The item that was taken up last; kEmpty if there is none yet.
  int32_t current(int32_t chain) const { return chains_[chain].current; }
  int32_t device(int32_t chain) const { return chains_[chain].device; }
  // Number of the chain, in the order in which chains started.
  int32_t number(int32_t chain) const { return chains_[chain].number; }

  static constexpr int32_t kEmpty = std::numeric_limits<int32_t>::max();

 private:
  struct Chain {
    int32_t first, last, current, device, number;
  };

  int32_t& Next(int32_t item) {
    if (item >= 0) return next_op_[item];
    const size_t copy = static_cast<size_t>(~item);
    if (copy >= next_copy_.size()) next_copy_.resize(copy + 1);
    return next_copy_[copy];
  }

  Vector<Chain> chains_;
  Vector<int32_t> free_;
  Vector<int32_t> next_op_;  // [N]
  Vector<int32_t> next_copy_;
  int32_t num_started_ = 0;
};

}  // namespace gdp

#endif  // GDP_GRAPPLER_EVALUATION_SIMULATOR_CHAINS_H_

// The queues of the simulator.

#ifndef GDP_GRAPPLER_EVALUATION_SIMULATOR_QUEUES_H_
#define GDP_GRAPPLER_EVALUATION_SIMULATOR_QUEUES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <new>
#include <vector>

namespace gdp {

// An allocator whose blocks begin at a cache line, so that two threads never
// write to the same line.
template <typename T>
struct CacheAligned {
  using value_type = T;
  static constexpr std::align_val_t kLine{64};

  CacheAligned() = default;
  template <typename U>
  CacheAligned(const CacheAligned<U>&) {}
  T* allocate(size_t n) {
    return static_cast<T*>(::operator new(n * sizeof(T), kLine));
  }
  void deallocate(T* p, size_t) { ::operator delete(p, kLine); }
  bool operator==(const CacheAligned&) const { return true; }
  bool operator!=(const CacheAligned&) const { return false; }
};

template <typename T>
using Vector = std::vector<T, CacheAligned<T>>;

// An event. Events are ordered by time, then by item.
struct Event {
  double time_s;
  uint64_t item;
  bool operator<(const Event& other) const {
    // Without branches, because the processor could not predict them.
    return (time_s < other.time_s) |
           ((time_s == other.time_s) & (item < other.item));
  }
};

// Kinds of events. At one moment, events happen in this order: ops end, in
// topological order; work for copies ends, by the copy's number; copies of
// lanes start or end; copies of streams start; copies arrive, by number;
// threads dispatch, by number.
enum Kind : uint64_t {
  kOp = 0,
  kWork = 1,
  kLane = 2,
  kStream = 3,
  kArrival = 4,
  kChain = 5
};

inline uint64_t EventItem(Kind kind, int32_t number, int32_t index) {
  return kind << 61 | static_cast<uint64_t>(number) << 31 | index;
}

// A binary heap. After a pop its root stays a hole, because most events push
// another event, which then takes the place of the root.
class EventQueue {
 public:
  void clear() {
    heap_.clear();
    hole_ = false;
  }

  bool empty() {
    if (hole_) Fill();
    return heap_.empty();
  }

  // Time of the first event; the queue must not be empty.
  double time_s() const { return heap_.front().time_s; }

  uint64_t Pop() {
    hole_ = true;
    return heap_.front().item;
  }

  void Push(double time_s, uint64_t item) {
    if (hole_) {
      hole_ = false;
      SiftDown({time_s, item});
      return;
    }
    const Event event = {time_s, item};
    heap_.push_back(event);
    size_t i = heap_.size() - 1;
    for (; i > 0 && event < heap_[(i - 1) / 2]; i = (i - 1) / 2) {
      heap_[i] = heap_[(i - 1) / 2];
    }
    heap_[i] = event;
  }

 private:
  void Fill() {
    hole_ = false;
    const Event last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) SiftDown(last);
  }

  void SiftDown(const Event& event) {
    Event* const heap = heap_.data();
    const size_t size = heap_.size();
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < size; i = child) {
      child += child + 1 < size && heap[child + 1] < heap[child];
      if (!(heap[child] < event)) break;
      heap[i] = heap[child];
    }
    heap[i] = event;
  }

  Vector<Event> heap_;
  bool hole_ = false;
};

// Ops that wait for a unit, first in, first out. Ops that come at one moment
// are in topological order.
class Fifo {
 public:
  bool empty() const { return first_ == older_.size() && newest_.empty(); }

  void clear() {
    older_.clear();
    newest_.clear();
    first_ = 0;
    newest_s_ = 0;
  }

  void Push(double now, int32_t op) {
    Settle(now);
    newest_.push_back(op);
    std::push_heap(newest_.begin(), newest_.end(), std::greater<int32_t>());
  }

  int32_t Pop(double now) {
    Settle(now);
    if (first_ < older_.size()) return older_[first_++];
    const int32_t op = newest_.front();
    std::pop_heap(newest_.begin(), newest_.end(), std::greater<int32_t>());
    newest_.pop_back();
    return op;
  }

 private:
  // No more ops of an earlier moment can come, so these need no heap any more.
  void Settle(double now) {
    if (newest_s_ == now) return;
    newest_s_ = now;
    if (newest_.empty()) return;
    if (first_ == older_.size()) {
      older_.clear();
      first_ = 0;
    }
    if (!std::is_sorted(newest_.begin(), newest_.end())) {
      std::sort(newest_.begin(), newest_.end());
    }
    older_.insert(older_.end(), newest_.begin(), newest_.end());
    newest_.clear();
  }

  Vector<int32_t> older_;   // Ops in order, from index first_ on.
  Vector<int32_t> newest_;  // A heap of the ops that came at newest_s_.
  size_t first_ = 0;
  double newest_s_ = 0;
};

// A heap from which the smallest item is popped first.
template <typename T>
class Heap {
 public:
  bool empty() const { return heap_.empty(); }
  void clear() { heap_.clear(); }

  void Push(const T& item) {
    heap_.push_back(item);
    std::push_heap(heap_.begin(), heap_.end(), std::greater<T>());
  }

  T Pop() {
    const T item = heap_.front();
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<T>());
    heap_.pop_back();
    return item;
  }

 private:
  Vector<T> heap_;
};

// An op with a priority that waits for its unit.
struct Ranked {
  double urgency;  // Minus the priority.
  double ready_s;
  int32_t op;
  bool operator>(const Ranked& other) const {
    if (urgency != other.urgency) return urgency > other.urgency;
    if (ready_s != other.ready_s) return ready_s > other.ready_s;
    return op > other.op;
  }
};

// A copy for which a unit owes work.
struct Owed {
  double due_s;
  int32_t number;  // Number of the copy.
  int32_t copy;
  bool operator>(const Owed& other) const {
    return due_s != other.due_s ? due_s > other.due_s : number > other.number;
  }
};

}  // namespace gdp

#endif  // GDP_GRAPPLER_EVALUATION_SIMULATOR_QUEUES_H_

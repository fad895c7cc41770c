// Divides work on many items of one kind among threads.

#ifndef GDP_GRAPPLER_WORKERS_H_
#define GDP_GRAPPLER_WORKERS_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <new>
#include <thread>
#include <vector>

namespace gdp {

// Hands out the numbers below `count`, each to one caller.
class Numbers {
 public:
  explicit Numbers(int64_t count) : count_(count) {}

  // Returns false if no number is left.
  bool Next(int64_t* number) { return (*number = next_++) < count_; }

 private:
  const int64_t count_;
  std::atomic<int64_t> next_{0};
};

// Calls `work(worker, &numbers)` at the same time in up to `threads` threads,
// the caller's included. `worker` is the index of the thread, from 0. Each call
// takes numbers until none is left. Returns false if memory ran out in a call.
template <typename Work>
bool ShareOut(int64_t count, int64_t threads, const Work& work) {
  Numbers numbers(count);
  std::atomic<bool> has_memory{true};
  const auto run = [&](int32_t worker) {
    try {
      work(worker, &numbers);
    } catch (const std::bad_alloc&) {
      has_memory = false;
    }
  };
  std::vector<std::thread> others;
  try {
    const int64_t wanted = std::min(threads, count) - 1;
    others.reserve(std::max<int64_t>(wanted, 0));
    while (static_cast<int64_t>(others.size()) < wanted) {
      others.emplace_back(run, static_cast<int32_t>(others.size()) + 1);
    }
  } catch (const std::exception&) {
    // The system gives no more threads. The existing ones do all the work.
  }
  run(0);
  for (std::thread& thread : others) thread.join();
  return has_memory;
}

}  // namespace gdp

#endif  // GDP_GRAPPLER_WORKERS_H_

// Functions of the host that run when a stream has come to them.

#ifndef GDP_GRAPPLER_EVALUATION_EMULATION_HOST_CALLBACKS_H_
#define GDP_GRAPPLER_EVALUATION_EMULATION_HOST_CALLBACKS_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "gdp_grappler/evaluation/emulation/timelines.h"

namespace gdp {

// Runs functions at their moments, one after the other, on a thread of its own.
class HostCallbacks {
 public:
  // The thread lives as long as the process, and so must this.
  void Add(int64_t moment_ns, std::function<void()> callback) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (waiting_.empty() && !started_) {
      started_ = true;
      std::thread([this] { Run(); }).detach();
    }
    waiting_.emplace(moment_ns, std::move(callback));
    changed_.notify_one();
  }

 private:
  void Run() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      if (waiting_.empty()) {
        changed_.wait(lock);
        continue;
      }
      const auto first = waiting_.begin();
      const int64_t left_ns = first->first - NowNs();
      if (left_ns > 0) {
        changed_.wait_for(lock, std::chrono::nanoseconds(left_ns));
        continue;
      }
      const std::function<void()> callback = std::move(first->second);
      waiting_.erase(first);
      lock.unlock();
      callback();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::multimap<int64_t, std::function<void()>> waiting_;
  bool started_ = false;
};

}  // namespace gdp

#endif  // GDP_GRAPPLER_EVALUATION_EMULATION_HOST_CALLBACKS_H_

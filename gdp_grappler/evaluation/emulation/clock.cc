#include "gdp_grappler/evaluation/emulation/clock.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace gdp {
namespace {

// Number of looks at the threads, with pauses between them. In this time an
// event manager asks for every event that it polls.
constexpr int kMostLooks = 30;

}  // namespace

int64_t Clock::NowNs() {
  std::lock_guard<std::mutex> lock(mutex_);
  return now_ns_;
}

void Clock::WaitUntil(int64_t moment_ns) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (moment_ns <= now_ns_) return;
  Add(moment_ns);
  advanced_.wait(lock, [&] { return moment_ns <= now_ns_; });
}

void Clock::At(int64_t moment_ns, std::function<void()> callback) {
  std::lock_guard<std::mutex> lock(mutex_);
  // A function of an earlier moment runs after the functions that are due now.
  waiting_.emplace(std::max(moment_ns, now_ns_), std::move(callback));
  Add(moment_ns);
}

void Clock::Recorded(const void* event, const void* stream) {
  std::lock_guard<std::mutex> lock(mutex_);
  Drop(event);
  stream_of_[event] = stream;
  events_[stream].unasked.insert(event);
}

bool Clock::HasCome(const void* event, int64_t moment_ns) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto stream = stream_of_.find(event);
  if (moment_ns <= now_ns_) {
    Drop(event);
    return true;
  }
  if (stream != stream_of_.end()) {
    Events& events = events_[stream->second];
    events.unasked.erase(event);
    // `IsToCome` may have set the moment since the caller read it.
    int64_t& known_ns =
        events.awaited.try_emplace(event, kUnknown).first->second;
    known_ns = std::min(known_ns, moment_ns);
  }
  Add(moment_ns);
  return false;
}

void Clock::IsToCome(const void* event, int64_t moment_ns) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto stream = stream_of_.find(event);
  if (stream == stream_of_.end()) return;
  Events& events = events_[stream->second];
  const auto awaited = events.awaited.find(event);
  if (awaited != events.awaited.end()) awaited->second = moment_ns;
  Add(moment_ns);
}

void Clock::Forget(const void* event) {
  std::lock_guard<std::mutex> lock(mutex_);
  Drop(event);
}

void Clock::Drop(const void* event) {
  const auto stream = stream_of_.find(event);
  if (stream == stream_of_.end()) return;
  Events& events = events_[stream->second];
  events.unasked.erase(event);
  events.awaited.erase(event);
  stream_of_.erase(stream);
}

bool Clock::IsOwed() const {
  for (const auto& [stream, events] : events_) {
    for (const auto& [event, moment_ns] : events.awaited) {
      if (moment_ns <= now_ns_) return true;
    }
    if (events.awaited.empty() && !events.unasked.empty()) return true;
  }
  return false;
}

void Clock::Add(int64_t moment_ns) {
  if (!started_) {
    started_ = true;
    std::thread([this] { Advance(); }).detach();
    std::thread([this] { CallBack(); }).detach();
  }
  if (moment_ns == kUnknown) return;
  moments_.insert(moment_ns);
  added_.notify_one();
}

void Clock::Advance() {
  Idleness idleness;
  while (true) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      added_.wait(lock, [this] { return !moments_.empty(); });
    }
    std::unique_lock<std::mutex> lock = WhenIdle(idleness);
    now_ns_ = std::max(now_ns_, *moments_.begin());
    moments_.erase(moments_.begin(), moments_.upper_bound(now_ns_));
    const auto end = waiting_.upper_bound(now_ns_);
    for (auto next = waiting_.begin(); next != end; ++next) {
      callbacks_.push_back(std::move(next->second));
    }
    waiting_.erase(waiting_.begin(), end);
    if (!callbacks_.empty()) due_.notify_one();
    advanced_.notify_all();
  }
}

std::unique_lock<std::mutex> Clock::WhenIdle(Idleness& idleness) {
  for (int looks = 1;; ++looks) {
    idleness.Await();
    std::unique_lock<std::mutex> lock(mutex_);
    if (!IsOwed()) return lock;
    if (looks % kMostLooks == 0) {
      // Some events only make other streams wait. No event manager asks for
      // these, so do not wait for questions any more.
      for (auto& [stream, events] : events_) {
        if (events.awaited.empty()) events.unasked.clear();
      }
    }
    lock.unlock();
    Idleness::Pause();
  }
}

void Clock::CallBack() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    due_.wait(lock, [this] { return !callbacks_.empty(); });
    const std::function<void()> callback = std::move(callbacks_.front());
    callbacks_.pop_front();
    lock.unlock();
    callback();
    lock.lock();
  }
}

Clock& TheClock() {
  static Clock* const clock = new Clock;
  return *clock;
}

}  // namespace gdp

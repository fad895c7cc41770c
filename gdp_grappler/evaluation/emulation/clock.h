// Time that passes only while the host has nothing to do.
//
// What TensorFlow itself takes on this machine, and what other programs take
// away from it, does not count: once all threads of the process are asleep, it
// becomes the next moment that somebody waits for.

#ifndef GDP_GRAPPLER_EVALUATION_EMULATION_CLOCK_H_
#define GDP_GRAPPLER_EVALUATION_EMULATION_CLOCK_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <set>

#include "gdp_grappler/evaluation/emulation/idleness.h"

namespace gdp {

// Of what has no time yet.
constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();

// All methods may be called from several threads.
class Clock {
 public:
  int64_t NowNs();

  // Blocks the thread until then.
  void WaitUntil(int64_t moment_ns);

  // Runs a function then, one after the other, on a thread of the clock's.
  void At(int64_t moment_ns, std::function<void()> callback);

  // Events that somebody asks for again and again, as TensorFlow's event
  // managers do for the first of each stream: one was put on a stream, it is
  // asked for, it is no more. Time does not pass before the first of each
  // stream was asked for, and every one whose moment has come.
  void Recorded(const void* event, const void* stream);
  bool HasCome(const void* event, int64_t moment_ns);
  // The moment of one that was asked for before it was known.
  void IsToCome(const void* event, int64_t moment_ns);
  void Forget(const void* event);

 private:
  // Both for as long as the process lives, and so must this.
  void Advance();
  void CallBack();

  // The lock, once the host has nothing to do and time may pass.
  std::unique_lock<std::mutex> WhenIdle(Idleness& idleness);

  // Nobody will ask for it again.
  void Drop(const void* event);

  // Whether somebody is still to ask for an event.
  bool IsOwed() const;

  // Adds a moment to stop at, if it is known; begins to run with the first one.
  void Add(int64_t moment_ns);

  std::mutex mutex_;
  std::condition_variable advanced_, added_, due_;
  int64_t now_ns_ = 0;
  bool started_ = false;
  std::set<int64_t> moments_;  // In the future.
  std::multimap<int64_t, std::function<void()>> waiting_;
  std::deque<std::function<void()>> callbacks_;  // Whose moment has come.

  struct Events {
    std::set<const void*> unasked;
    std::map<const void*, int64_t> awaited;  // Asked for too early; moments.
  };
  std::map<const void*, Events> events_;          // By stream.
  std::map<const void*, const void*> stream_of_;  // By event.
};

// The one of this process.
Clock& TheClock();

}  // namespace gdp

#endif  // GDP_GRAPPLER_EVALUATION_EMULATION_CLOCK_H_

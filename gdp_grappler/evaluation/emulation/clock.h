// An emulated clock, whose time passes only while all threads are idle.
//
// Time that TensorFlow itself and other programs take on this machine does not
// count. When all threads of the process sleep, the clock jumps to the next
// moment for which a thread waits.

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

// The moment of an event whose time is not known yet.
constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();

// All methods may be called from several threads.
class Clock {
 public:
  int64_t NowNs();

  // Blocks the thread until a moment.
  void WaitUntil(int64_t moment_ns);

  // Runs a function at a moment, on a thread of the clock. Functions run one
  // after the other.
  void At(int64_t moment_ns, std::function<void()> callback);

  // TensorFlow's event managers poll events: they ask repeatedly whether the
  // first event of each stream has come. `Recorded` adds an event to a stream,
  // `HasCome` answers a question, and `Forget` removes the event. Time passes
  // only after questions about two kinds of events: the first event of each
  // stream, and every event whose moment has come.
  void Recorded(const void* event, const void* stream);
  bool HasCome(const void* event, int64_t moment_ns);
  // Sets the moment of an event that was asked for while it was unknown.
  void IsToCome(const void* event, int64_t moment_ns);
  void Forget(const void* event);

 private:
  // Loops of two threads that run until the process ends. So a clock must live
  // as long as the process.
  void Advance();
  void CallBack();

  // Waits until all threads are idle and time may pass, and returns the lock.
  std::unique_lock<std::mutex> WhenIdle(Idleness& idleness);

  // Removes an event, for which no more questions will come.
  void Drop(const void* event);

  // Whether an event manager still has to ask for an event.
  bool IsOwed() const;

  // Adds a moment at which the clock stops, unless the moment is unknown. The
  // first call starts the threads.
  void Add(int64_t moment_ns);

  std::mutex mutex_;
  std::condition_variable advanced_, added_, due_;
  int64_t now_ns_ = 0;
  bool started_ = false;
  std::set<int64_t> moments_;  // In the future.
  std::multimap<int64_t, std::function<void()>> waiting_;
  std::deque<std::function<void()>> callbacks_;  // Functions whose moment came.

  struct Events {
    std::set<const void*> unasked;
    std::map<const void*, int64_t> awaited;  // Moments of events asked for.
  };
  std::map<const void*, Events> events_;          // By stream.
  std::map<const void*, const void*> stream_of_;  // By event.
};

// The only clock of the process.
Clock& TheClock();

}  // namespace gdp

#endif  // GDP_GRAPPLER_EVALUATION_EMULATION_CLOCK_H_

// Whether the threads of this process have anything to do.

#ifndef GDP_GRAPPLER_EVALUATION_EMULATION_IDLENESS_H_
#define GDP_GRAPPLER_EVALUATION_EMULATION_IDLENESS_H_

#include <sys/types.h>

#include <vector>

namespace gdp {

// Looks at threads as Linux sees them. One that waits for a core is busy.
class Idleness {
 public:
  Idleness() = default;
  Idleness(const Idleness&) = delete;
  Idleness& operator=(const Idleness&) = delete;
  ~Idleness();

  // Returns once all threads but the caller's sleep.
  void Await();

  // Sleeps for a moment.
  static void Pause();

 private:
  struct Thread {
    pid_t id;
    int file;  // Its /proc/self/task/<id>/stat.
  };

  bool AllAsleep();
  void FindThreads();

  std::vector<Thread> threads_;  // Without the caller's.
  long num_links_ = 0;           // Of their folder: changes with the threads.
};

}  // namespace gdp

#endif  // GDP_GRAPPLER_EVALUATION_EMULATION_IDLENESS_H_

// Finds out whether all threads of this process are idle.

#ifndef GDP_GRAPPLER_EVALUATION_EMULATION_IDLENESS_H_
#define GDP_GRAPPLER_EVALUATION_EMULATION_IDLENESS_H_

#include <vector>

namespace gdp {

// Reads the states of threads from Linux. A thread that waits for a core is
// busy.
class Idleness {
 public:
  Idleness() = default;
  Idleness(const Idleness&) = delete;
  Idleness& operator=(const Idleness&) = delete;
  ~Idleness();

  // Returns when all threads but the caller's sleep.
  void Await();

  // Sleeps for a moment.
  static void Pause();

 private:
  bool AllAsleep();
  void FindThreads();

  std::vector<int> files_;  // Open stat file of each thread but the caller's.
  // Links of the folder of threads, which change with the number of threads.
  long num_links_ = 0;
};

}  // namespace gdp

#endif  // GDP_GRAPPLER_EVALUATION_EMULATION_IDLENESS_H_

// Whether the threads of this process have anything to do.

#ifndef GDP_GRAPPLER_EVALUATION_EMULATION_IDLENESS_H_
#define GDP_GRAPPLER_EVALUATION_EMULATION_IDLENESS_H_

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
  bool AllAsleep();
  void FindThreads();

  std::vector<int> files_;  // stat of each thread but the caller's.
  long num_links_ = 0;      // Of their folder: changes with their number.
};

}  // namespace gdp

#endif  // GDP_GRAPPLER_EVALUATION_EMULATION_IDLENESS_H_

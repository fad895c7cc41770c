// The time of the host's threads that feed asynchronous devices.

#ifndef GDP_GRAPPLER_EVALUATION_SIMULATOR_HOST_H_
#define GDP_GRAPPLER_EVALUATION_SIMULATOR_HOST_H_

#include <algorithm>
#include <cstdint>

#include "gdp_grappler/evaluation/simulation/simulator_graph.h"
#include "gdp_grappler/evaluation/simulation/simulator_queues.h"

namespace gdp {

// Computes when threads have done the items that they take up. A context's lock
// serves threads in the order in which they took up their items.
class Host {
 public:
  explicit Host(const Graph& graph)
      : g_(graph), lock_free_s_(graph.num_devices), fed_s_(graph.num_devices) {}

  void Reset() {
    std::fill(lock_free_s_.begin(), lock_free_s_.end(), 0.0);
    std::fill(fed_s_.begin(), fed_s_.end(), 0.0);
  }

  // End of the visit of an op without kernels. `times` is a factor of its time.
  double EndOfVisit(int32_t device, double times, double now) const {
    return now + times * g_.host[device].visit_s;
  }

  // End of the launches of an op. `times` is a factor of its time. A thread
  // prepares each run without the lock, before it launches the kernels.
  double EndOfLaunch(int32_t device, int32_t op, double times, double now) {
    const HostTimes& host = g_.host[device];
    const double prepared_s = g_.runs[op] * (host.dispatch_s - host.lock_s) +
                              g_.host_work[op] * host.dispatch_s;
    double& fed_s = fed_s_[device];
    fed_s = Lock(device, std::max(now, fed_s) + times * prepared_s,
                 times * g_.launches[op] * host.lock_s);
    return fed_s;
  }

  // End of the issue of a copy. The lock is held for the same share of the time
  // as in a launch.
  double EndOfIssue(int32_t device, double times, double now) {
    const HostTimes& host = g_.host[device];
    const double seconds = times * host.copy_dispatch_s;
    const double held =
        host.dispatch_s > 0 ? seconds * host.lock_s / host.dispatch_s : 0;
    return Lock(device, now + (seconds - held), held);
  }

 private:
  double Lock(int32_t device, double wanted_s, double held_s) {
    if (held_s == 0) return wanted_s;
    double& free_s = lock_free_s_[g_.context[device]];
    free_s = std::max(wanted_s, free_s) + held_s;
    return free_s;
  }

  const Graph& g_;
  Vector<double> lock_free_s_;  // [contexts], at most D.
  Vector<double> fed_s_;        // [D] end of the last launch.
};

}  // namespace gdp

#endif  // GDP_GRAPPLER_EVALUATION_SIMULATOR_HOST_H_

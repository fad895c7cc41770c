// Estimates of the step after a move, by ops that keep their order.

#ifndef GDP_GRAPPLER_FEATURES_MOVES_MOVE_RETIMING_H_
#define GDP_GRAPPLER_FEATURES_MOVES_MOVE_RETIMING_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gdp_grappler/features/moves/move_graph.h"
#include "gdp_grappler/features/moves/move_incumbent.h"

namespace gdp {

// The ops of an observed step in the order of their starts, with the consumers
// of their nets. One array after the other, because a sweep reads all of it.
struct StartOrder {
  struct Op {
    int32_t group;
    int32_t first_net;  // Nets end where the next op's begin.
  };
  struct SentNet {
    float bytes;
    int32_t first_pin;  // Pins end where the next net's begin.
  };
  // A consumer.
  struct Pin {
    int32_t group;
    int32_t place;  // In the order.
  };

  const MoveGraph& graph;
  std::vector<Op> ops;         // [N + 1]
  std::vector<SentNet> nets;   // [H + 1]
  std::vector<Pin> pins;       // Consumers of all nets.
  std::vector<float> seconds;  // [N, D]

  explicit StartOrder(const MoveGraph& g) : graph(g) {}

  void Observe(const Incumbent& now) {
    const int32_t count = graph.num_ops, devices = graph.num_devices;
    std::vector<int32_t> places(count);
    for (int32_t i = 0; i < count; ++i) places[now.order[i]] = i;
    ops.clear();
    nets.clear();
    pins.clear();
    seconds.resize(int64_t{count} * devices);
    const Rows& produced = graph.nets_of_op;
    for (int32_t i = 0; i < count; ++i) {
      const int32_t op = now.order[i];
      ops.push_back({graph.group[op], static_cast<int32_t>(nets.size())});
      std::copy_n(&graph.op_seconds[int64_t{op} * devices], devices,
                  &seconds[int64_t{i} * devices]);
      for (int32_t k = produced.starts[op]; k < produced.starts[op + 1]; ++k) {
        const int32_t n = produced.values[k];
        nets.push_back({static_cast<float>(graph.nets[n].bytes),
                        static_cast<int32_t>(pins.size())});
        for (int32_t p = graph.nets[n].first_pin;
             p < graph.nets[n + 1].first_pin; ++p) {
          const int32_t consumer = graph.pins[p];
          pins.push_back({graph.group[consumer], places[consumer]});
        }
      }
    }
    ops.push_back({kNobody, static_cast<int32_t>(nets.size())});
    nets.push_back({0, static_cast<int32_t>(pins.size())});
  }
};

// A moment by each of the two estimates.
struct RetimedMoment {
  double strict_s = 0;  // An op waits for all earlier ops of its device.
  double filled_s = 0;  // It may run while an earlier op waits for its inputs.
};

// Times all ops of a placement anew, in one sweep over a `StartOrder`. An op
// runs when its device is free and its inputs are there. A link sends one
// tensor after the other. An object is for one thread.
class Retiming {
 public:
  explicit Retiming(const StartOrder& order) : order_(order) {}

  // The end of the step with a placement [G].
  RetimedMoment End(const int32_t* devices) {
    const MoveGraph& g = order_.graph;
    const int64_t width = g.num_devices;
    ready_.assign(g.num_ops, {});
    units_.assign(g.num_units, {});
    links_.assign(width * width, {});
    arrivals_.resize(width);
    sent_.assign(width, kNobody);
    RetimedMoment step;
    for (int32_t i = 0; i < g.num_ops; ++i) {
      const int32_t home = devices[order_.ops[i].group], unit = g.unit[home];
      const double work = order_.seconds[i * width + home];
      const RetimedMoment end = g.serial[unit]
                                    ? units_[unit].Run(ready_[i], work)
                                    : RetimedMoment{ready_[i].strict_s + work,
                                                    ready_[i].filled_s + work};
      step = Later(step, end);
      for (int32_t n = order_.ops[i].first_net; n < order_.ops[i + 1].first_net;
           ++n) {
        Send(n, home, end, devices);
      }
    }
    return step;
  }

 private:
  // Number of times of waiting that a compute unit remembers.
  static constexpr int32_t kGaps = 4;

  // A compute unit that runs one op at a time.
  class Unit {
   public:
    // Runs an op, and returns its end.
    RetimedMoment Run(const RetimedMoment& ready, double work_s) {
      free_.strict_s = std::max(free_.strict_s, ready.strict_s) + work_s;
      return {free_.strict_s, Fill(ready.filled_s, work_s)};
    }

   private:
    RetimedMoment free_;
    double gap_s_[kGaps] = {}, gap_end_s_[kGaps] = {};
    int32_t oldest_ = 0;

    double Fill(double ready_s, double work_s) {
      for (int32_t k = 0; k < kGaps; ++k) {
        const double end = std::max(gap_s_[k], ready_s) + work_s;
        if (end <= gap_end_s_[k]) return gap_s_[k] = end;
      }
      if (ready_s > free_.filled_s) {
        gap_s_[oldest_] = free_.filled_s;
        gap_end_s_[oldest_] = ready_s;
        oldest_ = (oldest_ + 1) % kGaps;
        free_.filled_s = ready_s;
      }
      return free_.filled_s += work_s;
    }
  };

  const StartOrder& order_;
  std::vector<RetimedMoment> ready_;     // [N], last arrival of an input.
  std::vector<Unit> units_;              // [U]
  std::vector<RetimedMoment> links_;     // [D, D], when each link is free.
  std::vector<RetimedMoment> arrivals_;  // [D], of the latest net there.
  std::vector<int32_t> sent_;            // [D], that net.

  static RetimedMoment Later(const RetimedMoment& a, const RetimedMoment& b) {
    return {std::max(a.strict_s, b.strict_s), std::max(a.filled_s, b.filled_s)};
  }

  // Brings a net from device `home` to its consumers.
  void Send(int32_t net, int32_t home, const RetimedMoment& end,
            const int32_t* devices) {
    const MoveGraph& g = order_.graph;
    const StartOrder::SentNet& n = order_.nets[net];
    for (int32_t p = n.first_pin; p < order_.nets[net + 1].first_pin; ++p) {
      const StartOrder::Pin& pin = order_.pins[p];
      const int32_t there = devices[pin.group];
      if (there == home) {
        ready_[pin.place] = Later(ready_[pin.place], end);
        continue;
      }
      if (sent_[there] != net) {
        sent_[there] = net;
        const int32_t link = home * g.num_devices + there;
        const double busy = n.bytes / g.bytes_per_s[link];
        RetimedMoment& free = links_[link];
        free = Later(free, end);
        free.strict_s += busy;
        free.filled_s += busy;
        arrivals_[there] = {free.strict_s + g.latency_s[link],
                            free.filled_s + g.latency_s[link]};
      }
      ready_[pin.place] = Later(ready_[pin.place], arrivals_[there]);
    }
  }
};

}  // namespace gdp

#endif  // GDP_GRAPPLER_FEATURES_MOVES_MOVE_RETIMING_H_

// An estimate of the step after a move: the ops keep the order of their starts.

#ifndef GDP_GRAPPLER_FEATURES_MOVES_MOVE_RETIMING_H_
#define GDP_GRAPPLER_FEATURES_MOVES_MOVE_RETIMING_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gdp_grappler/features/moves/move_graph.h"
#include "gdp_grappler/features/moves/move_incumbent.h"

namespace gdp {

// The ops of an observed step in the order of their starts, with the consumers
// of their nets. A sweep reads each array from its beginning to its end.
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
    for (int32_t i = 0; i < count; ++i) {
      const int32_t op = now.order[i];
      ops.push_back({graph.group[op], static_cast<int32_t>(nets.size())});
      std::copy_n(&graph.op_seconds[int64_t{op} * devices], devices,
                  &seconds[int64_t{i} * devices]);
      for (const int32_t n : graph.nets_of_op[op]) {
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

// Times all ops of a placement anew, in one sweep over a `StartOrder`. An op
// runs when its inputs are there and, on a compute unit that runs one op at a
// time, when all earlier ops of this compute unit have ended. A link sends one
// tensor after the other. An object is for one thread.
class Retiming {
 public:
  explicit Retiming(const StartOrder& order) : order_(order) {}

  // The step in seconds with a placement [G].
  double StepSeconds(const int32_t* devices) {
    const MoveGraph& g = order_.graph;
    const int64_t width = g.num_devices;
    ready_s_.assign(g.num_ops, 0);
    free_s_.assign(g.num_units, 0);
    link_s_.assign(width * width, 0);
    arrival_s_.resize(width);
    sent_.assign(width, kNobody);
    double step = 0;
    for (int32_t i = 0; i < g.num_ops; ++i) {
      const int32_t home = devices[order_.ops[i].group], unit = g.unit[home];
      double end = ready_s_[i];
      if (g.serial[unit]) end = std::max(end, free_s_[unit]);
      end += order_.seconds[i * width + home];
      free_s_[unit] = end;
      step = std::max(step, end);
      for (int32_t n = order_.ops[i].first_net; n < order_.ops[i + 1].first_net;
           ++n) {
        Send(n, home, end, devices);
      }
    }
    return step;
  }

 private:
  const StartOrder& order_;
  std::vector<double> ready_s_;    // [N], last arrival of an input.
  std::vector<double> free_s_;     // [U], end of the latest op.
  std::vector<double> link_s_;     // [D, D], when each link is free.
  std::vector<double> arrival_s_;  // [D], of the latest net there.
  std::vector<int32_t> sent_;      // [D], the latest net there.

  // Brings a net from device `home` to its consumers.
  void Send(int32_t net, int32_t home, double end, const int32_t* devices) {
    const MoveGraph& g = order_.graph;
    const StartOrder::SentNet& n = order_.nets[net];
    for (int32_t p = n.first_pin; p < order_.nets[net + 1].first_pin; ++p) {
      const StartOrder::Pin& pin = order_.pins[p];
      const int32_t there = devices[pin.group];
      double arrival = end;
      if (there != home) {
        if (sent_[there] != net) {
          sent_[there] = net;
          const int32_t link = home * g.num_devices + there;
          link_s_[link] =
              std::max(link_s_[link], end) + n.bytes / g.bytes_per_s[link];
          arrival_s_[there] = link_s_[link] + g.latency_s[link];
        }
        arrival = arrival_s_[there];
      }
      ready_s_[pin.place] = std::max(ready_s_[pin.place], arrival);
    }
  }
};

}  // namespace gdp

#endif  // GDP_GRAPPLER_FEATURES_MOVES_MOVE_RETIMING_H_

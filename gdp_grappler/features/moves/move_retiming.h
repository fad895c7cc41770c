// An estimate of the step after a move: the ops keep the order of their
// dispatches.

#ifndef GDP_GRAPPLER_FEATURES_MOVES_MOVE_RETIMING_H_
#define GDP_GRAPPLER_FEATURES_MOVES_MOVE_RETIMING_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gdp_grappler/features/moves/move_graph.h"
#include "gdp_grappler/features/moves/move_incumbent.h"

namespace gdp {

// The ops of an observed step in the order of their dispatches, with the
// consumers of their nets. A sweep reads each array from its beginning to its
// end.
struct DispatchOrder {
  struct Op {
    int32_t group;
    int32_t first_net;  // Nets end where the next op's begin.
  };
  struct SentNet {
    float bytes;
    int32_t first_pin;  // Pins end where the next net's begin.
  };
  // Seconds of the device and of its host.
  struct Seconds {
    float own, host;
  };
  // A consumer.
  struct Pin {
    int32_t group;
    int32_t place;  // In the order.
  };

  const MoveGraph& graph;
  std::vector<Op> ops;           // [N + 1]
  std::vector<SentNet> nets;     // [H + 1]
  std::vector<Pin> pins;         // Consumers of all nets.
  std::vector<Seconds> seconds;  // [N, D]

  explicit DispatchOrder(const MoveGraph& g) : graph(g) {}

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
      for (int32_t d = 0; d < devices; ++d) {
        const int64_t cell = int64_t{op} * devices + d;
        seconds[int64_t{i} * devices + d] = {graph.own_s[cell],
                                             graph.host_s[cell]};
      }
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

// Times all ops of a placement anew, in one sweep over a `DispatchOrder`. An op
// is dispatched when its inputs are there. On an asynchronous device its inputs
// are there when their producers are dispatched or, from other devices, when
// their copies have arrived. A device runs one op after the other, but a kernel
// that waits for its inputs lets later ones run before. A copy waits for all
// kernels that both devices have been given. A stream or link sends one tensor
// after the other. An object is for one thread.
class Retiming {
 public:
  explicit Retiming(const DispatchOrder& order) : order_(order) {}

  // The step in seconds with a placement [G].
  double StepSeconds(const int32_t* devices) {
    const MoveGraph& g = order_.graph;
    const int64_t width = g.num_devices;
    ready_s_.assign(g.num_ops, 0);
    hosts_.assign(width, {0, 0, 0});
    units_.assign(g.num_units, {0, 0, 0});
    link_s_.assign(width * width, 0);
    arrival_s_.resize(width);
    sent_.assign(width, kNobody);
    double step = 0;
    for (int32_t i = 0; i < g.num_ops; ++i) {
      const int32_t home = devices[order_.ops[i].group];
      const Ends ends =
          Run(home, ready_s_[i], order_.seconds[i * width + home]);
      step = std::max(step, ends.run_s);
      for (int32_t n = order_.ops[i].first_net; n < order_.ops[i + 1].first_net;
           ++n) {
        Send(n, home, ends, devices);
      }
    }
    return step;
  }

 private:
  // When an op counts as done, and when its results are computed.
  struct Ends {
    double done_s, run_s;
  };
  // A compute unit, or the threads that dispatch its ops. From `gap_s` to
  // `gap_end_s` it does nothing, because the next op in the order waits for its
  // inputs. It is the longest such time so far.
  struct Line {
    double free_s, gap_s, gap_end_s;
  };

  const DispatchOrder& order_;
  std::vector<double> ready_s_;    // [N], last arrival of an input.
  std::vector<Line> hosts_;        // [D], threads that dispatch.
  std::vector<Line> units_;        // [U]
  std::vector<double> link_s_;     // [D, D], when each link is free.
  std::vector<double> arrival_s_;  // [D], of the latest net there.
  std::vector<int32_t> sent_;      // [D], the latest net there.

  Ends Run(int32_t device, double ready, DispatchOrder::Seconds seconds) {
    const MoveGraph& g = order_.graph;
    Line& unit = units_[g.unit[device]];
    if (!g.asynchronous[device]) {
      if (g.serial[g.unit[device]]) ready = std::max(ready, unit.free_s);
      unit.free_s = ready + seconds.own;
      return {unit.free_s, unit.free_s};
    }
    const double done = Fill(&hosts_[device], ready, seconds.host);
    if (seconds.own == 0) return {done, std::max(done, Filled(unit, done))};
    return {done, Fill(&unit, done, seconds.own)};
  }

  // Lets a line run something that is ready at some time; returns its end.
  static double Fill(Line* line, double ready, double seconds) {
    if (ready < line->gap_end_s) {
      const double end = std::max(ready, line->gap_s) + seconds;
      line->free_s += std::max(end - line->gap_end_s, 0.);
      line->gap_s = std::min(end, line->gap_end_s);
      return end;
    }
    if (ready - line->free_s > line->gap_end_s - line->gap_s) {
      line->gap_s = line->free_s;
      line->gap_end_s = ready;
    }
    line->free_s = std::max(ready, line->free_s) + seconds;
    return line->free_s;
  }

  // End of the kernels that a unit has been given at some time.
  static double Filled(const Line& unit, double time) {
    return time < unit.gap_end_s ? unit.gap_s : unit.free_s;
  }

  // When a net that device `home` sends arrives on another device.
  double Arrival(const DispatchOrder::SentNet& net, int32_t home, int32_t there,
                 Ends ends) {
    const MoveGraph& g = order_.graph;
    const int32_t link = home * g.num_devices + there;
    const double issued =
        g.asynchronous[home] ? Fill(&hosts_[home], ends.done_s, g.issue_s[link])
                             : ends.done_s + g.issue_s[link];
    double start = std::max(issued, ends.run_s);
    if (g.asynchronous[there] && (net.bytes > 0 || !g.asynchronous[home])) {
      start = std::max(start, Filled(units_[g.unit[there]], issued));
    }
    // An asynchronous device has one stream to all others.
    const bool on_stream = g.asynchronous[home] && g.asynchronous[there];
    double& free = link_s_[on_stream ? home * g.num_devices + home : link];
    start = std::max(start, free);
    const double end = start + g.wire_s[link] + net.bytes / g.bytes_per_s[link];
    if (net.bytes > 0) free = end;
    const bool again = end - issued > 2 * g.wire_s[link];
    return end + g.callback_s[link] + (again ? g.poll_s[link] : 0);
  }

  // Brings a net from device `home` to its consumers.
  void Send(int32_t net, int32_t home, Ends ends, const int32_t* devices) {
    const DispatchOrder::SentNet& n = order_.nets[net];
    for (int32_t p = n.first_pin; p < order_.nets[net + 1].first_pin; ++p) {
      const DispatchOrder::Pin& pin = order_.pins[p];
      const int32_t there = devices[pin.group];
      double arrival = ends.done_s;
      if (there != home) {
        if (sent_[there] != net) {
          sent_[there] = net;
          arrival_s_[there] = Arrival(n, home, there, ends);
        }
        arrival = arrival_s_[there];
      }
      ready_s_[pin.place] = std::max(ready_s_[pin.place], arrival);
    }
  }
};

}  // namespace gdp

#endif  // GDP_GRAPPLER_FEATURES_MOVES_MOVE_RETIMING_H_

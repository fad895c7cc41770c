// The event loop that simulates one step.

#ifndef GDP_GRAPPLER_EVALUATION_SIMULATOR_MACHINE_H_
#define GDP_GRAPPLER_EVALUATION_SIMULATOR_MACHINE_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "gdp_grappler/evaluation/simulation/simulator_chains.h"
#include "gdp_grappler/evaluation/simulation/simulator_copies.h"
#include "gdp_grappler/evaluation/simulation/simulator_graph.h"
#include "gdp_grappler/evaluation/simulation/simulator_host.h"
#include "gdp_grappler/evaluation/simulation/simulator_memory.h"
#include "gdp_grappler/evaluation/simulation/simulator_queues.h"
#include "gdp_grappler/evaluation/simulation/simulator_units.h"

namespace gdp {

// The state of one simulated step, which is reused for the next step. Places of
// objects that live for a part of the step (buffers, copies, chains) are reused
// as well, so that they stay in the cache.
class alignas(64) Machine {
 public:
  explicit Machine(const Graph& graph)
      : g_(graph),
        memory_(graph.num_pools),
        units_(graph),
        copies_(graph, &events_, &memory_, &units_),
        host_(graph),
        chains_(graph.streams ? graph.num_ops : 0),
        state_(graph.num_ops),
        next_on_device_(graph.num_ops),
        last_on_device_(graph.num_devices),
        group_device_(graph.num_groups),
        input_buffer_(graph.num_inputs),
        next_edge_(graph.num_edges),
        copy_for_(2 * graph.num_devices),
        root_chain_(graph.num_devices),
        roots_left_(graph.num_devices) {}

  // Simulates the placement `devices` [N]. An illegal placement takes
  // infinitely long. `priorities` [N] and `schedule` may be null; `peak` is
  // [P]. The simulation ends when the step is known to take longer than
  // `ceiling`. Then the step time is any time above the ceiling, and peaks are
  // those so far.
  void Run(const int32_t* devices, const double* priorities, double ceiling,
           double* step_time, int64_t* peak, Schedule* schedule) {
    const bool legal = ReadPlacement(devices);
    Reset(priorities, schedule, ceiling);
    if (legal) Simulate();
    *step_time = legal ? StepTime() : kInfinity;
    std::copy(memory_.peak().begin(), memory_.peak().end(), peak);
  }

  // Simulates the placement `devices` [N] first in, first out. On asynchronous
  // devices, the ops in `may` [N] are dispatched in the order in which the
  // priorities start them. If the step with priorities alone takes longer than
  // `ceiling`, its time is the result; see `Run`.
  void RunInOrder(const int32_t* devices, const double* priorities,
                  const uint8_t* may, double ceiling, double* step_time,
                  int64_t* peak) {
    started_.clear();
    records_ = true;
    Run(devices, priorities, ceiling, step_time, peak, nullptr);
    records_ = false;
    if (!g_.streams || *step_time == kInfinity || *step_time > ceiling) return;
    ReadPlacement(devices);
    Reset(nullptr, nullptr, ceiling);
    follows_ = true;
    Follow(may);
    Simulate();
    follows_ = false;
    *step_time = StepTime();
    std::copy(memory_.peak().begin(), memory_.peak().end(), peak);
  }

  // The units call this function when a waiting op gets a slot.
  void StartOp(int32_t op) {
    if (records_) started_.push_back(op);
    const int32_t device = state_[op].device;
    const int32_t unit = g_.unit[device];
    const double seconds =
        units_.Slowed(device, g_.seconds[Cell(op, device)], now_);
    double end = now_ + seconds;
    if (IsPart(device) && seconds > 0) {
      units_.FillPart(device, g_.card_share[Cell(op, device)], seconds, seconds,
                      0, now_, now_);
      end = units_.filled_s(unit);
    } else if (g_.asynchronous[device]) {
      units_.Fill(unit, seconds, seconds, 0, now_);
    }
    Allocate(op, device);
    if (schedule_) Report(op, now_, end, now_, units_.TakeSlot(unit));
    events_.Push(end, op);
  }

  void StartWork(int32_t index) {
    Copy& copy = copies_[index];
    const int32_t device = WorkDevice(copy);
    const double end =
        now_ + units_.Slowed(device, SecondsOwed(device, copy), now_);
    if (schedule_) {
      copy.slot = units_.TakeSlot(g_.unit[device]);
      schedule_->works.push_back({copy.number, device, copy.slot, now_, end});
    }
    events_.Push(end, EventItem(kWork, copy.number, index));
  }

 private:
  // Relative rounding error of sums over the seconds of millions of ops.
  static constexpr double kRounding = 1e-9;

  struct State {
    int32_t waiting;  // Edges that have not arrived.
    int32_t device;
  };

  // False if a device is out of range, not allowed or splits a group.
  bool ReadPlacement(const int32_t* devices) {
    std::fill(group_device_.begin(), group_device_.end(), kNone);
    for (int32_t op = 0; op < g_.num_ops; ++op) {
      const int32_t device = devices[op];
      if (device < 0 || device >= g_.num_devices) return false;
      const int32_t group = g_.group[op];
      if (group_device_[group] != device) {
        if (group_device_[group] != kNone ||
            !g_.allowed[int64_t{group} * g_.num_devices + device]) {
          return false;
        }
        group_device_[group] = device;
      }
      state_[g_.position[op]] = {g_.waiting[op],
                                 g_.on_host[op] ? g_.hosts[device] : device};
    }
    return true;
  }

  // Makes each op in `may` wait for the op that started before it on its
  // device.
  void Follow(const uint8_t* may) {
    std::fill(next_on_device_.begin(), next_on_device_.end(), kNone);
    std::fill(last_on_device_.begin(), last_on_device_.end(), kNone);
    for (const int32_t op : started_) {
      const int32_t device = state_[op].device;
      if (!g_.asynchronous[device] || !may[g_.order[op]]) continue;
      if (last_on_device_[device] != kNone) {
        next_on_device_[last_on_device_[device]] = op;
        ++state_[op].waiting;
      }
      last_on_device_[device] = op;
    }
  }

  void Reset(const double* priorities, Schedule* schedule, double ceiling) {
    now_ = g_.step_s;
    // Sums are compared with the ceiling, so allow for their rounding errors.
    ceiling_ = ceiling * (1 + kRounding);
    chained_ = g_.streams && !priorities;
    schedule_ = schedule;
    chain_ = kNone;
    events_.clear();
    memory_.Reset(schedule ? &schedule->memory : nullptr);
    units_.Reset(priorities, schedule, ceiling_);
    chains_.Reset();
    copies_.Reset(schedule);
    host_.Reset();
    std::fill(copy_for_.begin(), copy_for_.end(), std::make_pair(kNone, kNone));
    if (schedule) {
      schedule->start_s.assign(g_.num_ops, 0.0);
      schedule->end_s.assign(g_.num_ops, 0.0);
      schedule->dispatched_s.assign(g_.num_ops, 0.0);
      schedule->slot.assign(g_.num_ops, 0);
    }
  }

  void Simulate() {
    for (const Param& param : g_.params) {
      memory_.Add(g_.pool[state_[param.op].device], param.bytes);
    }
    if (g_.step_s > 0) memory_.Settle(0);
    if (ceiling_ < kInfinity) TellUnits();
    StartRoots();
    units_.StartAll(now_, this);
    while (true) {
      // Ops of no duration end at the moment at which they start, so handle the
      // events of this moment until there are none.
      while (!events_.empty() && events_.time_s() == now_) {
        while (!events_.empty() && events_.time_s() == now_) {
          Handle(events_.Pop());
        }
        units_.StartAll(now_, this);
      }
      memory_.Settle(now_);
      if (events_.empty() || now_ > ceiling_ || units_.is_over()) return;
      now_ = events_.time_s();
    }
  }

  // Tells the units the seconds that asynchronous devices will compute.
  void TellUnits() {
    for (int32_t op = 0; op < g_.num_ops; ++op) {
      const int32_t device = state_[op].device;
      if (g_.asynchronous[device]) {
        units_.WillFill(g_.unit[device], g_.seconds[Cell(op, device)]);
      }
    }
  }

  // The time of the simulated step. If the simulation ended early, the time is
  // above the ceiling.
  double StepTime() const {
    const double step_time = std::max(now_, units_.last_s());
    if (!units_.is_over()) return step_time;
    return std::max(step_time, std::nextafter(ceiling_, kInfinity));
  }

  // One thread of an asynchronous device dispatches all its roots.
  void StartRoots() {
    for (int32_t device = 0; device < g_.num_devices; ++device) {
      if (IsChained(device)) root_chain_[device] = chain_ = StartChain(device);
      roots_left_[device] = 0;
      for (const int32_t op : g_.roots) {
        // In `RunInOrder` an op may wait for the one before it on its device.
        if (state_[op].device == device && state_[op].waiting == 0) {
          MakeReady(op, device);
          roots_left_[device] += IsChained(device);
        }
      }
      chain_ = kNone;
    }
  }

  void Handle(uint64_t item) {
    const int32_t index = static_cast<int32_t>(item & 0x7fffffff);
    switch (item >> 61) {
      case kOp:
        return FinishOp(index);
      case kWork:
        return FinishWork(index);
      case kLane:
        return HandleLane(index);
      case kStream:
        return copies_.HandleStream(index, now_);
      case kArrival:
        return FinishTransfer(index);
      default:
        return ContinueChain(index);
    }
  }

  int64_t Cell(int32_t op, int32_t device) const {
    return int64_t{op} * g_.num_devices + device;
  }

  // Whether a device shares its card with others.
  bool IsPart(int32_t device) const {
    return g_.cut && g_.card[device] != kNone;
  }

  bool IsChained(int32_t device) const {
    return chained_ && g_.asynchronous[device];
  }

  void Report(int32_t op, double start, double end, double dispatched,
              int32_t slot) {
    schedule_->start_s[op] = start;
    schedule_->end_s[op] = end;
    schedule_->dispatched_s[op] = dispatched;
    schedule_->slot[op] = slot;
  }

  void MakeReady(int32_t op, int32_t device) {
    if (!IsChained(device)) {
      units_.PushOp(g_.unit[device], op, now_);
    } else {
      chains_.Append(chain_ == kNone ? StartChain(device) : chain_, op);
    }
  }

  int32_t StartChain(int32_t device) {
    const int32_t chain = chains_.Start(device);
    events_.Push(now_, EventItem(kChain, chains_.number(chain), chain));
    return chain;
  }

  // A thread has dispatched an item and takes up the next one.
  void ContinueChain(int32_t chain) {
    const int32_t done = chains_.current(chain);
    const int32_t device = chains_.device(chain);
    if (done >= 0 && done != Chains::kEmpty) {
      chain_ = chain;
      Complete(done, device);
      chain_ = kNone;
    }
    if (!chains_.Advance(chain)) return chains_.End(chain);
    if (roots_left_[device] > 0 && chain == root_chain_[device]) {
      --roots_left_[device];
    }
    events_.Push(TakeUp(chain, chains_.current(chain), device),
                 EventItem(kChain, chains_.number(chain), chain));
  }

  // A thread takes up an item. Returns the time at which it will be done.
  double TakeUp(int32_t chain, int32_t item, int32_t device) {
    const double factor = DispatchFactor(item);
    if (item >= 0) return Dispatch(item, device, factor);
    if (copies_[~item].constant) {
      copies_[~item].constant = false;
      chains_.Append(chain, item);
      return host_.EndOfVisit(device, factor, now_);
    }
    const double issued = host_.EndOfIssue(device, factor, now_);
    copies_.Issue(~item, issued, now_);
    return issued;
  }

  double DispatchFactor(int32_t item) const {
    if (g_.dispatch_factors.empty()) return 1;
    return g_.dispatch_factors[item >= 0 ? g_.order[item] : copies_[~item].op];
  }

  // Puts an op on its device's compute stream, if it launches a kernel. Returns
  // the end of the dispatch.
  double Dispatch(int32_t op, int32_t device, double factor) {
    const double seconds = g_.seconds[Cell(op, device)];
    const double runs = g_.runs[op];
    double end, start;
    if (seconds > 0) {
      end = host_.EndOfLaunch(device, op, factor, now_);
      const double gap = Gap(device);
      const double filled = seconds + (runs - 1) * gap;
      const int32_t unit = g_.unit[device];
      start = IsPart(device)
                  ? units_.FillPart(device, g_.card_share[Cell(op, device)],
                                    filled, seconds, gap, end, now_)
                  : units_.Fill(unit, filled, seconds, gap, end);
      if (schedule_) Report(op, start, units_.filled_s(unit), end, 0);
    } else {
      start = end = host_.EndOfVisit(device, factor * runs, now_);
      if (schedule_) Report(op, start, start, end, 0);
    }
    Allocate(op, device);
    return end;
  }

  // The gap between two kernels of a device. Each other busy stream of its
  // context lengthens it.
  double Gap(int32_t device) const {
    const HostTimes& host = g_.host[device];
    if (host.switch_s == 0 || !g_.shares_context[device]) return host.gap_s;
    int32_t others = 0;
    for (int32_t other = 0; other < g_.num_devices; ++other) {
      if (!g_.asynchronous[other] || g_.context[other] != g_.context[device]) {
        continue;
      }
      others += g_.unit[other] != g_.unit[device] &&
                units_.filled_s(g_.unit[other]) > now_;
      others += copies_.IsSending(other, now_);
    }
    return host.gap_s + others * host.switch_s;
  }

  void Allocate(int32_t op, int32_t device) {
    const int32_t pool = g_.pool[device];
    memory_.Add(pool, g_.ops[op].own_bytes);
    memory_.Add(g_.pool[g_.hosts[device]], g_.ops[op].host_bytes);
    if (!g_.workspace.empty()) {
      memory_.Add(pool, g_.workspace[Cell(op, device)]);
    }
  }

  void FinishOp(int32_t op) {
    const int32_t device = state_[op].device;
    units_.Leave(g_.unit[device], schedule_ ? schedule_->slot[op] : 0,
                 g_.seconds[Cell(op, device)], now_, schedule_);
    Complete(op, device);
  }

  // Delivers the outputs of an op and releases its inputs.
  void Complete(int32_t op, int32_t device) {
    if (!g_.workspace.empty()) {
      memory_.Add(g_.pool[device], -g_.workspace[Cell(op, device)]);
    }
    const Op& info = g_.ops[op];
    const Op& next = g_.ops[op + 1];
    const int32_t* input = input_buffer_.data() + info.first_input;
    const int32_t* end = input_buffer_.data() + next.first_input;
    // An alias hands on the buffer of its first data input.
    const int32_t handed_on = info.alias && input != end ? *input : kNone;
    for (int32_t o = info.first_output; o < next.first_output; ++o) {
      const Output& output = g_.outputs[o];
      if (info.alias) {
        Deliver(device, o, output.tensor == kNone ? kNone : handed_on,
                g_.order[op]);
      } else if (output.bytes == 0) {
        Deliver(device, o, kNone, g_.order[op]);
      } else {
        const int32_t own =
            memory_.NewBuffer(g_.pool[Place(device, output)], output.bytes);
        memory_.Retain(own);
        Deliver(device, o, own, g_.order[op]);
        memory_.Release(own);
      }
    }
    if (follows_ && next_on_device_[op] != kNone) Arrive(next_on_device_[op]);
    for (; input != end; ++input) memory_.Release(*input);
  }

  // The device whose memory has an output or an input of an op on `device`.
  template <typename Tensor>
  int32_t Place(int32_t device, const Tensor& tensor) const {
    return tensor.on_host ? g_.hosts[device] : device;
  }

  // Gives an output to the consumers that read it where it is, and sends it
  // once for the other consumers on each device that read it in one memory.
  void Deliver(int32_t device, int32_t output, int32_t buffer, int32_t op) {
    const int32_t source = Place(device, g_.outputs[output]);
    const int32_t end = g_.outputs[output + 1].first_edge;
    for (int32_t e = g_.outputs[output].first_edge; e < end; ++e) {
      const Edge& edge = g_.edges[e];
      const int32_t reader = state_[edge.target].device;
      const int32_t target = Place(reader, edge);
      int32_t read = buffer;
      if (target != source) {
        auto& [of, index] = copy_for_[2 * reader + (target != reader)];
        if (of != output) {
          of = output;
          index = Send(device, source, output, target, buffer, op);
        }
        Copy& copy = copies_[index];
        (copy.first_edge == kNone ? copy.first_edge
                                  : next_edge_[copy.last_edge]) = e;
        next_edge_[e] = kNone;
        copy.last_edge = e;
        read = copy.buffer;
      }
      if (edge.input != kNone) {
        memory_.Retain(read);
        input_buffer_[edge.input] = read;
      }
      if (target != source) continue;
      if (reader == device) {
        Arrive(edge.target);
      } else {
        ArriveFromAfar(edge.target);
      }
    }
  }

  // Sends an output of an op on `device`, after the work of the sender for it,
  // if there is any.
  int32_t Send(int32_t device, int32_t source, int32_t output, int32_t target,
               int32_t buffer, int32_t op) {
    const int32_t index =
        copies_.New(g_.outputs[output], source, target, buffer, op);
    if (IsChained(device)) {
      chains_.Append(chain_, ~index);
    } else if (!Owe(source, index)) {
      Issue(index);
    }
    return index;
  }

  // Issues a transfer that no thread of the sender issues. The receiver's
  // thread of roots asks for the tensor. As long as this thread has roots left,
  // it issues transfers from synchronous devices itself.
  void Issue(int32_t index) {
    Copy& copy = copies_[index];
    const int32_t target = copies_.Target(copy);
    if (g_.asynchronous[copies_.Source(copy)]) {
      copies_.Issue(index, now_, now_);
    } else if (roots_left_[target] == 0) {
      copies_.Issue(index, now_ + g_.host[target].copy_dispatch_s, now_);
    } else {
      copy.constant = false;  // The sender has made the tensor.
      chains_.Append(root_chain_[target], ~index);
    }
  }

  void HandleLane(int32_t index) {
    const int32_t ended = copies_.HandleLane(index, now_);
    if (ended != kNone) FinishTransfer(ended);
  }

  void FinishTransfer(int32_t index) {
    const Copy& copy = copies_[index];
    memory_.Release(copy.source_buffer);
    if (!Owe(copies_.Target(copy), index)) FinishCopy(index);
  }

  void FinishCopy(int32_t index) {
    for (int32_t e = copies_[index].first_edge; e != kNone; e = next_edge_[e]) {
      Arrive(g_.edges[e].target);
    }
    copies_.End(index);
  }

  double SecondsOwed(int32_t device, const Copy& copy) const {
    return g_.copy_s[device] +
           static_cast<double>(copy.bytes) / g_.copy_bytes_per_s[device];
  }

  // Queues the work of a device for a copy. Returns false if there is none.
  bool Owe(int32_t device, int32_t index) {
    if (!g_.copy_work || SecondsOwed(device, copies_[index]) == 0) return false;
    units_.PushWork(g_.unit[device], {now_, copies_[index].number, index});
    return true;
  }

  int32_t WorkDevice(const Copy& copy) const {
    return copy.sent ? copies_.Target(copy) : copies_.Source(copy);
  }

  void FinishWork(int32_t index) {
    const Copy& copy = copies_[index];
    const int32_t device = WorkDevice(copy);
    units_.Leave(g_.unit[device], copy.slot, SecondsOwed(device, copy), now_,
                 schedule_);
    if (copy.sent) {
      FinishCopy(index);
    } else {
      Issue(index);
    }
  }

  // The same, if the thread that dispatches at the moment serves another
  // device.
  void ArriveFromAfar(int32_t op) {
    const int32_t chain = std::exchange(chain_, kNone);
    Arrive(op);
    chain_ = chain;
  }

  void Arrive(int32_t op) {
    State& state = state_[op];
    if (--state.waiting == 0) MakeReady(op, state.device);
  }

  const Graph& g_;
  double now_ = 0;
  double ceiling_ = kInfinity;
  bool chained_ = false;   // Asynchronous devices dispatch in chains.
  int32_t chain_ = kNone;  // The chain whose op completes at the moment.
  Schedule* schedule_ = nullptr;
  EventQueue events_;
  Memory memory_;
  Units units_;
  Copies copies_;
  Host host_;
  Chains chains_;
  bool records_ = false;            // Whether `started_` is filled.
  bool follows_ = false;            // Whether ops keep the order of `started_`.
  Vector<State> state_;             // [N]
  Vector<int32_t> started_;         // Ops, in the order of their starts.
  Vector<int32_t> next_on_device_;  // [N] op that waits for an op's dispatch.
  Vector<int32_t> last_on_device_;  // [D]
  Vector<int32_t> group_device_;    // [G]
  Vector<int32_t> input_buffer_;    // [inputs] buffer that the consumer reads.
  Vector<int32_t> next_edge_;       // [E] next edge that the same copy serves.
  // [D, 2] output and its copy for readers on a device, in its own memory and
  // in that of its host.
  Vector<std::pair<int32_t, int32_t>> copy_for_;
  Vector<int32_t> root_chain_;  // [D] chain that dispatches the roots.
  Vector<int32_t> roots_left_;  // [D] number of roots not taken up yet.
};

}  // namespace gdp

#endif  // GDP_GRAPPLER_EVALUATION_SIMULATOR_MACHINE_H_

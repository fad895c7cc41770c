// One simulated step.

#ifndef GDP_GRAPPLER_EVALUATION_SIMULATOR_MACHINE_H_
#define GDP_GRAPPLER_EVALUATION_SIMULATOR_MACHINE_H_

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "gdp_grappler/evaluation/simulation/simulator_graph.h"
#include "gdp_grappler/evaluation/simulation/simulator_queues.h"

namespace gdp {

// The state of one simulated step; used again for the next one. What lives only
// for a while (buffers, copies) has its place used again as well, so that it
// stays in the cache.
class alignas(64) Machine {
 public:
  explicit Machine(const Graph& graph)
      : g_(graph),
        state_(graph.num_ops),
        group_device_(graph.num_groups),
        input_buffer_(graph.num_inputs),
        next_edge_(graph.num_edges),
        fifo_(graph.num_units),
        ranked_(graph.num_units),
        owed_(graph.num_units),
        free_slots_(graph.num_units),
        slot_taken_(graph.num_units),
        starts_(graph.num_units),
        channel_free_(graph.num_channels),
        lanes_(2 * graph.num_devices * graph.num_devices),
        copy_on_(graph.num_devices),
        live_(graph.num_pools),
        peak_(graph.num_pools),
        reported_(graph.num_pools) {}

  // Simulates `devices` [N], which take infinitely long if they are not legal.
  // `priorities` [N] and `schedule` may be null; `peak` [P].
  void Run(const int32_t* devices, const double* priorities, double* step_time,
           int64_t* peak, Schedule* schedule) {
    const bool legal = ReadPlacement(devices);
    Reset(priorities, schedule);
    if (legal) Simulate();
    *step_time = legal ? now_ : kInfinity;
    std::copy(peak_.begin(), peak_.end(), peak);
  }

 private:
  struct State {
    int32_t waiting;  // Edges that have not arrived.
    int32_t device;
  };

  // A transfer of a tensor, or a message, to another device.
  struct Copy {
    double start_s, end_s;
    int64_t bytes;
    int32_t number;         // Copies count in the order of their requests.
    int32_t lane;
    int32_t source_buffer, buffer;
    int32_t next;           // In its lane.
    int32_t last_edge;      // That it serves; `next_edge_` has the others.
    bool sent;              // The sender has done its work.
    int32_t slot;           // Of the work under way.
  };

  // The copies of one link, or its messages, that have not ended. They start
  // and end one after the other, so that only the first one has an event.
  // Lanes are [D, D, 2]: source, target, and whether messages.
  struct Lane {
    int32_t first = kNone, last = kNone;
    bool started = false;
  };

  // What a unit started at one moment and has not ended.
  struct Starts {
    double time_s;
    int32_t count;
  };

  // Memory that lives while somebody refers to it, on one device.
  struct Buffer {
    int64_t bytes;
    int32_t references;
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
      state_[g_.position[op]] = {g_.waiting[op], device};
    }
    return true;
  }

  void Reset(const double* priorities, Schedule* schedule) {
    now_ = g_.step_s;
    priorities_ = priorities;
    schedule_ = schedule;
    num_copies_ = 0;
    events_.clear();
    touched_.clear();
    copies_.clear();
    free_copies_.clear();
    buffers_.clear();
    free_buffers_.clear();
    for (Fifo& queue : fifo_) queue.clear();
    for (Heap<Ranked>& queue : ranked_) queue.clear();
    for (Heap<Owed>& queue : owed_) queue.clear();
    std::copy(g_.slots.begin(), g_.slots.end(), free_slots_.begin());
    std::fill(starts_.begin(), starts_.end(), Starts{-1, 0});
    std::fill(channel_free_.begin(), channel_free_.end(), 0.0);
    std::fill(lanes_.begin(), lanes_.end(), Lane());
    std::fill(copy_on_.begin(), copy_on_.end(), std::make_pair(kNone, kNone));
    std::fill(live_.begin(), live_.end(), 0);
    std::fill(peak_.begin(), peak_.end(), 0);
    std::fill(reported_.begin(), reported_.end(), -1);
    if (schedule) {
      schedule->start_s.assign(g_.num_ops, 0.0);
      schedule->end_s.assign(g_.num_ops, 0.0);
      schedule->slot.assign(g_.num_ops, 0);
      for (int32_t u = 0; u < g_.num_units; ++u) slot_taken_[u].clear();
    }
  }

  void Simulate() {
    for (const Param& param : g_.params) {
      live_[g_.pool[state_[param.op].device]] += param.bytes;
    }
    if (g_.step_s > 0) SettleMemory(0);
    for (const int32_t op : g_.roots) Enqueue(op, state_[op].device);
    StartAll();
    while (true) {
      // Ops of no duration end at the time they start: another round.
      while (!events_.empty() && events_.time_s() == now_) {
        while (!events_.empty() && events_.time_s() == now_) {
          Handle(events_.Pop());
        }
        StartAll();
      }
      SettleMemory(now_);
      if (events_.empty()) return;
      now_ = events_.time_s();
    }
  }

  // An event is an op or the work for a copy ending, or something in a lane.
  // Ops that end at one time come in topological order, then copies by number.
  static uint64_t WorkItem(const Copy& copy, int32_t index) {
    return kWork << 62 | static_cast<uint64_t>(copy.number) << 31 | index;
  }

  static uint64_t LaneItem(int32_t index) { return kLane << 62 | index; }

  void Handle(uint64_t item) {
    switch (item >> 62) {
      case kOp:
        return FinishOp(static_cast<int32_t>(item));
      case kWork:
        return FinishWork(static_cast<int32_t>(item & 0x7fffffff));
      default:
        return HandleLane(static_cast<int32_t>(item));
    }
  }

  int32_t LaneSource(int32_t lane) const { return lane / 2 / g_.num_devices; }
  int32_t LaneTarget(int32_t lane) const { return lane / 2 % g_.num_devices; }

  void HandleLane(int32_t index) {
    Lane& lane = lanes_[index];
    if (lane.started) {
      const int32_t copy = lane.first;
      lane.first = copies_[copy].next;
      lane.started = false;
      FinishTransfer(copy, index);
    }
    if (lane.first != kNone) AdvanceLane(index);
  }

  // Starts the first copy of a lane if it is time; awaits what comes next.
  void AdvanceLane(int32_t index) {
    Lane& lane = lanes_[index];
    const Copy& copy = copies_[lane.first];
    lane.started = copy.start_s <= now_;
    if (lane.started) live_[g_.pool[LaneTarget(index)]] += copy.bytes;
    events_.Push(lane.started ? copy.end_s : copy.start_s, LaneItem(index));
  }

  // Gives the free slots of the units in `touched_`, which became free or got
  // something to do, to what waits for them.
  void StartAll() {
    for (const int32_t unit : touched_) {
      while (free_slots_[unit] > 0) {
        if (g_.copy_work && !owed_[unit].empty()) {
          StartWork(owed_[unit].Pop().copy);
        } else if (priorities_ ? !ranked_[unit].empty()
                               : !fifo_[unit].empty()) {
          StartOp(priorities_ ? ranked_[unit].Pop().op
                              : fifo_[unit].Pop(now_));
        } else {
          break;
        }
        --free_slots_[unit];
        if (g_.contended) CountStart(unit);
      }
    }
    touched_.clear();
  }

  void CountStart(int32_t unit) {
    Starts& starts = starts_[unit];
    if (starts.time_s != now_) starts = {now_, 0};
    ++starts.count;
  }

  // Whether a unit is in the middle of something: started before this moment.
  bool IsBusy(int32_t unit) const {
    const Starts& starts = starts_[unit];
    return g_.slots[unit] - free_slots_[unit] >
           (starts.time_s == now_ ? starts.count : 0);
  }

  // What starts now on a device takes so much longer, for the units that share
  // its bus.
  double Slowed(int32_t device, double seconds) const {
    if (!g_.contended || g_.contention[device] == 0) return seconds;
    const int32_t own = g_.unit[device];
    int32_t others = 0;
    for (int32_t unit = 0; unit < g_.num_units; ++unit) {
      others += unit != own && g_.bus[unit] == g_.bus[own] && IsBusy(unit);
    }
    return seconds * (1 + others * g_.contention[device]);
  }

  void Enqueue(int32_t op, int32_t device) {
    const int32_t unit = g_.unit[device];
    if (priorities_) {
      ranked_[unit].Push({-priorities_[g_.order[op]], now_, op});
    } else {
      fifo_[unit].Push(now_, op);
    }
    touched_.push_back(unit);
  }

  void StartOp(int32_t op) {
    const int32_t device = state_[op].device;
    const int64_t cell = int64_t{op} * g_.num_devices + device;
    const double end = now_ + Slowed(device, g_.seconds[cell]);
    int64_t& live = live_[g_.pool[device]];
    live += g_.ops[op].own_bytes;
    if (!g_.workspace.empty()) live += g_.workspace[cell];
    if (schedule_) {
      schedule_->start_s[op] = now_;
      schedule_->end_s[op] = end;
      schedule_->slot[op] = TakeSlot(g_.unit[device]);
    }
    events_.Push(end, op);
  }

  void FinishOp(int32_t op) {
    const int32_t device = state_[op].device;
    const int32_t pool = g_.pool[device];
    LeaveUnit(g_.unit[device], schedule_ ? schedule_->slot[op] : 0,
              g_.seconds[int64_t{op} * g_.num_devices + device]);
    if (!g_.workspace.empty()) {
      live_[pool] -= g_.workspace[int64_t{op} * g_.num_devices + device];
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
        const int32_t own = NewBuffer(output.bytes);
        Retain(own);
        Deliver(device, o, own, g_.order[op]);
        Release(own, pool);
      }
    }
    for (; input != end; ++input) Release(*input, pool);
  }

  // Gives an output to its consumers here, and sends it once to every other
  // device that has some.
  void Deliver(int32_t device, int32_t output, int32_t buffer, int32_t op) {
    const int32_t end = g_.outputs[output + 1].first_edge;
    for (int32_t e = g_.outputs[output].first_edge; e < end; ++e) {
      const Edge& edge = g_.edges[e];
      const int32_t target = state_[edge.target].device;
      int32_t read = buffer;
      if (target != device) {
        if (copy_on_[target].first != output) {
          copy_on_[target] = {output, Send(device, output, target, buffer, op)};
        }
        Copy& copy = copies_[copy_on_[target].second];
        next_edge_[e] = copy.last_edge;
        copy.last_edge = e;
        read = copy.buffer;
      }
      if (edge.input != kNone) {
        Retain(read);
        input_buffer_[edge.input] = read;
      }
      if (target == device) Arrive(edge.target);
    }
  }

  // Sends an output once the sender has done its work for it, if any.
  int32_t Send(int32_t source, int32_t output, int32_t target, int32_t buffer,
               int32_t op) {
    const Output& o = g_.outputs[output];
    const int32_t index = NewCopy();
    Copy& copy = copies_[index];
    copy.bytes = o.bytes;
    copy.number = num_copies_++;
    copy.lane = 2 * (source * g_.num_devices + target) + (o.bytes == 0);
    copy.source_buffer = buffer;
    copy.buffer = o.bytes > 0 ? NewBuffer(o.bytes) : kNone;
    copy.next = copy.last_edge = kNone;
    copy.sent = false;
    Retain(buffer);
    if (schedule_) {
      schedule_->transfers.push_back({o.tensor, op, source, target, 0, 0});
    }
    if (!Owe(source, index)) Request(index);
    return index;
  }

  // Requests a transfer. Channels serve in the order of requests, so that its
  // times are known at once.
  void Request(int32_t index) {
    Copy& copy = copies_[index];
    const Link& link = g_.links[copy.lane / 2];
    copy.sent = true;
    copy.start_s = now_;
    if (copy.bytes > 0) {
      for (int32_t c = 0; c < g_.channels_per_link; ++c) {
        copy.start_s = std::max(copy.start_s, channel_free_[link.channels[c]]);
      }
      const double bytes = static_cast<double>(copy.bytes);
      copy.end_s = copy.start_s + (link.latency_s + bytes / link.bytes_per_s);
      for (int32_t c = 0; c < g_.channels_per_link; ++c) {
        channel_free_[link.channels[c]] = copy.end_s;
      }
    } else {
      copy.end_s = copy.start_s + link.latency_s;
    }
    if (schedule_) {
      schedule_->transfers[copy.number].start_s = copy.start_s;
      schedule_->transfers[copy.number].end_s = copy.end_s;
    }
    Lane& lane = lanes_[copy.lane];
    if (lane.first == kNone) {
      lane.first = lane.last = index;
      AdvanceLane(copy.lane);
    } else {
      lane.last = copies_[lane.last].next = index;
    }
  }

  void FinishTransfer(int32_t index, int32_t lane) {
    Release(copies_[index].source_buffer, g_.pool[LaneSource(lane)]);
    if (!Owe(LaneTarget(lane), index)) FinishCopy(index);
  }

  void FinishCopy(int32_t index) {
    for (int32_t e = copies_[index].last_edge; e != kNone; e = next_edge_[e]) {
      Arrive(g_.edges[e].target);
    }
    free_copies_.push_back(index);
  }

  double SecondsOwed(int32_t device, const Copy& copy) const {
    return g_.copy_s[device] +
           static_cast<double>(copy.bytes) / g_.copy_bytes_per_s[device];
  }

  // False if a device has nothing to do for a copy.
  bool Owe(int32_t device, int32_t index) {
    if (!g_.copy_work || SecondsOwed(device, copies_[index]) == 0) return false;
    const int32_t unit = g_.unit[device];
    owed_[unit].Push({now_, copies_[index].number, index});
    touched_.push_back(unit);
    return true;
  }

  int32_t WorkDevice(const Copy& copy) const {
    return copy.sent ? LaneTarget(copy.lane) : LaneSource(copy.lane);
  }

  void StartWork(int32_t index) {
    Copy& copy = copies_[index];
    const int32_t device = WorkDevice(copy);
    const double end = now_ + Slowed(device, SecondsOwed(device, copy));
    if (schedule_) {
      copy.slot = TakeSlot(g_.unit[device]);
      schedule_->works.push_back({copy.number, device, copy.slot, now_, end});
    }
    events_.Push(end, WorkItem(copy, index));
  }

  void FinishWork(int32_t index) {
    const Copy& copy = copies_[index];
    const int32_t device = WorkDevice(copy);
    LeaveUnit(g_.unit[device], copy.slot, SecondsOwed(device, copy));
    if (copy.sent) {
      FinishCopy(index);
    } else {
      Request(index);
    }
  }

  void LeaveUnit(int32_t unit, int32_t slot, double seconds) {
    ++free_slots_[unit];
    // Without a duration it began at this moment.
    if (g_.contended && now_ + seconds == now_) --starts_[unit].count;
    touched_.push_back(unit);
    if (schedule_) slot_taken_[unit][slot] = 0;
  }

  // The lowest free slot; only schedules need to know.
  int32_t TakeSlot(int32_t unit) {
    std::vector<uint8_t>& taken = slot_taken_[unit];
    const auto slot = std::find(taken.begin(), taken.end(), 0);
    const int32_t index = static_cast<int32_t>(slot - taken.begin());
    if (slot == taken.end()) taken.push_back(0);
    taken[index] = 1;
    return index;
  }

  void Arrive(int32_t op) {
    State& state = state_[op];
    if (--state.waiting == 0) Enqueue(op, state.device);
  }

  int32_t NewCopy() {
    if (free_copies_.empty()) {
      copies_.emplace_back();
      return static_cast<int32_t>(copies_.size()) - 1;
    }
    const int32_t index = free_copies_.back();
    free_copies_.pop_back();
    return index;
  }

  // Without references.
  int32_t NewBuffer(int64_t bytes) {
    if (free_buffers_.empty()) {
      buffers_.push_back({bytes, 0});
      return static_cast<int32_t>(buffers_.size()) - 1;
    }
    const int32_t index = free_buffers_.back();
    free_buffers_.pop_back();
    buffers_[index] = {bytes, 0};
    return index;
  }

  void Retain(int32_t buffer) {
    if (buffer != kNone) ++buffers_[buffer].references;
  }

  void Release(int32_t buffer, int32_t pool) {
    if (buffer == kNone || --buffers_[buffer].references > 0) return;
    live_[pool] -= buffers_[buffer].bytes;
    free_buffers_.push_back(buffer);
  }

  // Looks at the memories once everything of one time has happened.
  void SettleMemory(double time_s) {
    for (int32_t pool = 0; pool < g_.num_pools; ++pool) {
      peak_[pool] = std::max(peak_[pool], live_[pool]);
      if (schedule_ && live_[pool] != reported_[pool]) {
        schedule_->memory.push_back({time_s, live_[pool], pool});
        reported_[pool] = live_[pool];
      }
    }
  }

  const Graph& g_;
  double now_ = 0;
  const double* priorities_ = nullptr;  // [N] by op of the graph.
  Schedule* schedule_ = nullptr;
  int32_t num_copies_ = 0;
  EventQueue events_;
  Vector<int32_t> touched_;
  Vector<State> state_;                // [N]
  Vector<int32_t> group_device_;       // [G]
  Vector<int32_t> input_buffer_;       // [inputs] what the consumer reads.
  Vector<int32_t> next_edge_;          // [E] of the same copy.
  Vector<Buffer> buffers_;
  Vector<int32_t> free_buffers_;
  Vector<Copy> copies_;
  Vector<int32_t> free_copies_;
  Vector<Fifo> fifo_;                  // [units] without priorities.
  Vector<Heap<Ranked>> ranked_;        // [units] with priorities.
  Vector<Heap<Owed>> owed_;            // [units]
  Vector<int32_t> free_slots_;         // [units]
  std::vector<std::vector<uint8_t>> slot_taken_;  // [units] if scheduled.
  Vector<Starts> starts_;              // [units] if contended.
  Vector<double> channel_free_;        // [channels]
  Vector<Lane> lanes_;                 // [D, D, 2]
  Vector<std::pair<int32_t, int32_t>> copy_on_;  // [D] output, its copy.
  Vector<int64_t> live_, peak_;        // [P]
  Vector<int64_t> reported_;           // [P] what the curve said last.
};

}  // namespace gdp

#endif  // GDP_GRAPPLER_EVALUATION_SIMULATOR_MACHINE_H_

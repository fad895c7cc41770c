// The transfers of the simulator.

#ifndef GDP_GRAPPLER_EVALUATION_SIMULATOR_COPIES_H_
#define GDP_GRAPPLER_EVALUATION_SIMULATOR_COPIES_H_

#include <algorithm>
#include <cstdint>

#include "gdp_grappler/evaluation/simulation/simulator_graph.h"
#include "gdp_grappler/evaluation/simulation/simulator_memory.h"
#include "gdp_grappler/evaluation/simulation/simulator_queues.h"
#include "gdp_grappler/evaluation/simulation/simulator_units.h"

namespace gdp {

// A transfer of a tensor, or a message, to another device.
struct Copy {
  // Until a copy on a stream is requested, `start_s` is its earliest start.
  double start_s, end_s;
  double issued_s;  // Used on a stream.
  int64_t bytes;
  int32_t number;  // Copies are numbered in the order in which they are made.
  int32_t lane;
  int32_t op;  // Op of the graph whose output is sent.
  int32_t source_buffer, buffer;
  int32_t next;                   // Next copy in the lane or stream.
  int32_t first_edge, last_edge;  // Served edges, linked by `next_edge_`.
  bool sent;                      // The sender has done its work.
  bool constant;  // A message whose empty tensor does not exist yet.
  int32_t slot;   // Slot of the current work for the copy.
};

// All copies that have not arrived. An issued copy is in a lane if both devices
// are synchronous, else in a stream.
class Copies {
 public:
  Copies(const Graph& graph, EventQueue* events, Memory* memory, Units* units)
      : g_(graph),
        events_(*events),
        memory_(*memory),
        units_(*units),
        channel_free_(graph.num_channels),
        lanes_(2 * graph.num_devices * graph.num_devices),
        streams_(3 * graph.num_devices) {}

  void Reset(Schedule* schedule) {
    schedule_ = schedule;
    num_copies_ = 0;
    copies_.clear();
    free_.clear();
    std::fill(channel_free_.begin(), channel_free_.end(), 0.0);
    std::fill(lanes_.begin(), lanes_.end(), Lane());
    std::fill(streams_.begin(), streams_.end(), Stream());
  }

  Copy& operator[](int32_t index) { return copies_[index]; }
  const Copy& operator[](int32_t index) const { return copies_[index]; }

  int32_t Source(const Copy& copy) const {
    return copy.lane / 2 / g_.num_devices;
  }

  int32_t Target(const Copy& copy) const {
    return copy.lane / 2 % g_.num_devices;
  }

  int32_t New(const Output& output, int32_t source, int32_t target,
              int32_t buffer, int32_t op) {
    int32_t index = static_cast<int32_t>(copies_.size());
    if (free_.empty()) {
      copies_.emplace_back();
    } else {
      index = free_.back();
      free_.pop_back();
    }
    Copy& copy = copies_[index];
    copy.bytes = output.bytes;
    copy.number = num_copies_++;
    copy.lane = 2 * (source * g_.num_devices + target) + (output.bytes == 0);
    copy.op = op;
    copy.source_buffer = buffer;
    copy.buffer = output.bytes > 0
                      ? memory_.NewBuffer(g_.pool[target], output.bytes)
                      : kNone;
    copy.next = copy.first_edge = copy.last_edge = kNone;
    copy.sent = false;
    copy.constant = output.tensor == kNone;
    memory_.Retain(buffer);
    if (schedule_) {
      schedule_->transfers.push_back({output.tensor, op, source, target, 0, 0});
    }
    return index;
  }

  void End(int32_t index) { free_.push_back(index); }

  // Requests a transfer between synchronous devices. Puts another transfer on a
  // copy stream, where it starts at `issued` at the earliest.
  void Issue(int32_t index, double issued, double now) {
    Copy& copy = copies_[index];
    copy.sent = true;
    const int32_t source = Source(copy), target = Target(copy);
    if (!g_.asynchronous[source] && !g_.asynchronous[target]) {
      Request(&copy, now);
      EnterLane(index, now);
    } else {
      memory_.Add(g_.pool[target], copy.bytes);
      copy.issued_s = issued;
      copy.start_s = Earliest(source, target, copy.bytes > 0, issued);
      EnterStream(index, source, target);
    }
  }

  // A copy in a lane starts or ends. Returns the copy that ends, or kNone.
  int32_t HandleLane(int32_t index, double now) {
    Lane& lane = lanes_[index];
    int32_t ended = kNone;
    if (lane.started) {
      ended = lane.first;
      lane.first = copies_[ended].next;
      lane.started = false;
    }
    if (lane.first != kNone) AdvanceLane(index, now);
    return ended;
  }

  // Requests the first copy of a stream.
  void HandleStream(int32_t number, double now) {
    Stream& stream = streams_[number];
    const int32_t index = stream.first;
    Copy& copy = copies_[index];
    Request(&copy, now);
    events_.Push(copy.end_s + HopSeconds(copy),
                 EventItem(kArrival, copy.number, index));
    if (copy.bytes > 0) stream.free_s = copy.end_s;
    stream.first = copy.next;
    if (stream.first != kNone) AwaitFirst(number);
  }

  // Whether a device's stream to asynchronous devices has a running or waiting
  // copy.
  bool IsSending(int32_t device, double now) const {
    const Stream& stream = streams_[3 * device];
    return stream.first != kNone || stream.free_s > now;
  }

 private:
  // The copies, or the messages, of one link that have not ended. They start
  // and end one after the other, so that only the first one has an event. Lanes
  // are [D, D, 2]: source, target, and 1 for messages.
  struct Lane {
    int32_t first = kNone, last = kNone;
    bool started = false;
  };

  // A copy stream of an asynchronous device, which runs copies one after the
  // other. A device has three: to asynchronous devices, to synchronous devices,
  // and from synchronous devices.
  struct Stream {
    double free_s = 0;
    int32_t first = kNone, last = kNone;
  };

  // Sets start and end of a transfer. Channels serve in the order of requests.
  void Request(Copy* copy, double now) {
    const Link& link = g_.links[copy->lane / 2];
    copy->start_s = now;
    if (copy->bytes > 0) {
      for (int32_t c = 0; c < g_.channels_per_link; ++c) {
        copy->start_s =
            std::max(copy->start_s, channel_free_[link.channels[c]]);
      }
      const double bytes = static_cast<double>(copy->bytes);
      copy->end_s = copy->start_s + (link.latency_s + bytes / link.bytes_per_s);
      for (int32_t c = 0; c < g_.channels_per_link; ++c) {
        channel_free_[link.channels[c]] = copy->end_s;
      }
    } else {
      copy->end_s = copy->start_s + link.latency_s;
    }
    if (schedule_) {
      schedule_->transfers[copy->number].start_s = copy->start_s;
      schedule_->transfers[copy->number].end_s = copy->end_s;
    }
  }

  // Seconds from a copy's end to its arrival, when the event manager finds the
  // end. The event manager looks for the first time soon after the issue, and
  // then repeatedly.
  double HopSeconds(const Copy& copy) const {
    const int32_t source = Source(copy);
    const HostTimes& host =
        g_.host[g_.asynchronous[source] ? source : Target(copy)];
    const double first_s = 2 * g_.links[copy.lane / 2].latency_s;
    if (copy.end_s - copy.issued_s <= first_s) return host.callback_s;
    return host.callback_s +
           host.poll_s *
               (g_.poll_factors.empty() ? 1 : g_.poll_factors[copy.op]);
  }

  void EnterLane(int32_t index, double now) {
    const int32_t number = copies_[index].lane;
    Lane& lane = lanes_[number];
    if (lane.first == kNone) {
      lane.first = lane.last = index;
      AdvanceLane(number, now);
    } else {
      lane.last = copies_[lane.last].next = index;
    }
  }

  // Starts the first copy of a lane if its time has come, and pushes the next
  // event of the lane.
  void AdvanceLane(int32_t index, double now) {
    Lane& lane = lanes_[index];
    const Copy& copy = copies_[lane.first];
    lane.started = copy.start_s <= now;
    if (lane.started) memory_.Add(g_.pool[Target(copy)], copy.bytes);
    events_.Push(lane.started ? copy.end_s : copy.start_s,
                 EventItem(kLane, 0, index));
  }

  // The earliest start of a copy that is issued at `now`. It waits for the
  // compute stream of the sender, because the result must exist, and of the
  // receiver, because the memory must be free.
  double Earliest(int32_t source, int32_t target, bool data, double now) const {
    double start = now;
    if (g_.asynchronous[source]) {
      start = std::max(start, units_.filled_s(g_.unit[source]));
    }
    if (g_.asynchronous[target] && (data || !g_.asynchronous[source])) {
      start = std::max(start, units_.filled_s(g_.unit[target]));
    }
    return start;
  }

  void EnterStream(int32_t index, int32_t source, int32_t target) {
    const int32_t number = !g_.asynchronous[source]  ? 3 * target + 2
                           : g_.asynchronous[target] ? 3 * source
                                                     : 3 * source + 1;
    Stream& stream = streams_[number];
    if (stream.first == kNone) {
      stream.first = stream.last = index;
      AwaitFirst(number);
    } else {
      stream.last = copies_[stream.last].next = index;
    }
  }

  void AwaitFirst(int32_t number) {
    const Stream& stream = streams_[number];
    events_.Push(std::max(copies_[stream.first].start_s, stream.free_s),
                 EventItem(kStream, 0, number));
  }

  const Graph& g_;
  EventQueue& events_;
  Memory& memory_;
  Units& units_;
  Schedule* schedule_ = nullptr;
  int32_t num_copies_ = 0;
  Vector<Copy> copies_;
  Vector<int32_t> free_;
  Vector<double> channel_free_;  // [channels]
  Vector<Lane> lanes_;           // [D, D, 2]
  Vector<Stream> streams_;       // [D, 3]
};

}  // namespace gdp

#endif  // GDP_GRAPPLER_EVALUATION_SIMULATOR_COPIES_H_

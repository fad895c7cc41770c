// Streams as timelines, and everything that happens on them.
//
// Every duration is prescribed and whatever an item waits for has been enqueued
// before it. So its end is known when it is enqueued: no thread works off a
// stream, and nothing but TensorFlow decides what is enqueued when.

#ifndef GDP_GRAPPLER_EVALUATION_EMULATION_TIMELINES_H_
#define GDP_GRAPPLER_EVALUATION_EMULATION_TIMELINES_H_

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "gdp_grappler/evaluation/emulation/clock.h"

// By this name TensorFlow knows it.
struct SP_Stream_st {
  int64_t device, number;
  int64_t tail_ns;  // When all that has been enqueued will have ended.
};

namespace gdp {

constexpr int64_t kNobody = -1;
constexpr double kNanoseconds = 1e9;  // In a second.

inline int64_t NowNs() { return TheClock().NowNs(); }

enum class Kind : int64_t { kKernel, kCopy, kWait };

// What happened; read by Python as a row of int64.
struct Record {
  Kind kind;
  int64_t device;  // Of the kernel or the waiting stream; the copy's sender.
  int64_t peer;    // The copy's receiver; the stream waited for.
  int64_t stream;  // Its number; kNobody on the host.
  int64_t op;      // The kernel; the one whose output is copied.
  int64_t bytes;   // Of a copy.
  int64_t enqueued_ns, start_ns, end_ns;
};

using Stream = SP_Stream_st;

// What an op takes on a device.
struct Cost {
  int64_t duration_ns;
  int64_t workspace_bytes;
};

struct Link {
  double latency_ns;
  double ns_per_byte;
};

// What the host takes for a GPU beyond what TensorFlow itself does here.
struct HostTime {
  int64_t dispatch_ns;  // Of an op.
  int64_t callback_ns;  // From the end of a copy to who waits for it.
};

// The GPUs of this process, numbered from 0, and the host after the last one.
// All methods may be called from several threads.
class Machine {
 public:
  // Before TensorFlow asks for devices.
  void SetDevices(const int64_t* memory_bytes, int64_t num_gpus,
                  int64_t host_slots) {
    memory_bytes_.assign(memory_bytes, memory_bytes + num_gpus);
    slot_free_ns_.assign(host_slots, 0);
  }

  // Costs [N, D] and links [D, D] of the steps to come.
  void SetCosts(std::vector<Cost> costs, std::vector<Link> links) {
    std::lock_guard<std::mutex> lock(mutex_);
    costs_ = std::move(costs);
    links_ = std::move(links);
    out_of_memory_ = false;
  }

  // Once an op has not got its memory the step is lost. TensorFlow lets every
  // further op wait ten seconds for some; so nobody asks any more.
  void LoseStep() { out_of_memory_ = true; }
  bool step_is_lost() const { return out_of_memory_; }

  void SetHostTimes(std::vector<HostTime> times) {
    std::lock_guard<std::mutex> lock(mutex_);
    host_times_ = std::move(times);
  }

  HostTime HostTimeOf(int64_t gpu) {
    std::lock_guard<std::mutex> lock(mutex_);
    return host_times_.empty() ? HostTime{0, 0} : host_times_[gpu];
  }

  int64_t num_gpus() const { return memory_bytes_.size(); }
  int64_t host() const { return num_gpus(); }
  int64_t memory_bytes(int64_t gpu) const { return memory_bytes_[gpu]; }

  Cost CostOf(int64_t op, int64_t device) {
    std::lock_guard<std::mutex> lock(mutex_);
    return costs_[op * (num_gpus() + 1) + device];
  }

  Stream* NewStream(int64_t device) {
    std::lock_guard<std::mutex> lock(mutex_);
    streams_.push_back(new Stream{device, num_streams_++, 0});
    return streams_.back();
  }

  void DeleteStream(Stream* stream) {
    std::lock_guard<std::mutex> lock(mutex_);
    streams_.erase(std::find(streams_.begin(), streams_.end(), stream));
    delete stream;
  }

  int64_t Tail(const Stream* stream) {
    std::lock_guard<std::mutex> lock(mutex_);
    return stream->tail_ns;
  }

  // When all streams of a device will have ended.
  int64_t TailOfDevice(int64_t device) {
    std::lock_guard<std::mutex> lock(mutex_);
    int64_t tail_ns = 0;
    for (const Stream* stream : streams_) {
      if (stream->device == device)
        tail_ns = std::max(tail_ns, stream->tail_ns);
    }
    return tail_ns;
  }

  void WaitFor(Stream* stream, const Stream* other) {
    std::lock_guard<std::mutex> lock(mutex_);
    stream->tail_ns = std::max(stream->tail_ns, other->tail_ns);
    const int64_t now_ns = NowNs();
    records_.push_back({Kind::kWait, stream->device, other->number,
                        stream->number, kNobody, 0, now_ns, now_ns,
                        stream->tail_ns});
  }

  void WaitUntil(Stream* stream, int64_t moment_ns) {
    std::lock_guard<std::mutex> lock(mutex_);
    stream->tail_ns = std::max(stream->tail_ns, moment_ns);
  }

  void EnqueueKernel(Stream* stream, int64_t op, int64_t duration_ns) {
    std::lock_guard<std::mutex> lock(mutex_);
    Enqueue(stream, duration_ns,
            {Kind::kKernel, stream->device, kNobody, stream->number, op, 0});
  }

  // A copy on a stream of its sender or its receiver.
  void EnqueueCopy(Stream* stream, const void* from, const void* to,
                   int64_t bytes) {
    std::lock_guard<std::mutex> lock(mutex_);
    const int64_t source = OwnerOf(from), target = OwnerOf(to);
    const Link& link = links_[source * (num_gpus() + 1) + target];
    const auto writer = writers_.find(from);
    const int64_t op = writer == writers_.end() ? kNobody : writer->second;
    writers_[to] = op;
    Enqueue(stream, std::llround(link.latency_ns + bytes * link.ns_per_byte),
            {Kind::kCopy, source, target, stream->number, op, bytes});
  }

  // Takes the slot of the host that is free first; returns when it is done.
  int64_t EnqueueOnHost(int64_t op, int64_t duration_ns) {
    std::lock_guard<std::mutex> lock(mutex_);
    int64_t& free_ns =
        *std::min_element(slot_free_ns_.begin(), slot_free_ns_.end());
    const int64_t now_ns = NowNs();
    const int64_t start_ns = std::max(now_ns, free_ns);
    free_ns = start_ns + duration_ns;
    records_.push_back({Kind::kKernel, host(), kNobody, kNobody, op, 0, now_ns,
                        start_ns, free_ns});
    return free_ns;
  }

  // Remembers who writes to a place, to tell copies apart.
  void SetWriter(const void* place, int64_t op) {
    std::lock_guard<std::mutex> lock(mutex_);
    writers_[place] = op;
  }

  void AddMemory(const void* begin, int64_t bytes, int64_t device) {
    std::lock_guard<std::mutex> lock(mutex_);
    regions_[begin] = {bytes, device};
  }

  void RemoveMemory(const void* begin) {
    std::lock_guard<std::mutex> lock(mutex_);
    regions_.erase(begin);
  }

  // Forgets the last step.
  void Clear() {
    std::lock_guard<std::mutex> lock(mutex_);
    records_.clear();
    writers_.clear();
    std::fill(slot_free_ns_.begin(), slot_free_ns_.end(), 0);
  }

  std::vector<Record> records() {
    std::lock_guard<std::mutex> lock(mutex_);
    return records_;
  }

 private:
  struct Region {
    int64_t bytes, device;
  };

  // The GPU whose memory this is; the host if it is none's.
  int64_t OwnerOf(const void* place) const {
    auto region = regions_.upper_bound(place);
    if (region == regions_.begin()) return host();
    --region;
    const char* end =
        static_cast<const char*>(region->first) + region->second.bytes;
    return place < end ? region->second.device : host();
  }

  void Enqueue(Stream* stream, int64_t duration_ns, Record record) {
    record.enqueued_ns = NowNs();
    record.start_ns = std::max(record.enqueued_ns, stream->tail_ns);
    record.end_ns = stream->tail_ns = record.start_ns + duration_ns;
    records_.push_back(record);
  }

  std::mutex mutex_;
  std::atomic<bool> out_of_memory_{false};
  std::vector<int64_t> memory_bytes_;  // [GPUs]
  std::vector<int64_t> slot_free_ns_;  // [slots of the host]
  std::vector<Cost> costs_;            // [N, D]
  std::vector<Link> links_;            // [D, D]
  std::vector<HostTime> host_times_;   // [GPUs]
  std::vector<Stream*> streams_;
  std::vector<Record> records_;
  std::map<const void*, Region> regions_;
  std::unordered_map<const void*, int64_t> writers_;
  int64_t num_streams_ = 0;
};

// The one of this process: TensorFlow's C interfaces hand no context around.
Machine& TheMachine();

}  // namespace gdp

#endif  // GDP_GRAPPLER_EVALUATION_EMULATION_TIMELINES_H_

// Streams as timelines, and everything that happens on them.
//
// Every duration is prescribed and whatever an item waits for has been enqueued
// before it. So the end of a kernel is known when it is enqueued: no thread
// works off a stream, and nothing but TensorFlow decides what is enqueued when.
// Copies share wires, which serve them in the order in which they could start;
// so a copy gets its times at that moment.

#ifndef GDP_GRAPPLER_EVALUATION_EMULATION_TIMELINES_H_
#define GDP_GRAPPLER_EVALUATION_EMULATION_TIMELINES_H_

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gdp_grappler/evaluation/emulation/clock.h"

namespace gdp {

// Told when something has ended: the moment.
using Ended = std::function<void(int64_t)>;

// A copy that has not got its times yet.
struct Waiting {
  int64_t earliest_ns;  // What it waits for has ended then.
  int64_t link;
  int64_t bytes;
  size_t record;                                     // Where its times go.
  std::vector<std::pair<const void*, Ended>> ended;  // By who wants to know.
};

}  // namespace gdp

// By this name TensorFlow knows it.
struct SP_Stream_st {
  int64_t device, number;
  int64_t tail_ns;      // When all items that have their times will have ended.
  int64_t earliest_ns;  // When items to come may start.
  bool computes;        // It has had kernels.
  bool sends;           // It has had copies to GPUs.
  std::deque<gdp::Waiting> waiting;  // After all others.
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

// How often an op runs in a step, kernels that it launches then, and
// thousandths of a dispatch that the host does beyond that.
struct Launches {
  int64_t runs, kernels, work;
};

struct Link {
  double latency_ns;
  double ns_per_byte;
  std::vector<int64_t> channels;  // Each carries one copy at a time.
};

// What the host and the driver take for a GPU beyond what TensorFlow itself
// does here; see `cluster.Device`.
struct HostTime {
  int64_t dispatch_ns, visit_ns, copy_dispatch_ns, lock_ns, gap_ns, switch_ns,
      callback_ns, poll_ns;
  int64_t first_look_ns;  // From the issue of a copy to the event manager's.
  int64_t context;
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
  void SetCosts(std::vector<Cost> costs, std::vector<Link> links,
                int64_t num_channels) {
    std::lock_guard<std::mutex> lock(mutex_);
    costs_ = std::move(costs);
    links_ = std::move(links);
    channel_free_ns_.assign(num_channels, 0);
    out_of_memory_ = false;
  }

  // Once an op has not got its memory the step is lost. TensorFlow lets every
  // further op wait ten seconds for some; so nobody asks any more.
  void LoseStep() { out_of_memory_ = true; }
  bool step_is_lost() const { return out_of_memory_; }

  void SetHostTimes(std::vector<HostTime> times) {
    std::lock_guard<std::mutex> lock(mutex_);
    host_times_ = std::move(times);
    lock_free_ns_.assign(host_times_.size(), 0);
    fed_ns_.assign(num_gpus(), 0);
  }

  void SetLaunches(std::vector<Launches> launches) {
    std::lock_guard<std::mutex> lock(mutex_);
    launches_ = std::move(launches);
  }

  HostTime HostTimeOf(int64_t gpu) {
    std::lock_guard<std::mutex> lock(mutex_);
    return HostTimeUnlocked(gpu);
  }

  // When a thread that takes up an op now has dispatched it.
  int64_t EndOfDispatch(int64_t gpu, int64_t op) {
    std::lock_guard<std::mutex> lock(mutex_);
    const HostTime host = HostTimeUnlocked(gpu);
    const Launches& launches = launches_[op];
    if (costs_[op * (num_gpus() + 1) + gpu].duration_ns == 0) {
      return NowNs() + launches.runs * host.visit_ns;
    }
    const int64_t prepared_ns =
        launches.runs * (host.dispatch_ns - host.lock_ns) +
        launches.work * host.dispatch_ns / 1000;
    int64_t& fed_ns = fed_ns_[gpu];
    fed_ns = Lock(host, std::max(NowNs(), fed_ns) + prepared_ns,
                  launches.kernels * host.lock_ns);
    return fed_ns;
  }

  // When a thread that issues a copy has done so. It holds the lock of the
  // context for the same share of this time as of a launch.
  int64_t EndOfIssue(int64_t gpu) {
    std::lock_guard<std::mutex> lock(mutex_);
    const HostTime host = HostTimeUnlocked(gpu);
    const int64_t held_ns =
        host.dispatch_ns > 0
            ? host.copy_dispatch_ns * host.lock_ns / host.dispatch_ns
            : 0;
    return Lock(host, NowNs() + host.copy_dispatch_ns - held_ns, held_ns);
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
    streams_.push_back(
        new Stream{device, num_streams_++, 0, 0, false, false, {}});
    return streams_.back();
  }

  void DeleteStream(Stream* stream) {
    std::lock_guard<std::mutex> lock(mutex_);
    streams_.erase(std::find(streams_.begin(), streams_.end(), stream));
    delete stream;
  }

  // Returns when all that is on a stream has ended.
  void Await(const Stream* stream) {
    std::unique_lock<std::mutex> lock(mutex_);
    settled_.wait(lock, [stream] { return stream->waiting.empty(); });
    const int64_t moment_ns = NextMoment(*stream);
    lock.unlock();
    TheClock().WaitUntil(moment_ns);
  }

  void AwaitDevice(int64_t device) {
    std::vector<const Stream*> streams;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      for (const Stream* stream : streams_) {
        if (stream->device == device) streams.push_back(stream);
      }
    }
    for (const Stream* stream : streams) Await(stream);
  }

  void WaitFor(Stream* stream, Stream* other) {
    std::lock_guard<std::mutex> lock(mutex_);
    // TensorFlow lets nothing wait for a stream of copies.
    while (!other->waiting.empty()) Settle(other);
    WaitUntil(stream, NextMoment(*other));
    const int64_t now_ns = NowNs();
    records_.push_back({Kind::kWait, stream->device, other->number,
                        stream->number, kNobody, 0, now_ns, now_ns,
                        std::max(stream->tail_ns, stream->earliest_ns)});
  }

  // What is enqueued from now on starts no sooner.
  void StartNoSooner(Stream* stream, int64_t moment_ns) {
    std::lock_guard<std::mutex> lock(mutex_);
    WaitUntil(stream, moment_ns);
  }

  // When all that is on a stream will have ended. If that is not known yet,
  // `kUnknown`, and `ended` is called once it is, unless it is forgotten.
  int64_t WhenEnded(Stream* stream, const void* who, Ended ended) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (stream->waiting.empty()) return NextMoment(*stream);
    const int64_t earliest_ns = stream->earliest_ns;
    stream->waiting.back().ended.emplace_back(
        who, [earliest_ns, ended = std::move(ended)](int64_t end_ns) {
          ended(std::max(end_ns, earliest_ns));
        });
    return kUnknown;
  }

  void Forget(const void* who) {
    std::lock_guard<std::mutex> lock(mutex_);
    for (Stream* stream : streams_) {
      for (Waiting& copy : stream->waiting) {
        auto& ended = copy.ended;
        ended.erase(
            std::remove_if(ended.begin(), ended.end(),
                           [who](const auto& one) { return one.first == who; }),
            ended.end());
      }
    }
  }

  void EnqueueKernel(Stream* stream, int64_t op, int64_t duration_ns) {
    std::lock_guard<std::mutex> lock(mutex_);
    const int64_t now_ns = NowNs();
    int64_t start_ns = std::max(now_ns, NextMoment(*stream));
    int64_t filled_ns = duration_ns;
    if (duration_ns > 0) {
      const int64_t gap_ns = GapUnlocked(*stream, now_ns);
      if (stream->computes) {
        start_ns = std::max(start_ns, stream->tail_ns + gap_ns);
      }
      filled_ns += (launches_[op].runs - 1) * gap_ns;
      stream->computes = true;
    }
    stream->tail_ns = start_ns + filled_ns;
    records_.push_back({Kind::kKernel, stream->device, kNobody, stream->number,
                        op, 0, now_ns, start_ns, stream->tail_ns});
  }

  // A copy on a stream of its sender, or from the host on its receiver's.
  void EnqueueCopy(Stream* stream, const void* from, const void* to,
                   int64_t bytes, bool from_host) {
    std::lock_guard<std::mutex> lock(mutex_);
    // Variables lie nowhere, and so their reads do.
    const int64_t source = from_host ? host() : stream->device;
    const int64_t target = OwnerOf(to);
    const auto writer = writers_.find(from);
    const int64_t op = writer == writers_.end() ? kNobody : writer->second;
    writers_[to] = op;
    stream->sends |= !from_host && target != host();
    const int64_t now_ns = NowNs();
    const int64_t earliest_ns = std::max(now_ns, stream->earliest_ns);
    stream->waiting.push_back({earliest_ns,
                               source * (num_gpus() + 1) + target,
                               bytes,
                               records_.size(),
                               {}});
    records_.push_back({Kind::kCopy, source, target, stream->number, op, bytes,
                        now_ns, kUnknown, kUnknown});
    if (stream->waiting.size() == 1) SettleInTime(stream);
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
    std::fill(lock_free_ns_.begin(), lock_free_ns_.end(), 0);
    std::fill(fed_ns_.begin(), fed_ns_.end(), 0);
    for (Stream* stream : streams_) stream->computes = stream->sends = false;
  }

  std::vector<Record> records() {
    std::lock_guard<std::mutex> lock(mutex_);
    return records_;
  }

 private:
  struct Region {
    int64_t bytes, device;
  };

  HostTime HostTimeUnlocked(int64_t gpu) const {
    return host_times_.empty() ? HostTime{} : host_times_[gpu];
  }

  // Takes the lock of a context for so long, from `wanted_ns` on; returns when
  // it is let go of.
  int64_t Lock(const HostTime& host, int64_t wanted_ns, int64_t held_ns) {
    if (held_ns == 0) return wanted_ns;
    int64_t& free_ns = lock_free_ns_[host.context];
    free_ns = std::max(wanted_ns, free_ns) + held_ns;
    return free_ns;
  }

  // Between two kernels of a stream: what else its card has to do lengthens it.
  int64_t GapUnlocked(const Stream& stream, int64_t now_ns) const {
    const HostTime host = HostTimeUnlocked(stream.device);
    int64_t others = 0;
    for (const Stream* other : streams_) {
      if (other == &stream || !(other->computes || other->sends) ||
          HostTimeUnlocked(other->device).context != host.context) {
        continue;
      }
      others += !other->waiting.empty() || other->tail_ns > now_ns;
    }
    return host.gap_ns + others * (SharesContext(host) ? host.switch_ns : 0);
  }

  bool SharesContext(const HostTime& host) const {
    return std::count_if(host_times_.begin(), host_times_.end(),
                         [&host](const HostTime& other) {
                           return other.context == host.context;
                         }) > 1;
  }

  // The GPU whose memory this is; the host if it is none's.
  int64_t OwnerOf(const void* place) const {
    auto region = regions_.upper_bound(place);
    if (region == regions_.begin()) return host();
    --region;
    const char* end =
        static_cast<const char*>(region->first) + region->second.bytes;
    return place < end ? region->second.device : host();
  }

  // When the first item without times may start, or one to come.
  static int64_t NextMoment(const Stream& stream) {
    return std::max(stream.tail_ns, stream.waiting.empty()
                                        ? stream.earliest_ns
                                        : stream.waiting.front().earliest_ns);
  }

  static void WaitUntil(Stream* stream, int64_t moment_ns) {
    stream->earliest_ns = std::max(stream->earliest_ns, moment_ns);
  }

  // Gives the first copy its times when it could start.
  void SettleInTime(Stream* stream) {
    const size_t record = stream->waiting.front().record;
    TheClock().At(NextMoment(*stream), [this, stream, record] {
      std::lock_guard<std::mutex> lock(mutex_);
      const bool there =
          std::find(streams_.begin(), streams_.end(), stream) != streams_.end();
      // Somebody may have been faster.
      if (!there || stream->waiting.empty() ||
          stream->waiting.front().record != record) {
        return;
      }
      Settle(stream);
      if (!stream->waiting.empty()) SettleInTime(stream);
    });
  }

  // Gives the first copy its times: as soon as all its channels are free.
  void Settle(Stream* stream) {
    int64_t start_ns = NextMoment(*stream);
    const Waiting copy = std::move(stream->waiting.front());
    stream->waiting.pop_front();
    const Link& link = links_[copy.link];
    for (const int64_t channel : link.channels) {
      start_ns = std::max(start_ns, channel_free_ns_[channel]);
    }
    const int64_t end_ns =
        start_ns +
        std::llround(link.latency_ns + copy.bytes * link.ns_per_byte);
    for (const int64_t channel : link.channels) {
      channel_free_ns_[channel] = end_ns;
    }
    stream->tail_ns = end_ns;
    if (copy.record < records_.size()) {
      records_[copy.record].start_ns = start_ns;
      records_[copy.record].end_ns = end_ns;
    }
    for (const auto& [who, ended] : copy.ended) ended(end_ns);
    settled_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable settled_;  // A copy has got its times.
  std::atomic<bool> out_of_memory_{false};
  std::vector<int64_t> memory_bytes_;     // [GPUs]
  std::vector<int64_t> slot_free_ns_;     // [slots of the host]
  std::vector<Cost> costs_;               // [N, D]
  std::vector<Link> links_;               // [D, D]
  std::vector<int64_t> channel_free_ns_;  // [channels]
  std::vector<HostTime> host_times_;      // [GPUs]
  std::vector<int64_t> lock_free_ns_;     // [contexts], at most GPUs
  std::vector<int64_t> fed_ns_;           // [GPUs] until the last launch
  std::vector<Launches> launches_;        // [N]
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

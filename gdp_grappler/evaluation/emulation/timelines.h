// The streams of emulated GPUs, and the times of all items on them.
//
// Every duration is prescribed, and all items for which an item waits have been
// enqueued before it. So the end of a kernel is known when the kernel is
// enqueued. No thread works off a stream, and TensorFlow alone decides the
// order and the times at which items are enqueued. Copies share links, which
// serve copies in the order in which they could start. So a copy gets its times
// at the moment at which it could start.

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
#include <numeric>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gdp_grappler/evaluation/emulation/clock.h"

namespace gdp {

// A function that is called with the moment at which something has ended.
using Ended = std::function<void(int64_t)>;

// A copy that does not have its times yet.
struct Waiting {
  int64_t earliest_ns;  // End of all items for which the copy waits.
  int64_t link;
  int64_t bytes;
  size_t record;  // Index of the record for its times.
  // Owners, each with the function to call when the copy has an end.
  std::vector<std::pair<const void*, Ended>> ended;
};

}  // namespace gdp

// TensorFlow's C interface prescribes this name.
struct SP_Stream_st {
  int64_t device, number;
  int64_t tail_ns;      // End of all items that have their times.
  int64_t earliest_ns;  // Earliest start of items to come.
  bool computes;        // Whether it has had kernels in this step.
  bool sends;           // Whether it has had copies to GPUs in this step.
  // Copies without times, which come after all items with times.
  std::deque<gdp::Waiting> waiting;
};

namespace gdp {

constexpr int64_t kNobody = -1;
constexpr double kNanoseconds = 1e9;  // Nanoseconds per second.

inline int64_t NowNs() { return TheClock().NowNs(); }

enum class Kind : int64_t { kKernel, kCopy };

// An event of a step. Python reads it as a row of int64.
struct Record {
  Kind kind;
  int64_t device;  // Device of a kernel; sender of a copy.
  int64_t peer;    // Receiver of a copy.
  int64_t stream;  // Number of the stream; kNobody on the host.
  int64_t op;      // Op of a kernel; op whose output is copied.
  int64_t bytes;   // Size of a copy.
  int64_t enqueued_ns, start_ns, end_ns;
};

using Stream = SP_Stream_st;

// The costs of an op on a device.
struct Cost {
  int64_t duration_ns;
  int64_t workspace_bytes;
};

// Runs of an op in a step, kernels that it launches in a step, and further work
// of the host in thousandths of a dispatch.
struct Launches {
  int64_t runs, kernels, work;
};

struct Link {
  double latency_ns;
  double ns_per_byte;
  std::vector<int64_t> channels;  // A channel carries one copy at a time.
};

// Time of the host and the driver for a GPU; see `cluster.Device`.
struct HostTime {
  int64_t dispatch_ns, visit_ns, copy_dispatch_ns, lock_ns, gap_ns, switch_ns,
      callback_ns, poll_ns;
  int64_t first_look_ns;  // Issue of a copy to the event manager's first look.
  int64_t context;
};

// The GPUs of this process, numbered from 0, and the host after the last one.
// All methods may be called from several threads.
class Machine {
 public:
  // Has to be called before TensorFlow asks for devices.
  void SetDevices(const int64_t* memory_bytes, int64_t num_gpus,
                  int64_t host_slots) {
    memory_bytes_.assign(memory_bytes, memory_bytes + num_gpus);
    slot_free_ns_.assign(host_slots, 0);
  }

  // Sets costs [N, D] and links [D, D] of the next steps.
  void SetCosts(std::vector<Cost> costs, std::vector<Link> links,
                int64_t num_channels) {
    std::lock_guard<std::mutex> lock(mutex_);
    costs_ = std::move(costs);
    links_ = std::move(links);
    channel_free_ns_.assign(num_channels, 0);
    out_of_memory_ = false;
  }

  // If an op gets no memory, the step has failed. TensorFlow would wait ten
  // seconds for memory in every further op. So these ops do not ask for memory.
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

  // End of the dispatch of an op that a thread takes up now.
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

  // End of the issue of a copy that a thread takes up now. The thread holds the
  // context's lock for the same share of the time as in a launch.
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
  int64_t total_memory_bytes() const {
    return std::accumulate(memory_bytes_.begin(), memory_bytes_.end(),
                           int64_t{0});
  }

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

  // Blocks the thread until all items on a stream have ended.
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
    // TensorFlow never makes a stream wait for a copy stream, so settling the
    // copies early does no harm.
    while (!other->waiting.empty()) Settle(other);
    WaitUntil(stream, NextMoment(*other));
  }

  // Items that are enqueued from now on start at `moment_ns` at the earliest.
  void StartNoSooner(Stream* stream, int64_t moment_ns) {
    std::lock_guard<std::mutex> lock(mutex_);
    WaitUntil(stream, moment_ns);
  }

  // End of all items on a stream. If it is not known yet, returns `kUnknown`,
  // and calls `ended` when it is known, unless `Forget(who)` comes first.
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

  // Enqueues a copy on a stream of its sender, or a copy from the host on a
  // stream of its receiver.
  void EnqueueCopy(Stream* stream, const void* from, const void* to,
                   int64_t bytes, bool from_host) {
    std::lock_guard<std::mutex> lock(mutex_);
    // `from` does not tell the sender, because outputs of some ops, such as
    // reads of variables, have addresses without memory (`NowhereOf`).
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

  // Runs an op on the slot of the host that is free first. Returns its end.
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

  // Sets the op that writes to an address, so that copies get their op.
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

  // Removes all records and times of the last step.
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

  // Takes the lock of a context for `held_ns`, from `wanted_ns` on at the
  // earliest. Returns the moment of its release.
  int64_t Lock(const HostTime& host, int64_t wanted_ns, int64_t held_ns) {
    if (held_ns == 0) return wanted_ns;
    int64_t& free_ns = lock_free_ns_[host.context];
    free_ns = std::max(wanted_ns, free_ns) + held_ns;
    return free_ns;
  }

  // The gap between two kernels of a stream. Each other busy stream of its
  // context lengthens it.
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

  // The GPU whose memory contains an address; the host if there is none.
  int64_t OwnerOf(const void* place) const {
    auto region = regions_.upper_bound(place);
    if (region == regions_.begin()) return host();
    --region;
    const char* end =
        static_cast<const char*>(region->first) + region->second.bytes;
    return place < end ? region->second.device : host();
  }

  // Earliest start of the first item without times, or of the next item.
  static int64_t NextMoment(const Stream& stream) {
    return std::max(stream.tail_ns, stream.waiting.empty()
                                        ? stream.earliest_ns
                                        : stream.waiting.front().earliest_ns);
  }

  static void WaitUntil(Stream* stream, int64_t moment_ns) {
    stream->earliest_ns = std::max(stream->earliest_ns, moment_ns);
  }

  // Sets the times of the first copy at the moment at which it could start.
  void SettleInTime(Stream* stream) {
    const size_t record = stream->waiting.front().record;
    TheClock().At(NextMoment(*stream), [this, stream, record] {
      std::lock_guard<std::mutex> lock(mutex_);
      const bool there =
          std::find(streams_.begin(), streams_.end(), stream) != streams_.end();
      // `WaitFor` may have settled the copy in the meantime.
      if (!there || stream->waiting.empty() ||
          stream->waiting.front().record != record) {
        return;
      }
      Settle(stream);
      if (!stream->waiting.empty()) SettleInTime(stream);
    });
  }

  // Sets the times of the first copy: it starts when all its channels are free.
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
  std::condition_variable settled_;  // Notified when a copy gets its times.
  std::atomic<bool> out_of_memory_{false};
  std::vector<int64_t> memory_bytes_;     // [GPUs]
  std::vector<int64_t> slot_free_ns_;     // [slots of the host]
  std::vector<Cost> costs_;               // [N, D]
  std::vector<Link> links_;               // [D, D]
  std::vector<int64_t> channel_free_ns_;  // [channels]
  std::vector<HostTime> host_times_;      // [GPUs]
  std::vector<int64_t> lock_free_ns_;     // [contexts], at most GPUs
  std::vector<int64_t> fed_ns_;           // [GPUs] end of the last launch
  std::vector<Launches> launches_;        // [N]
  std::vector<Stream*> streams_;
  std::vector<Record> records_;
  std::map<const void*, Region> regions_;
  std::unordered_map<const void*, int64_t> writers_;
  int64_t num_streams_ = 0;
};

// The only machine of the process. It is global, because TensorFlow's C
// interfaces pass no context to the functions of a plugin.
Machine& TheMachine();

}  // namespace gdp

#endif  // GDP_GRAPPLER_EVALUATION_EMULATION_TIMELINES_H_

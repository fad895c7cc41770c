// The TensorFlow plugin of emulated GPUs, which a process loads by its path,
// and the functions by which Python describes the machine and reads the events.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "gdp_grappler/evaluation/emulation/kernel.h"
#include "gdp_grappler/evaluation/emulation/platform.h"
#include "gdp_grappler/evaluation/emulation/timelines.h"
#include "tensorflow/c/experimental/stream_executor/stream_executor.h"
#include "tensorflow/c/tf_status.h"

namespace gdp {

Machine& TheMachine() {
  // Never deleted: TensorFlow's threads outlive static objects.
  static Machine* const machine = new Machine;
  return *machine;
}

}  // namespace gdp

extern "C" {

void SE_InitPlugin(SE_PlatformRegistrationParams* params, TF_Status*) {
  gdp::RegisterPlatform(params);
}

void TF_InitKernel() { gdp::RegisterKernels(); }

// Sets the GPUs, `memory_bytes` [GPUs], and the slots of the host. Has to be
// called before TensorFlow loads the library.
void gdp_emulation_set_devices(const int64_t* memory_bytes, int64_t num_gpus,
                               int64_t host_slots) {
  gdp::TheMachine().SetDevices(memory_bytes, num_gpus, host_slots);
}

// Sets the costs of the next steps. The D devices are the GPUs, then the host.
//   seconds, workspace_bytes: [N, D]
//   latency_s, bytes_per_s: [D, D]
//   channels: [D, D, channels_per_link], -1 for none
//   time_scale: factor of all durations; 0 makes ops and copies take no time.
void gdp_emulation_set_costs(const double* seconds,
                             const int64_t* workspace_bytes, int64_t num_ops,
                             const double* latency_s, const double* bytes_per_s,
                             const int64_t* channels, int64_t channels_per_link,
                             int64_t num_channels, double time_scale) {
  const double scale = time_scale * gdp::kNanoseconds;
  const int64_t num_devices = gdp::TheMachine().num_gpus() + 1;
  std::vector<gdp::Cost> costs(num_ops * num_devices);
  for (size_t i = 0; i < costs.size(); ++i) {
    costs[i] = {std::llround(seconds[i] * scale), workspace_bytes[i]};
  }
  std::vector<gdp::Link> links(num_devices * num_devices);
  for (size_t i = 0; i < links.size(); ++i) {
    const int64_t* first = channels + i * channels_per_link;
    links[i] = {latency_s[i] * scale, scale / bytes_per_s[i], {}};
    for (int64_t c = 0; c < channels_per_link; ++c) {
      if (first[c] >= 0) links[i].channels.push_back(first[c]);
    }
  }
  gdp::TheMachine().SetCosts(std::move(costs), std::move(links), num_channels);
}

// Sets `Launches` of the ops, int64 [N, 3].
void gdp_emulation_set_launches(const int64_t* launches, int64_t num_ops) {
  std::vector<gdp::Launches> rows(num_ops);
  for (int64_t i = 0; i < num_ops; ++i) {
    rows[i] = {launches[3 * i], launches[3 * i + 1], launches[3 * i + 2]};
  }
  gdp::TheMachine().SetLaunches(std::move(rows));
}

// Sets `HostTime` of the GPUs: double [GPUs, 9], in the order of the fields,
// and contexts, int64 [GPUs].
void gdp_emulation_set_host_times(const double* seconds,
                                  const int64_t* contexts) {
  std::vector<gdp::HostTime> times(gdp::TheMachine().num_gpus());
  for (size_t i = 0; i < times.size(); ++i) {
    gdp::HostTime& time = times[i];
    for (int64_t* field :
         {&time.dispatch_ns, &time.visit_ns, &time.copy_dispatch_ns,
          &time.lock_ns, &time.gap_ns, &time.switch_ns, &time.callback_ns,
          &time.poll_ns, &time.first_look_ns}) {
      *field = std::llround(*seconds++ * gdp::kNanoseconds);
    }
    time.context = contexts[i];
  }
  gdp::TheMachine().SetHostTimes(std::move(times));
}

// Begins a step: removes all records. Returns the moment.
int64_t gdp_emulation_begin() {
  gdp::TheMachine().Clear();
  return gdp::NowNs();
}

int64_t gdp_emulation_num_records() {
  return static_cast<int64_t>(gdp::TheMachine().records().size());
}

// Copies at most `count` records to `rows`.
void gdp_emulation_read(int64_t* rows, int64_t count) {
  const std::vector<gdp::Record> records = gdp::TheMachine().records();
  const size_t size = std::min<size_t>(count, records.size());
  std::memcpy(rows, records.data(), size * sizeof(gdp::Record));
}

}  // extern "C"

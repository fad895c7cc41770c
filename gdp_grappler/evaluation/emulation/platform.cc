#include "gdp_grappler/evaluation/emulation/platform.h"

#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>

#include "gdp_grappler/evaluation/emulation/clock.h"
#include "gdp_grappler/evaluation/emulation/timelines.h"
#include "tensorflow/c/tf_status.h"

// TensorFlow's C interface prescribes these names.
struct SP_Event_st {
  std::atomic<int64_t> moment_ns;
  SP_Stream stream;     // Stream on which it was recorded last.
  int64_t recorded_ns;  // Moment of this record.
};

struct SP_Timer_st {
  int64_t start_ns, end_ns;
};

namespace gdp {
namespace {

constexpr size_t kHostAlignment = 64;
// Most emulated memory that the allocator takes in one piece. It uses 8 real
// bytes for every 256 bytes that it manages, so this is 1 GiB of real memory.
constexpr int64_t kMostInOnePiece = int64_t{32} << 30;

// --- Memory.

void Allocate(const SP_Device* device, uint64_t size, int64_t,
              SP_DeviceMemoryBase* memory) {
  void* place = mmap(nullptr, size, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  const bool failed = place == MAP_FAILED;
  memory->struct_size = SP_DEVICE_MEMORY_BASE_STRUCT_SIZE;
  memory->opaque = failed ? nullptr : place;
  memory->size = failed ? 0 : size;
  if (!failed) TheMachine().AddMemory(place, size, device->ordinal);
}

void Deallocate(const SP_Device*, SP_DeviceMemoryBase* memory) {
  if (memory->opaque == nullptr) return;
  TheMachine().RemoveMemory(memory->opaque);
  munmap(memory->opaque, memory->size);
  memory->opaque = nullptr;
  memory->size = 0;
}

void* AllocateOnHost(const SP_Device*, uint64_t size) {
  void* place = nullptr;
  return posix_memalign(&place, kHostAlignment, size) ? nullptr : place;
}

void DeallocateOnHost(const SP_Device*, void* place) { free(place); }

TF_Bool AllocatorStats(const SP_Device*, SP_AllocatorStats*) { return 0; }

TF_Bool MemoryUsage(const SP_Device* device, int64_t* free, int64_t* total) {
  *free = *total = TheMachine().memory_bytes(device->ordinal);
  return 1;
}

// --- Streams, events and timers.

void CreateStream(const SP_Device* device, SP_Stream* stream, TF_Status*) {
  *stream = TheMachine().NewStream(device->ordinal);
}

void DestroyStream(const SP_Device*, SP_Stream stream) {
  TheMachine().DeleteStream(stream);
}

void AddDependency(const SP_Device*, SP_Stream dependent, SP_Stream other,
                   TF_Status*) {
  // For each copy, TensorFlow makes the copy stream wait for kernels of its own
  // device, and then for kernels of the other device, if there is one. Only the
  // first call counts the issue of the copy.
  if (dependent->device == other->device) {
    TheClock().WaitUntil(TheMachine().EndOfIssue(dependent->device));
  }
  TheMachine().WaitFor(dependent, other);
}

void StreamStatus(const SP_Device*, SP_Stream, TF_Status* status) {
  TF_SetStatus(status, TF_OK, "");
}

void BlockForEvent(SP_Event event) {
  if (event->moment_ns == kUnknown) TheMachine().Await(event->stream);
  TheClock().WaitUntil(event->moment_ns);
}

void CreateEvent(const SP_Device*, SP_Event* event, TF_Status*) {
  *event = new SP_Event_st{0, nullptr, 0};
}

void DestroyEvent(const SP_Device*, SP_Event event) {
  TheMachine().Forget(event);
  TheClock().Forget(event);
  delete event;
}

// Time from the end of an event until the event manager reports it. The event
// manager looks soon after it has recorded the event, and then repeatedly.
int64_t HopNs(const gdp::HostTime& host, int64_t recorded_ns,
              int64_t moment_ns) {
  const bool at_first = moment_ns - recorded_ns <= host.first_look_ns;
  return host.callback_ns + (at_first ? 0 : host.poll_ns);
}

// Moment at which the event manager learns that an event has come; `kUnknown`
// if the moment of the event is not known.
int64_t Told(int64_t device, SP_Event event) {
  const int64_t moment_ns = event->moment_ns;
  return moment_ns == kUnknown
             ? kUnknown
             : moment_ns + HopNs(TheMachine().HostTimeOf(device),
                                 event->recorded_ns, moment_ns);
}

// The event manager asks this, and then runs its callbacks.
SE_EventStatus EventStatus(const SP_Device* device, SP_Event event) {
  return TheClock().HasCome(event, Told(device->ordinal, event))
             ? SE_EVENT_COMPLETE
             : SE_EVENT_PENDING;
}

void RecordEvent(const SP_Device* device, SP_Stream stream, SP_Event event,
                 TF_Status*) {
  TheMachine().Forget(event);
  TheClock().Recorded(event, stream);
  const gdp::HostTime host = TheMachine().HostTimeOf(device->ordinal);
  event->stream = stream;
  event->recorded_ns = NowNs();
  event->moment_ns = kUnknown;
  const int64_t moment_ns =
      TheMachine().WhenEnded(stream, event, [event, host](int64_t end_ns) {
        event->moment_ns = end_ns;
        TheClock().IsToCome(event,
                            end_ns + HopNs(host, event->recorded_ns, end_ns));
      });
  if (moment_ns != kUnknown) event->moment_ns = moment_ns;
}

void WaitForEvent(const SP_Device* const, SP_Stream stream, SP_Event event,
                  TF_Status* const) {
  BlockForEvent(event);
  TheMachine().StartNoSooner(stream, event->moment_ns);
}

void CreateTimer(const SP_Device*, SP_Timer* timer, TF_Status*) {
  *timer = new SP_Timer_st{0, 0};
}

void DestroyTimer(const SP_Device*, SP_Timer timer) { delete timer; }

// TensorFlow does not use timers of emulated GPUs.
void StartTimer(const SP_Device*, SP_Stream, SP_Timer timer, TF_Status*) {
  timer->start_ns = NowNs();
}

void StopTimer(const SP_Device*, SP_Stream, SP_Timer timer, TF_Status*) {
  timer->end_ns = NowNs();
}

uint64_t TimerNanoseconds(SP_Timer timer) {
  return timer->end_ns - timer->start_ns;
}

// --- Copies. They take time and move no data.

void CopyToHost(const SP_Device*, SP_Stream stream, void* target,
                const SP_DeviceMemoryBase* source, uint64_t size, TF_Status*) {
  TheMachine().EnqueueCopy(stream, source->opaque, target, size, false);
}

void CopyFromHost(const SP_Device*, SP_Stream stream,
                  SP_DeviceMemoryBase* target, const void* source,
                  uint64_t size, TF_Status*) {
  TheMachine().EnqueueCopy(stream, source, target->opaque, size, true);
}

void CopyToDevice(const SP_Device*, SP_Stream stream,
                  SP_DeviceMemoryBase* target,
                  const SP_DeviceMemoryBase* source, uint64_t size,
                  TF_Status*) {
  TheMachine().EnqueueCopy(stream, source->opaque, target->opaque, size, false);
}

void CopyToHostNow(const SP_Device*, void*, const SP_DeviceMemoryBase*,
                   uint64_t, TF_Status*) {}

void CopyFromHostNow(const SP_Device*, SP_DeviceMemoryBase*, const void*,
                     uint64_t, TF_Status*) {}

void CopyToDeviceNow(const SP_Device*, SP_DeviceMemoryBase*,
                     const SP_DeviceMemoryBase*, uint64_t, TF_Status*) {}

void SetZero(const SP_Device*, SP_Stream, SP_DeviceMemoryBase*, uint64_t,
             TF_Status*) {}

void SetBytes(const SP_Device*, SP_Stream, SP_DeviceMemoryBase*, uint8_t,
              uint64_t, TF_Status*) {}

void SetWords(const SP_Device*, SP_Stream, SP_DeviceMemoryBase*, uint32_t,
              uint64_t, TF_Status*) {}

// --- Waits of the host.

void BlockForEvent(const SP_Device*, SP_Event event, TF_Status*) {
  BlockForEvent(event);
}

void BlockForStream(const SP_Device*, SP_Stream stream, TF_Status*) {
  TheMachine().Await(stream);
}

void BlockForDevice(const SP_Device* device, TF_Status*) {
  TheMachine().AwaitDevice(device->ordinal);
}

TF_Bool CallBack(const SP_Device*, SP_Stream stream,
                 SE_StatusCallbackFn callback, void* argument) {
  const int64_t callback_ns =
      TheMachine().HostTimeOf(stream->device).callback_ns;
  const auto call = [callback, argument, callback_ns](int64_t end_ns) {
    TheClock().At(end_ns + callback_ns, [callback, argument] {
      TF_Status* status = TF_NewStatus();
      callback(argument, status);
      TF_DeleteStatus(status);
    });
  };
  const int64_t end_ns = TheMachine().WhenEnded(stream, nullptr, call);
  if (end_ns != kUnknown) call(end_ns);
  return 1;
}

// --- Devices.

void CountDevices(const SP_Platform*, int* count, TF_Status*) {
  *count = static_cast<int>(TheMachine().num_gpus());
}

void CreateDevice(const SP_Platform*, SE_CreateDeviceParams* params,
                  TF_Status*) {
  SP_Device* device = params->device;
  device->struct_size = SP_DEVICE_STRUCT_SIZE;
  device->device_handle = nullptr;
  device->ordinal = params->ordinal;
  device->hardware_name = "emulated GPU";
  device->device_vendor = "gdp-grappler";
  device->pci_bus_id = "0000:00:00.0";
}

void DestroyDevice(const SP_Platform*, SP_Device*) {}

int32_t NumaNode(const SP_Device*) { return 0; }

int64_t MemoryBandwidth(const SP_Device*) { return -1; }

double Gflops(const SP_Device*) { return -1; }

void CreateDeviceFns(const SP_Platform*, SE_CreateDeviceFnsParams* params,
                     TF_Status*) {
  params->device_fns->get_numa_node = NumaNode;
  params->device_fns->get_memory_bandwidth = MemoryBandwidth;
  params->device_fns->get_gflops = Gflops;
}

void DestroyDeviceFns(const SP_Platform*, SP_DeviceFns*) {}

void CreateStreamExecutor(const SP_Platform*,
                          SE_CreateStreamExecutorParams* params, TF_Status*) {
  SP_StreamExecutor* executor = params->stream_executor;
  executor->struct_size = SP_STREAMEXECUTOR_STRUCT_SIZE;
  executor->allocate = Allocate;
  executor->deallocate = Deallocate;
  executor->host_memory_allocate = AllocateOnHost;
  executor->host_memory_deallocate = DeallocateOnHost;
  executor->get_allocator_stats = AllocatorStats;
  executor->device_memory_usage = MemoryUsage;
  executor->create_stream = CreateStream;
  executor->destroy_stream = DestroyStream;
  executor->create_stream_dependency = AddDependency;
  executor->get_stream_status = StreamStatus;
  executor->create_event = CreateEvent;
  executor->destroy_event = DestroyEvent;
  executor->get_event_status = EventStatus;
  executor->record_event = RecordEvent;
  executor->wait_for_event = WaitForEvent;
  executor->create_timer = CreateTimer;
  executor->destroy_timer = DestroyTimer;
  executor->start_timer = StartTimer;
  executor->stop_timer = StopTimer;
  executor->memcpy_dtoh = CopyToHost;
  executor->memcpy_htod = CopyFromHost;
  executor->memcpy_dtod = CopyToDevice;
  executor->sync_memcpy_dtoh = CopyToHostNow;
  executor->sync_memcpy_htod = CopyFromHostNow;
  executor->sync_memcpy_dtod = CopyToDeviceNow;
  executor->block_host_for_event = BlockForEvent;
  executor->block_host_until_done = BlockForStream;
  executor->synchronize_all_activity = BlockForDevice;
  executor->mem_zero = SetZero;
  executor->memset = SetBytes;
  executor->memset32 = SetWords;
  executor->host_callback = CallBack;
}

void DestroyStreamExecutor(const SP_Platform*, SP_StreamExecutor*) {}

void CreateTimerFns(const SP_Platform*, SP_TimerFns* functions, TF_Status*) {
  functions->nanoseconds = TimerNanoseconds;
}

void DestroyTimerFns(const SP_Platform*, SP_TimerFns*) {}

void DestroyPlatform(SP_Platform*) {}

void DestroyPlatformFns(SP_PlatformFns*) {}

}  // namespace

void RegisterPlatform(SE_PlatformRegistrationParams* params) {
  SP_Platform* platform = params->platform;
  platform->struct_size = SP_PLATFORM_STRUCT_SIZE;
  platform->name = "GDP_EMULATED";
  platform->type = "GPU";
  platform->supports_unified_memory = 0;
  platform->use_bfc_allocator = 1;
  // On a card, TensorFlow takes all memory in one piece, unless a program says
  // otherwise. Memory that grows has pieces of 2, 4, 8, ... MiB, and no tensor
  // lies across two of them.
  platform->force_memory_growth =
      TheMachine().total_memory_bytes() > kMostInOnePiece;
  SP_PlatformFns* functions = params->platform_fns;
  functions->get_device_count = CountDevices;
  functions->create_device = CreateDevice;
  functions->destroy_device = DestroyDevice;
  functions->create_device_fns = CreateDeviceFns;
  functions->destroy_device_fns = DestroyDeviceFns;
  functions->create_stream_executor = CreateStreamExecutor;
  functions->destroy_stream_executor = DestroyStreamExecutor;
  functions->create_timer_fns = CreateTimerFns;
  functions->destroy_timer_fns = DestroyTimerFns;
  params->destroy_platform = DestroyPlatform;
  params->destroy_platform_fns = DestroyPlatformFns;
}

}  // namespace gdp

// Discrete-event simulation of one step of a placed graph.
//
// Plain C interface over arrays; no TensorFlow, no Python. The rules are stated
// in simulator.py, and tests/helpers/reference_simulator.py is the same machine
// written for the reader. This one is written for speed: everything that does
// not depend on the placement is laid out once, by topological position.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

namespace {

constexpr int32_t kNone = -1;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Results of the C functions.
enum Status : int32_t { kOk = 0, kOutOfMemory = 1 };

// A key first, then a tie-breaker; the smallest comes first.
struct Entry {
  double key;
  int64_t item;
  bool operator>(const Entry& other) const {
    return key != other.key ? key > other.key : item > other.item;
  }
};

class Queue {
 public:
  bool empty() const { return heap_.empty(); }
  const Entry& top() const { return heap_.front(); }
  void clear() { heap_.clear(); }

  void Push(double key, int64_t item) {
    heap_.push_back({key, item});
    std::push_heap(heap_.begin(), heap_.end(), std::greater<Entry>());
  }

  int64_t Pop() {
    const int64_t item = heap_.front().item;
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<Entry>());
    heap_.pop_back();
    return item;
  }

 private:
  std::vector<Entry> heap_;
};

// One tensor of an op, or (tensor == kNone) all its control edges.
struct Output {
  int64_t bytes;
  int32_t tensor;
  int32_t first_edge;  // Its edges end where the next output's begin.
};

struct Link {
  double latency_s;
  double bytes_per_s;
  int32_t channels[2];
};

// What a schedule reports of a transfer.
struct Transfer {
  int32_t tensor, op, source, target;
  double start_s, end_s;
};

struct MemoryPoint {
  double time_s;
  int64_t bytes;
  int32_t pool;
};

struct Schedule {
  std::vector<double> start_s, end_s;  // By topological position.
  std::vector<Transfer> transfers;
  std::vector<MemoryPoint> memory;
};

}  // namespace

// A graph on a cluster. Ops are numbered by topological position; edges are
// sorted by producer, then tensor (control edges last), then as in the graph.
struct GdpSimulator {
  int32_t num_ops, num_devices, num_edges, num_groups, num_pools, num_units,
      num_channels;
  std::vector<int32_t> order;          // [N] position -> op of the graph.
  std::vector<int32_t> group;          // [N]
  std::vector<uint8_t> allowed;        // [G, D]
  std::vector<double> seconds;         // [N, D]
  std::vector<int64_t> param_bytes;    // [N]
  std::vector<uint8_t> alias;          // [N]
  std::vector<int32_t> num_inputs;     // [N] edges that must arrive.
  std::vector<int32_t> first_output;   // [N + 1]
  std::vector<Output> outputs;         // [O + 1]
  std::vector<int32_t> edge_target;    // [E]
  std::vector<int32_t> first_input;    // [N + 1]
  std::vector<int32_t> input_edge;     // Data edges by consumer.
  std::vector<int32_t> unit, pool;     // [D]
  std::vector<Link> links;             // [D, D]

  std::mutex mutex;  // Guards `idle`.
  std::vector<std::unique_ptr<class Machine>> idle;
};

// The state of one simulated step; used again for the next one.
class Machine {
 public:
  explicit Machine(const GdpSimulator& graph)
      : g_(graph),
        device_(graph.num_ops),
        group_device_(graph.num_groups),
        waiting_(graph.num_ops),
        edge_buffer_(graph.num_edges),
        ready_(graph.num_units),
        busy_(graph.num_units),
        channel_free_(graph.num_channels),
        lanes_(2 * graph.num_devices * graph.num_devices),
        copy_on_(graph.num_devices),
        live_(graph.num_pools),
        reported_(graph.num_pools) {}

  // Simulates `devices` [N], which take infinitely long if they are not legal.
  // `peak` [P]; `schedule` may be null.
  void Run(const int32_t* devices, double* step_time, int64_t* peak,
           Schedule* schedule) {
    std::fill(peak, peak + g_.num_pools, 0);
    *step_time = kInfinity;
    if (!ReadPlacement(devices)) return;
    Reset(schedule);
    for (int32_t op = 0; op < g_.num_ops; ++op) {
      live_[g_.pool[device_[op]]] += g_.param_bytes[op];
      if (waiting_[op] == 0) Enqueue(op);
    }
    StartOps();
    while (true) {
      // Ops of no duration end at the time they start: another round.
      while (!events_.empty() && events_.top().key == now_) {
        while (!events_.empty() && events_.top().key == now_) {
          Handle(events_.Pop());
        }
        StartOps();
      }
      SettleMemory(peak);
      if (events_.empty()) break;
      now_ = events_.top().key;
    }
    *step_time = now_;
  }

 private:
  // A transfer of a tensor, or a message, to another device.
  struct Copy {
    double start_s, end_s;
    int32_t output;
    int32_t source_buffer;
    int32_t buffer;
    int32_t next;  // In its lane.
  };

  // The copies of one link, or its messages, that have not ended. They start
  // and end one after the other, so that only the first one has an event.
  struct Lane {
    int32_t first = kNone, last = kNone;
    bool started = false;
  };

  // Memory that lives while somebody refers to it.
  struct Buffer {
    int64_t bytes;
    int32_t references;
    int32_t pool;
  };

  // False if a device is out of range, not allowed or splits a group.
  bool ReadPlacement(const int32_t* devices) {
    std::fill(group_device_.begin(), group_device_.end(), kNone);
    for (int32_t op = 0; op < g_.num_ops; ++op) {
      const int32_t device = devices[g_.order[op]];
      if (device < 0 || device >= g_.num_devices) return false;
      const int32_t group = g_.group[op];
      int32_t& chosen = group_device_[group];
      if (chosen == kNone) {
        if (!g_.allowed[int64_t{group} * g_.num_devices + device]) return false;
        chosen = device;
      }
      if (chosen != device) return false;
      device_[op] = device;
    }
    return true;
  }

  void Reset(Schedule* schedule) {
    now_ = 0;
    schedule_ = schedule;
    waiting_ = g_.num_inputs;
    events_.clear();
    copies_.clear();
    buffers_.clear();
    for (Queue& queue : ready_) queue.clear();
    std::fill(busy_.begin(), busy_.end(), 0);
    std::fill(channel_free_.begin(), channel_free_.end(), 0.0);
    std::fill(lanes_.begin(), lanes_.end(), Lane());
    std::fill(copy_on_.begin(), copy_on_.end(), std::make_pair(kNone, kNone));
    std::fill(live_.begin(), live_.end(), 0);
    std::fill(reported_.begin(), reported_.end(), -1);
    own_buffer_.assign(g_.outputs.size(), kNone);
    if (schedule) {
      schedule->start_s.assign(g_.num_ops, 0.0);
      schedule->end_s.assign(g_.num_ops, 0.0);
    }
  }

  // An event is op `item` ending, or something in lane item - N. Ops that end
  // at one time come in topological order.
  void Handle(int64_t item) {
    if (item < g_.num_ops) {
      FinishOp(static_cast<int32_t>(item));
      return;
    }
    const int32_t index = static_cast<int32_t>(item - g_.num_ops);
    Lane& lane = lanes_[index];
    if (lane.started) {
      FinishCopy(copies_[lane.first], LaneTarget(index));
      lane.first = copies_[lane.first].next;
      lane.started = false;
    }
    if (lane.first != kNone) AdvanceLane(index);
  }

  // Starts the first copy of a lane if it is time; awaits what comes next.
  void AdvanceLane(int32_t index) {
    Lane& lane = lanes_[index];
    const Copy& copy = copies_[lane.first];
    lane.started = copy.start_s <= now_;
    if (lane.started && copy.buffer != kNone) Occupy(copy.buffer);
    events_.Push(lane.started ? copy.end_s : copy.start_s,
                 int64_t{g_.num_ops} + index);
  }

  // Lanes are [D, D, 2]: source, target, and whether messages.
  int32_t LaneTarget(int32_t index) const {
    return index / 2 % g_.num_devices;
  }

  void StartOps() {
    // A unit in `touched_` became free or got something ready.
    for (const int32_t unit : touched_) {
      if (!busy_[unit] && !ready_[unit].empty()) {
        busy_[unit] = 1;
        StartOp(static_cast<int32_t>(ready_[unit].Pop()));
      }
    }
    touched_.clear();
  }

  void Enqueue(int32_t op) {
    const int32_t unit = g_.unit[device_[op]];
    ready_[unit].Push(now_, op);
    touched_.push_back(unit);
  }

  void StartOp(int32_t op) {
    const int32_t device = device_[op];
    const double end =
        now_ + g_.seconds[int64_t{op} * g_.num_devices + device];
    if (schedule_) {
      schedule_->start_s[op] = now_;
      schedule_->end_s[op] = end;
    }
    if (!g_.alias[op]) {
      for (int32_t o = g_.first_output[op]; o < g_.first_output[op + 1]; ++o) {
        if (g_.outputs[o].bytes == 0) continue;
        own_buffer_[o] = NewBuffer(g_.outputs[o].bytes, device, 1);
        Occupy(own_buffer_[o]);
      }
    }
    events_.Push(end, op);
  }

  void FinishOp(int32_t op) {
    const int32_t unit = g_.unit[device_[op]];
    busy_[unit] = 0;
    touched_.push_back(unit);
    const int32_t* input = g_.input_edge.data() + g_.first_input[op];
    const int32_t* inputs_end = g_.input_edge.data() + g_.first_input[op + 1];
    // An alias hands on the buffer of its first data input.
    const int32_t handed_on = g_.alias[op] && input != inputs_end
                                  ? edge_buffer_[*input] : kNone;
    for (int32_t o = g_.first_output[op]; o < g_.first_output[op + 1]; ++o) {
      const bool data = g_.outputs[o].tensor != kNone;
      Deliver(op, o, g_.alias[op] && data ? handed_on : own_buffer_[o]);
    }
    for (int32_t o = g_.first_output[op]; o < g_.first_output[op + 1]; ++o) {
      Release(own_buffer_[o]);
    }
    for (; input != inputs_end; ++input) Release(edge_buffer_[*input]);
  }

  // Gives an output to its consumers here, and sends it once to every other
  // device that has some.
  void Deliver(int32_t op, int32_t output, int32_t buffer) {
    const int32_t end = g_.outputs[output + 1].first_edge;
    for (int32_t e = g_.outputs[output].first_edge; e < end; ++e) {
      const int32_t consumer = g_.edge_target[e];
      const int32_t target = device_[consumer];
      if (target == device_[op]) {
        Retain(buffer);
        edge_buffer_[e] = buffer;
        Arrive(consumer);
        continue;
      }
      if (copy_on_[target].first != output) {
        copy_on_[target] = {output, Send(op, output, target, buffer)};
      }
      const int32_t copy_buffer = copies_[copy_on_[target].second].buffer;
      Retain(copy_buffer);
      edge_buffer_[e] = copy_buffer;
    }
  }

  // Requests a transfer. Channels serve in the order of requests, so that its
  // times are known at once.
  int32_t Send(int32_t op, int32_t output, int32_t target, int32_t buffer) {
    const int32_t source = device_[op];
    const Output& o = g_.outputs[output];
    const Link& link = g_.links[int64_t{source} * g_.num_devices + target];
    double start = now_;
    double end = start + link.latency_s;
    int32_t received = kNone;
    if (o.bytes > 0) {
      double& first = channel_free_[link.channels[0]];
      double& second = channel_free_[link.channels[1]];
      start = std::max({now_, first, second});
      const double bytes = static_cast<double>(o.bytes);
      end = start + (link.latency_s + bytes / link.bytes_per_s);
      first = second = end;
      received = NewBuffer(o.bytes, target, 0);
    }
    Retain(buffer);
    const int32_t index = static_cast<int32_t>(copies_.size());
    copies_.push_back({start, end, output, buffer, received, kNone});
    AppendToLane(2 * (source * g_.num_devices + target) + (o.bytes == 0),
                 index);
    if (schedule_) {
      schedule_->transfers.push_back(
          {o.tensor, g_.order[op], source, target, start, end});
    }
    return index;
  }

  void AppendToLane(int32_t index, int32_t copy) {
    Lane& lane = lanes_[index];
    if (lane.first == kNone) {
      lane.first = lane.last = copy;
      AdvanceLane(index);
    } else {
      lane.last = copies_[lane.last].next = copy;
    }
  }

  void FinishCopy(const Copy& copy, int32_t target) {
    const int32_t end = g_.outputs[copy.output + 1].first_edge;
    for (int32_t e = g_.outputs[copy.output].first_edge; e < end; ++e) {
      const int32_t consumer = g_.edge_target[e];
      if (device_[consumer] == target) Arrive(consumer);
    }
    Release(copy.source_buffer);
  }

  void Arrive(int32_t op) {
    if (--waiting_[op] == 0) Enqueue(op);
  }

  int32_t NewBuffer(int64_t bytes, int32_t device, int32_t references) {
    buffers_.push_back({bytes, references, g_.pool[device]});
    return static_cast<int32_t>(buffers_.size()) - 1;
  }

  void Occupy(int32_t buffer) {
    live_[buffers_[buffer].pool] += buffers_[buffer].bytes;
  }

  void Retain(int32_t buffer) {
    if (buffer != kNone) ++buffers_[buffer].references;
  }

  void Release(int32_t buffer) {
    if (buffer == kNone || --buffers_[buffer].references > 0) return;
    live_[buffers_[buffer].pool] -= buffers_[buffer].bytes;
  }

  // Looks at the memories once everything of one time has happened.
  void SettleMemory(int64_t* peak) {
    for (int32_t pool = 0; pool < g_.num_pools; ++pool) {
      peak[pool] = std::max(peak[pool], live_[pool]);
      if (schedule_ && live_[pool] != reported_[pool]) {
        schedule_->memory.push_back({now_, live_[pool], pool});
        reported_[pool] = live_[pool];
      }
    }
  }

  const GdpSimulator& g_;
  double now_ = 0;
  Schedule* schedule_ = nullptr;
  std::vector<int32_t> device_;        // [N]
  std::vector<int32_t> group_device_;  // [G]
  std::vector<int32_t> waiting_;       // [N] edges that have not arrived.
  std::vector<int32_t> edge_buffer_;   // [E] what the consumer reads.
  std::vector<int32_t> own_buffer_;    // [O + 1]
  std::vector<Buffer> buffers_;
  std::vector<Copy> copies_;
  std::vector<Queue> ready_;           // [units] by time, then position.
  std::vector<uint8_t> busy_;          // [units]
  std::vector<int32_t> touched_;
  std::vector<double> channel_free_;
  std::vector<Lane> lanes_;            // [D, D, 2]
  std::vector<std::pair<int32_t, int32_t>> copy_on_;  // [D] output, its copy.
  std::vector<int64_t> live_;          // [P]
  std::vector<int64_t> reported_;      // [P] what the curve said last.
  Queue events_;
};

namespace {

std::unique_ptr<Machine> TakeMachine(GdpSimulator* simulator) {
  {
    std::lock_guard<std::mutex> lock(simulator->mutex);
    if (!simulator->idle.empty()) {
      std::unique_ptr<Machine> machine = std::move(simulator->idle.back());
      simulator->idle.pop_back();
      return machine;
    }
  }
  return std::make_unique<Machine>(*simulator);
}

void GiveBack(GdpSimulator* simulator, std::unique_ptr<Machine> machine) {
  std::lock_guard<std::mutex> lock(simulator->mutex);
  simulator->idle.push_back(std::move(machine));
}

// Sorts edges into outputs and inputs. `position` [N] inverts `order`.
void LayOutEdges(GdpSimulator* s, const std::vector<int32_t>& position,
                 const int32_t* edges, const int32_t* edge_tensors,
                 int32_t num_tensors, const int32_t* tensor_ops,
                 const int64_t* tensor_bytes) {
  // Tensors by producer; a tensor keeps its place among its producer's.
  std::vector<int32_t> tensor_output(num_tensors), control_output(s->num_ops);
  std::vector<uint8_t> controls(s->num_ops, 0);
  for (int32_t e = 0; e < s->num_edges; ++e) {
    if (edge_tensors[e] < 0) controls[position[edges[2 * e]]] = 1;
  }
  s->first_output.assign(s->num_ops + 1, 0);
  for (int32_t t = 0; t < num_tensors; ++t) {
    ++s->first_output[position[tensor_ops[t]] + 1];
  }
  for (int32_t op = 0; op < s->num_ops; ++op) {
    s->first_output[op + 1] += s->first_output[op] + controls[op];
  }
  s->outputs.assign(s->first_output.back() + 1, Output{0, kNone, 0});
  std::vector<int32_t> next(s->first_output.begin(), s->first_output.end() - 1);
  for (int32_t t = 0; t < num_tensors; ++t) {
    const int32_t output = next[position[tensor_ops[t]]]++;
    s->outputs[output] = {tensor_bytes[t], t, 0};
    tensor_output[t] = output;
  }
  control_output = std::move(next);

  // A counting sort of the edges by output.
  std::vector<int32_t> edge_output(s->num_edges);
  for (int32_t e = 0; e < s->num_edges; ++e) {
    const int32_t tensor = edge_tensors[e];
    edge_output[e] = tensor < 0 ? control_output[position[edges[2 * e]]]
                                : tensor_output[tensor];
    ++s->outputs[edge_output[e] + 1].first_edge;
  }
  for (size_t o = 1; o < s->outputs.size(); ++o) {
    s->outputs[o].first_edge += s->outputs[o - 1].first_edge;
  }
  std::vector<int32_t> slot(s->outputs.size());
  for (size_t o = 0; o < slot.size(); ++o) slot[o] = s->outputs[o].first_edge;
  std::vector<int32_t> place(s->num_edges);
  s->edge_target.resize(s->num_edges);
  s->num_inputs.assign(s->num_ops, 0);
  s->first_input.assign(s->num_ops + 1, 0);
  for (int32_t e = 0; e < s->num_edges; ++e) {
    const int32_t consumer = position[edges[2 * e + 1]];
    place[e] = slot[edge_output[e]]++;
    s->edge_target[place[e]] = consumer;
    ++s->num_inputs[consumer];
    if (edge_tensors[e] >= 0) ++s->first_input[consumer + 1];
  }
  for (int32_t op = 0; op < s->num_ops; ++op) {
    s->first_input[op + 1] += s->first_input[op];
  }
  s->input_edge.resize(s->first_input.back());
  next.assign(s->first_input.begin(), s->first_input.end() - 1);
  for (int32_t e = 0; e < s->num_edges; ++e) {
    if (edge_tensors[e] < 0) continue;
    s->input_edge[next[position[edges[2 * e + 1]]]++] = place[e];
  }
}

}  // namespace

extern "C" {

// Sizes: N ops, E edges, T tensors, G groups, D devices, P pools.
struct GdpGraph {
  int32_t num_ops, num_edges, num_tensors, num_groups;
  const int32_t* edges;         // [E, 2]
  const int32_t* edge_tensors;  // [E], -1 for a control edge
  const int32_t* tensor_ops;    // [T]
  const int64_t* tensor_bytes;  // [T]
  const int64_t* param_bytes;   // [N]
  const uint8_t* aliases;       // [N]
  const int32_t* groups;        // [N]
  const int32_t* order;         // [N], producers before consumers
};

struct GdpCluster {
  int32_t num_devices, num_units, num_pools, num_channels;
  const int32_t* units;        // [D]
  const int32_t* pools;        // [D]
  const double* latency_s;     // [D, D]
  const double* bytes_per_s;   // [D, D]
  const int32_t* channels;     // [D, D, 2]
};

// Null if memory runs out. `allowed` [G, D], `seconds` [N, D].
GdpSimulator* gdp_simulator_create(const GdpGraph* graph,
                                   const GdpCluster* cluster,
                                   const uint8_t* allowed,
                                   const double* seconds) try {
  auto s = std::make_unique<GdpSimulator>();
  const int32_t n = s->num_ops = graph->num_ops;
  const int32_t d = s->num_devices = cluster->num_devices;
  s->num_edges = graph->num_edges;
  s->num_groups = graph->num_groups;
  s->num_pools = cluster->num_pools;
  s->num_units = cluster->num_units;
  s->num_channels = cluster->num_channels;
  s->order.assign(graph->order, graph->order + n);
  s->allowed.assign(allowed, allowed + int64_t{s->num_groups} * d);
  s->unit.assign(cluster->units, cluster->units + d);
  s->pool.assign(cluster->pools, cluster->pools + d);
  std::vector<int32_t> position(n);
  for (int32_t i = 0; i < n; ++i) {
    const int32_t op = graph->order[i];
    position[op] = i;
    s->group.push_back(graph->groups[op]);
    s->param_bytes.push_back(graph->param_bytes[op]);
    s->alias.push_back(graph->aliases[op]);
    s->seconds.insert(s->seconds.end(), seconds + int64_t{op} * d,
                      seconds + (int64_t{op} + 1) * d);
  }
  for (int32_t i = 0; i < d * d; ++i) {
    s->links.push_back({cluster->latency_s[i], cluster->bytes_per_s[i],
                        {cluster->channels[2 * i],
                         cluster->channels[2 * i + 1]}});
  }
  LayOutEdges(s.get(), position, graph->edges, graph->edge_tensors,
              graph->num_tensors, graph->tensor_ops, graph->tensor_bytes);
  return s.release();
} catch (const std::bad_alloc&) {
  return nullptr;
}

void gdp_simulator_destroy(GdpSimulator* simulator) { delete simulator; }

// Simulates K placements, `devices` [K, N], in up to `threads` threads.
// `step_time_s` [K] is infinite for an illegal placement; `peak_bytes` [K, P].
// May be called from several threads at once. Returns a Status.
int32_t gdp_simulator_run(GdpSimulator* simulator, int64_t count,
                          const int32_t* devices, int32_t threads,
                          double* step_time_s, int64_t* peak_bytes) {
  std::atomic<int64_t> next{0};
  std::atomic<int32_t> status{kOk};
  auto work = [&]() {
    try {
      std::unique_ptr<Machine> machine = TakeMachine(simulator);
      for (int64_t k; (k = next++) < count;) {
        machine->Run(devices + k * simulator->num_ops, step_time_s + k,
                     peak_bytes + k * simulator->num_pools, nullptr);
      }
      GiveBack(simulator, std::move(machine));
    } catch (const std::bad_alloc&) {
      status = kOutOfMemory;
    }
  };
  std::vector<std::thread> others;
  try {
    const int64_t wanted = std::min<int64_t>(threads, count) - 1;
    others.reserve(std::max<int64_t>(wanted, 0));
    while (static_cast<int64_t>(others.size()) < wanted) {
      others.emplace_back(work);
    }
  } catch (const std::exception&) {
    // No more threads to be had: those there are do it all.
  }
  work();
  for (std::thread& thread : others) thread.join();
  return status;
}

// Simulates one placement and keeps what happened; null if memory runs out.
// Read it with gdp_schedule_read, free it with gdp_schedule_destroy.
Schedule* gdp_schedule_create(GdpSimulator* simulator, const int32_t* devices,
                              double* step_time_s, int64_t* peak_bytes) try {
  auto schedule = std::make_unique<Schedule>();
  Machine machine(*simulator);
  machine.Run(devices, step_time_s, peak_bytes, schedule.get());
  return schedule.release();
} catch (const std::bad_alloc&) {
  return nullptr;
}

void gdp_schedule_destroy(Schedule* schedule) { delete schedule; }

int64_t gdp_schedule_num_transfers(const Schedule* schedule) {
  return static_cast<int64_t>(schedule->transfers.size());
}

int64_t gdp_schedule_num_memory_points(const Schedule* schedule) {
  return static_cast<int64_t>(schedule->memory.size());
}

// Ops in the order of the graph: `start_s` [N], `end_s` [N]. Transfers in the
// order of their requests: `transfers` [M, 4] are tensor (-1 for a control
// edge), op, source and target device; `transfer_s` [M, 2] start and end.
// Memory in the order of time: `memory_s` [Q], `memory_pools` [Q],
// `memory_bytes` [Q] since that time.
void gdp_schedule_read(const GdpSimulator* simulator, const Schedule* schedule,
                       double* start_s, double* end_s, int32_t* transfers,
                       double* transfer_s, double* memory_s,
                       int32_t* memory_pools, int64_t* memory_bytes) {
  for (size_t i = 0; i < schedule->start_s.size(); ++i) {
    start_s[simulator->order[i]] = schedule->start_s[i];
    end_s[simulator->order[i]] = schedule->end_s[i];
  }
  for (const Transfer& t : schedule->transfers) {
    for (const int32_t value : {t.tensor, t.op, t.source, t.target}) {
      *transfers++ = value;
    }
    *transfer_s++ = t.start_s;
    *transfer_s++ = t.end_s;
  }
  for (const MemoryPoint& point : schedule->memory) {
    *memory_s++ = point.time_s;
    *memory_pools++ = point.pool;
    *memory_bytes++ = point.bytes;
  }
}

}  // extern "C"

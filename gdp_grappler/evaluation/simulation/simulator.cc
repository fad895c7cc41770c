// Discrete-event simulation of one step of a placed graph.
//
// The interface is plain C over arrays, without TensorFlow and Python.
// simulator.py states the rules. tests/helpers/reference_simulator.py is the
// same simulator written for the reader; this one is written for speed. This
// file prepares all data that do not depend on the placement, once per graph
// and by topological position. simulator_machine.h runs the simulation.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <utility>
#include <vector>

#include "gdp_grappler/evaluation/simulation/simulator_graph.h"
#include "gdp_grappler/evaluation/simulation/simulator_machine.h"
#include "gdp_grappler/workers.h"

using gdp::kNone;

// Sizes: N ops, E edges, T tensors, G groups, D devices, P pools.
struct GdpGraph {
  int32_t num_ops, num_edges, num_tensors, num_groups;
  const int32_t* edges;            // [E, 2]
  const int32_t* edge_tensors;     // [E], -1 for a control edge
  const uint8_t* read_on_host;     // [E], see op_graph.py
  const uint8_t* made_on_host;     // [T], see op_graph.py
  const int32_t* tensor_ops;       // [T]
  const int64_t* tensor_bytes;     // [T]
  const int64_t* param_bytes;      // [N]
  const uint8_t* aliases;          // [N]
  const int32_t* groups;           // [N]
  const int32_t* order;            // [N], producers before consumers, or null
  const double* runs;              // [N], at least 1
  const double* launches;          // [N]
  const double* host_work;         // [N], or null: none
  const double* dispatch_factors;  // [N], or null: all are 1
  const double* poll_factors;      // [N], or null: all are 1
  const uint8_t* on_host;          // [N], work on the host of their device
};

// A graph and the machines that are idle at the moment.
struct GdpSimulator : gdp::Graph {
  std::mutex mutex;  // Guards `idle`.
  std::vector<std::unique_ptr<gdp::Machine>> idle;
};

namespace {

// Results of the C functions.
enum Status : int32_t { kOk = 0, kOutOfMemory = 1 };

std::unique_ptr<gdp::Machine> TakeMachine(GdpSimulator* simulator) {
  {
    std::lock_guard<std::mutex> lock(simulator->mutex);
    if (!simulator->idle.empty()) {
      std::unique_ptr<gdp::Machine> machine = std::move(simulator->idle.back());
      simulator->idle.pop_back();
      return machine;
    }
  }
  return std::make_unique<gdp::Machine>(*simulator);
}

void GiveBack(GdpSimulator* simulator, std::unique_ptr<gdp::Machine> machine) {
  std::lock_guard<std::mutex> lock(simulator->mutex);
  simulator->idle.push_back(std::move(machine));
}

// Ops, producers before consumers, first in, first out, as in op_graph.py. The
// result has fewer ops than the graph if the edges form a cycle.
std::vector<int32_t> TopologicalOrder(int32_t num_ops, int32_t num_edges,
                                      const int32_t* edges) {
  std::vector<int32_t> first(num_ops + 1), waiting(num_ops);
  for (int32_t e = 0; e < num_edges; ++e) {
    ++first[edges[2 * e]];
    ++waiting[edges[2 * e + 1]];
  }
  std::partial_sum(first.begin(), first.end(), first.begin());
  std::vector<int32_t> targets(num_edges);
  for (int32_t e = num_edges; e-- > 0;) {
    targets[--first[edges[2 * e]]] = edges[2 * e + 1];
  }
  std::vector<int32_t> order;
  order.reserve(num_ops);
  for (int32_t op = 0; op < num_ops; ++op) {
    if (waiting[op] == 0) order.push_back(op);
  }
  for (size_t i = 0; i < order.size(); ++i) {
    for (int32_t t = first[order[i]]; t < first[order[i] + 1]; ++t) {
      if (--waiting[targets[t]] == 0) order.push_back(targets[t]);
    }
  }
  return order;
}

// Sorts edges into outputs and inputs.
void LayOutEdges(gdp::Graph* s, const GdpGraph& graph) {
  // Tensors by producer; a tensor keeps its place among its producer's.
  std::vector<uint8_t> controls(s->num_ops, 0);
  for (int32_t e = 0; e < s->num_edges; ++e) {
    if (graph.edge_tensors[e] < 0)
      controls[s->position[graph.edges[2 * e]]] = 1;
  }
  for (int32_t t = 0; t < graph.num_tensors; ++t) {
    ++s->ops[s->position[graph.tensor_ops[t]] + 1].first_output;
  }
  std::vector<int32_t> next(s->num_ops);
  for (int32_t op = 0; op < s->num_ops; ++op) {
    next[op] = s->ops[op].first_output;
    s->ops[op + 1].first_output += next[op] + controls[op];
  }
  s->outputs.assign(s->ops.back().first_output + 1,
                    gdp::Output{0, kNone, 0, 0});
  std::vector<int32_t> tensor_output(graph.num_tensors);
  for (int32_t t = 0; t < graph.num_tensors; ++t) {
    gdp::Op& op = s->ops[s->position[graph.tensor_ops[t]]];
    tensor_output[t] = next[s->position[graph.tensor_ops[t]]]++;
    s->outputs[tensor_output[t]] = {graph.tensor_bytes[t], t, 0,
                                    graph.made_on_host[t]};
    if (!op.alias) {
      (graph.made_on_host[t] ? op.host_bytes : op.own_bytes) +=
          graph.tensor_bytes[t];
    }
  }
  // `next` now points at the output of the control edges, if there is one.

  // A counting sort of the edges by output.
  std::vector<int32_t> edge_output(s->num_edges);
  s->waiting.assign(s->num_ops, 0);
  for (int32_t e = 0; e < s->num_edges; ++e) {
    const int32_t tensor = graph.edge_tensors[e];
    edge_output[e] = tensor < 0 ? next[s->position[graph.edges[2 * e]]]
                                : tensor_output[tensor];
    ++s->outputs[edge_output[e] + 1].first_edge;
    const int32_t consumer = graph.edges[2 * e + 1];
    ++s->waiting[consumer];
    if (tensor >= 0) ++s->ops[s->position[consumer] + 1].first_input;
  }
  std::vector<int32_t> place(s->outputs.size());
  for (size_t o = 1; o < s->outputs.size(); ++o) {
    place[o] = s->outputs[o].first_edge += s->outputs[o - 1].first_edge;
  }
  for (int32_t op = 0; op < s->num_ops; ++op) {
    next[op] = s->ops[op].first_input;
    s->ops[op + 1].first_input += next[op];
  }
  s->num_inputs = s->ops.back().first_input;
  s->edges.resize(s->num_edges);
  for (int32_t e = 0; e < s->num_edges; ++e) {
    const int32_t consumer = s->position[graph.edges[2 * e + 1]];
    const int32_t input = graph.edge_tensors[e] < 0 ? kNone : next[consumer]++;
    s->edges[place[edge_output[e]]++] = {static_cast<uint32_t>(consumer),
                                         graph.read_on_host[e], input};
  }
}

}  // namespace

extern "C" {

struct GdpCluster {
  int32_t num_devices, num_units, num_pools, num_channels, channels_per_link;
  const int32_t* units;            // [D]
  const int32_t* pools;            // [D]
  const int32_t* slots;            // [units]
  const double* copy_s;            // [D]
  const double* copy_bytes_per_s;  // [D], infinite with copy engines
  const uint8_t* asynchronous;     // [D]
  const gdp::HostTimes* host;      // [D]
  const int32_t* contexts;         // [D]
  const int32_t* buses;            // [units], -1: a bus of its own
  const double* contention;        // [D]
  const double* latency_s;         // [D, D]
  const double* bytes_per_s;       // [D, D]
  const int32_t* channels;         // [D, D, channels_per_link], at most 8
  const int32_t* cards;            // [D], -1: not cut; null if none is
  const double* card_shares;       // [N, D] in (0, 1]; null if no card is cut
  double step_s;
  const int32_t* hosts;  // [D], device of ops that are `on_host`
};

// Prepares a graph. Returns null if memory runs out, or if the edges form a
// cycle. Shapes are `allowed` [G, D], `seconds` [N, D] and `workspace` [N, D];
// a null `workspace` means 0 bytes.
GdpSimulator* gdp_simulator_create(const GdpGraph* graph,
                                   const GdpCluster* cluster,
                                   const uint8_t* allowed,
                                   const double* seconds,
                                   const int64_t* workspace) try {
  auto s = std::make_unique<GdpSimulator>();
  const int32_t n = s->num_ops = graph->num_ops;
  const int32_t d = s->num_devices = cluster->num_devices;
  s->num_edges = graph->num_edges;
  s->num_groups = graph->num_groups;
  s->num_pools = cluster->num_pools;
  s->num_units = cluster->num_units;
  s->num_channels = cluster->num_channels;
  s->channels_per_link = cluster->channels_per_link;
  s->step_s = cluster->step_s;
  s->unit.assign(cluster->units, cluster->units + d);
  s->pool.assign(cluster->pools, cluster->pools + d);
  s->slots.assign(cluster->slots, cluster->slots + s->num_units);
  s->copy_s.assign(cluster->copy_s, cluster->copy_s + d);
  s->copy_bytes_per_s.assign(cluster->copy_bytes_per_s,
                             cluster->copy_bytes_per_s + d);
  s->copy_work = false;
  for (int32_t i = 0; i < d; ++i) {
    s->copy_work |= s->copy_s[i] > 0 || s->copy_bytes_per_s[i] < gdp::kInfinity;
  }
  s->asynchronous.assign(cluster->asynchronous, cluster->asynchronous + d);
  s->host.assign(cluster->host, cluster->host + d);
  s->context.assign(cluster->contexts, cluster->contexts + d);
  s->shares_context.assign(d, 0);
  for (int32_t i = 0; i < d; ++i) {
    for (int32_t j = 0; j < d; ++j) {
      s->shares_context[i] |=
          i != j && s->asynchronous[j] && s->context[i] == s->context[j];
    }
  }
  s->streams = false;
  for (const uint8_t asynchronous : s->asynchronous) s->streams |= asynchronous;
  s->cut = cluster->cards != nullptr;
  if (s->cut) {
    s->card.assign(cluster->cards, cluster->cards + d);
    s->card_share.resize(int64_t{n} * d);
  }
  s->bus.assign(cluster->buses, cluster->buses + s->num_units);
  s->contention.assign(cluster->contention, cluster->contention + d);
  s->contended = false;
  for (const double share : s->contention) s->contended |= share > 0;
  for (int32_t i = 0; i < d * d; ++i) {
    gdp::Link link = {cluster->latency_s[i], cluster->bytes_per_s[i], {}};
    std::copy_n(cluster->channels + i * s->channels_per_link,
                s->channels_per_link, link.channels);
    s->links.push_back(link);
  }

  if (graph->order) {
    s->order.assign(graph->order, graph->order + n);
  } else {
    s->order = TopologicalOrder(n, s->num_edges, graph->edges);
  }
  if (static_cast<int32_t>(s->order.size()) < n) return nullptr;
  s->group.assign(graph->groups, graph->groups + n);
  s->on_host.assign(graph->on_host, graph->on_host + n);
  s->hosts.assign(cluster->hosts, cluster->hosts + d);
  if (graph->dispatch_factors) {
    s->dispatch_factors.assign(graph->dispatch_factors,
                               graph->dispatch_factors + n);
  }
  if (graph->poll_factors) {
    s->poll_factors.assign(graph->poll_factors, graph->poll_factors + n);
  }
  s->allowed.assign(allowed, allowed + int64_t{s->num_groups} * d);
  s->position.resize(n);
  s->seconds.resize(int64_t{n} * d);
  if (workspace) s->workspace.resize(int64_t{n} * d);
  s->runs.resize(n);
  s->launches.resize(n);
  s->host_work.assign(n, 0.0);
  s->ops.assign(n + 1, gdp::Op{0, 0, 0, 0, false});
  for (int32_t i = 0; i < n; ++i) {
    const int32_t op = s->order[i];
    s->position[op] = i;
    s->ops[i].alias = graph->aliases[op];
    s->runs[i] = graph->runs[op];
    s->launches[i] = graph->launches[op];
    if (graph->host_work) s->host_work[i] = graph->host_work[op];
    const int64_t bytes = graph->param_bytes[op];
    if (bytes) s->params.push_back({i, bytes});
    std::copy_n(seconds + int64_t{op} * d, d, &s->seconds[int64_t{i} * d]);
    if (s->cut) {
      std::copy_n(cluster->card_shares + int64_t{op} * d, d,
                  &s->card_share[int64_t{i} * d]);
    }
    if (workspace) {
      std::copy_n(workspace + int64_t{op} * d, d,
                  &s->workspace[int64_t{i} * d]);
    }
  }
  LayOutEdges(s.get(), *graph);
  for (int32_t i = 0; i < n; ++i) {
    if (s->waiting[s->order[i]] == 0) s->roots.push_back(i);
  }
  return s.release();
} catch (const std::bad_alloc&) {
  return nullptr;
}

void gdp_simulator_destroy(GdpSimulator* simulator) { delete simulator; }

// Simulates K placements, `devices` [K, N] and `priorities` [K, N] or null, in
// up to `threads` threads. Writes `step_time_s` [K], infinite for an illegal
// placement, and `peak_bytes` [K, P]. With `orderable` [N], asynchronous
// devices keep the order of the priorities, see `Machine::RunInOrder`. A step
// above `ceiling_s` [K] gets any time above its ceiling; null means no
// ceilings. May be called from several threads at once. Returns a Status.
int32_t gdp_simulator_run(GdpSimulator* simulator, int64_t count,
                          const int32_t* devices, const double* priorities,
                          const uint8_t* orderable, const double* ceiling_s,
                          int32_t threads, double* step_time_s,
                          int64_t* peak_bytes) {
  const auto work = [&](int32_t, gdp::Numbers* numbers) {
    std::unique_ptr<gdp::Machine> machine = TakeMachine(simulator);
    for (int64_t k; numbers->Next(&k);) {
      const int32_t* placement = devices + k * simulator->num_ops;
      const double* order =
          priorities ? priorities + k * simulator->num_ops : nullptr;
      int64_t* peaks = peak_bytes + k * simulator->num_pools;
      const double ceiling = ceiling_s ? ceiling_s[k] : gdp::kInfinity;
      if (orderable) {
        machine->RunInOrder(placement, order, orderable, ceiling,
                            step_time_s + k, peaks);
      } else {
        machine->Run(placement, order, ceiling, step_time_s + k, peaks,
                     nullptr);
      }
    }
    GiveBack(simulator, std::move(machine));
  };
  return gdp::ShareOut(count, threads, work) ? kOk : kOutOfMemory;
}

// Simulates one placement and returns its schedule; null if memory runs out.
// gdp_schedule_read reads the schedule, gdp_schedule_destroy frees it.
gdp::Schedule* gdp_schedule_create(GdpSimulator* simulator,
                                   const int32_t* devices,
                                   const double* priorities,
                                   double* step_time_s,
                                   int64_t* peak_bytes) try {
  auto schedule = std::make_unique<gdp::Schedule>();
  gdp::Machine machine(*simulator);
  machine.Run(devices, priorities, gdp::kInfinity, step_time_s, peak_bytes,
              schedule.get());
  return schedule.release();
} catch (const std::bad_alloc&) {
  return nullptr;
}

void gdp_schedule_destroy(gdp::Schedule* schedule) { delete schedule; }

// Writes the sizes of a schedule: transfers M, works W and memory points Q.
void gdp_schedule_sizes(const gdp::Schedule* schedule, int64_t* sizes) {
  sizes[0] = static_cast<int64_t>(schedule->transfers.size());
  sizes[1] = static_cast<int64_t>(schedule->works.size());
  sizes[2] = static_cast<int64_t>(schedule->memory.size());
}

// Writes the events of a schedule.
// * Ops in the order of the graph: `start_s` [N], `end_s` [N], `dispatched_s`
//   [N], `slots` [N].
// * Transfers in the order of their requests: `transfers` [M, 4] are tensor (-1
//   for a control edge), op, source and target device; `transfer_s` [M, 2] are
//   start and end.
// * Work of units for transfers in the order of starts: `works` [W, 3] are
//   transfer, device and slot; `work_s` [W, 2] are start and end.
// * Changes of memory in the order of time: `memory_s` [Q], `memory_pools` [Q]
//   and `memory_bytes` [Q], the use from this time on.
void gdp_schedule_read(const GdpSimulator* simulator,
                       const gdp::Schedule* schedule, double* start_s,
                       double* end_s, double* dispatched_s, int32_t* slots,
                       int32_t* transfers, double* transfer_s, int32_t* works,
                       double* work_s, double* memory_s, int32_t* memory_pools,
                       int64_t* memory_bytes) {
  for (size_t i = 0; i < schedule->start_s.size(); ++i) {
    start_s[simulator->order[i]] = schedule->start_s[i];
    end_s[simulator->order[i]] = schedule->end_s[i];
    dispatched_s[simulator->order[i]] = schedule->dispatched_s[i];
    slots[simulator->order[i]] = schedule->slot[i];
  }
  for (const gdp::Transfer& t : schedule->transfers) {
    for (const int32_t value : {t.tensor, t.op, t.source, t.target}) {
      *transfers++ = value;
    }
    *transfer_s++ = t.start_s;
    *transfer_s++ = t.end_s;
  }
  for (const gdp::Work& work : schedule->works) {
    for (const int32_t value : {work.transfer, work.device, work.slot}) {
      *works++ = value;
    }
    *work_s++ = work.start_s;
    *work_s++ = work.end_s;
  }
  for (const gdp::MemoryPoint& point : schedule->memory) {
    *memory_s++ = point.time_s;
    *memory_pools++ = point.pool;
    *memory_bytes++ = point.bytes;
  }
}

}  // extern "C"

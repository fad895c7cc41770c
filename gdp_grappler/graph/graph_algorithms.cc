// Algorithms that visit every op and edge of large graphs: an order, longest
// paths, and units of decision. The Python functions that call them state the
// rules. tests/helpers/naive_graphs.py has simple versions of them.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <new>
#include <numeric>
#include <utility>
#include <vector>

namespace {

// Disjoint sets. The smallest member represents a set.
class Sets {
 public:
  explicit Sets(int32_t n) : parent_(n) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }

  int32_t Find(int32_t item) {
    while (parent_[item] != item) {
      parent_[item] = parent_[parent_[item]];
      item = parent_[item];
    }
    return item;
  }

  // Joins the sets of two representatives, and returns the one that stays.
  int32_t Join(int32_t a, int32_t b) {
    if (b < a) std::swap(a, b);
    parent_[b] = a;
    return a;
  }

 private:
  std::vector<int32_t> parent_;
};

// Sets with their work. Only sets of the same kind are joined.
class WeightedSets {
 public:
  WeightedSets(int32_t n, const double* work, const int32_t* kinds)
      : sets_(n), work_(work, work + n), kinds_(kinds) {}

  int32_t Find(int32_t item) { return sets_.Find(item); }

  double Work(int32_t item) { return work_[sets_.Find(item)]; }

  void JoinUpTo(int32_t a, int32_t b, double limit) {
    a = sets_.Find(a);
    b = sets_.Find(b);
    const double total = work_[a] + work_[b];
    if (a == b || kinds_[a] != kinds_[b] || total > limit) return;
    work_[sets_.Join(a, b)] = total;
  }

 private:
  Sets sets_;
  std::vector<double> work_;
  const int32_t* kinds_;
};

// Edges sorted by one of their ends, 0 or 1. Edges of one op keep their order.
class EdgesOf {
 public:
  EdgesOf(int64_t num_ops, int64_t num_edges, const int32_t* edges, int end)
      : first_(num_ops + 1, 0), edges_(num_edges) {
    for (int64_t e = 0; e < num_edges; ++e) ++first_[edges[2 * e + end] + 1];
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    std::vector<int64_t> next(first_.begin(), first_.end() - 1);
    for (int64_t e = 0; e < num_edges; ++e) {
      edges_[next[edges[2 * e + end]]++] = e;
    }
  }

  int64_t First(int64_t op) const { return first_[op]; }
  int64_t End(int64_t op) const { return first_[op + 1]; }
  int64_t operator[](int64_t index) const { return edges_[index]; }

 private:
  std::vector<int64_t> first_, edges_;
};

}  // namespace

extern "C" {

// Kahn's algorithm, first in, first out. The consumers of op i are
// targets[starts[i]] to targets[starts[i + 1]]. Returns the number of ops in
// `order`, which is less than `num_ops` if the edges form a cycle; -1 if memory
// runs out.
int64_t gdp_graph_order(int64_t num_ops, const int64_t* starts,
                        const int32_t* targets, int32_t* order) try {
  std::vector<int32_t> waiting(num_ops, 0);
  for (int64_t edge = 0; edge < starts[num_ops]; ++edge) {
    ++waiting[targets[edge]];
  }
  int64_t count = 0;
  for (int64_t op = 0; op < num_ops; ++op) {
    if (!waiting[op]) order[count++] = static_cast<int32_t>(op);
  }
  for (int64_t at = 0; at < count; ++at) {
    const int32_t op = order[at];
    for (int64_t edge = starts[op]; edge < starts[op + 1]; ++edge) {
      if (!--waiting[targets[edge]]) order[count++] = targets[edge];
    }
  }
  return count;
} catch (const std::bad_alloc&) {
  return -1;
}

// Upward ranks. On input, `ranks` has the seconds of each op. On output, it has
// the seconds of the longest path from each op to the end. `edges` is [E, 2].
// `edge_s` has the seconds from the start of an edge's producer to the start of
// its consumer. `order` is a result of `gdp_graph_order`. Returns -1 if memory
// runs out.
int32_t gdp_graph_ranks(int64_t num_ops, int64_t num_edges,
                        const int32_t* edges, const int32_t* order,
                        const double* edge_s, double* ranks) try {
  const EdgesOf outgoing(num_ops, num_edges, edges, 0);
  for (int64_t at = num_ops; at-- > 0;) {
    const int32_t op = order[at];
    for (int64_t i = outgoing.First(op); i < outgoing.End(op); ++i) {
      const int64_t e = outgoing[i];
      ranks[op] = std::max(ranks[op], edge_s[e] + ranks[edges[2 * e + 1]]);
    }
  }
  return 0;
} catch (const std::bad_alloc&) {
  return -1;
}

// Depth-first order. The producers of an op come before it, in the order of its
// edges. Ops without consumers come in their own order. Writes the position of
// each op counted from the end, 1 for the last op, or 0 for an op on a cycle.
// Returns -1 if memory runs out.
int32_t gdp_graph_depth_first(int64_t num_ops, int64_t num_edges,
                              const int32_t* edges, double* places) try {
  const EdgesOf incoming(num_ops, num_edges, edges, 1);
  std::vector<uint8_t> done(num_ops, 0), needed(num_ops, 0);
  for (int64_t e = 0; e < num_edges; ++e) needed[edges[2 * e]] = 1;
  std::fill(places, places + num_ops, 0.0);
  std::vector<std::pair<int32_t, int64_t>> path;  // Ops and next edges.
  int64_t place = num_ops;
  for (int64_t result = 0; result < num_ops; ++result) {
    if (needed[result]) continue;
    path.emplace_back(static_cast<int32_t>(result), incoming.First(result));
    while (!path.empty()) {
      const int32_t op = path.back().first;
      if (path.back().second == incoming.End(op)) {
        places[op] = static_cast<double>(place--);
        path.pop_back();
        continue;
      }
      const int32_t producer = edges[2 * incoming[path.back().second++]];
      if (done[producer]) continue;
      done[producer] = 1;
      path.emplace_back(producer, incoming.First(producer));
    }
  }
  return 0;
} catch (const std::bad_alloc&) {
  return -1;
}

// Joins groups of one kind to units along edges. First, edges are taken in the
// order `heavy` (by the size of their tensors), as long as a unit has at most
// `fair` work. Then units with less work than `light` join a consumer, or else
// a producer, along edges in the order `slight`. Writes a member of each
// group's unit to `units`. Returns -1 if memory runs out.
int32_t gdp_graph_coarsen(int64_t num_groups, const double* work,
                          const int32_t* kinds, int64_t num_edges,
                          const int32_t* sources, const int32_t* consumers,
                          const int64_t* heavy, const int64_t* slight,
                          double fair, double light, int32_t* units) try {
  WeightedSets sets(static_cast<int32_t>(num_groups), work, kinds);
  for (int64_t at = 0; at < num_edges; ++at) {
    sets.JoinUpTo(sources[heavy[at]], consumers[heavy[at]], fair);
  }
  const int32_t* ends[] = {sources, consumers};
  for (int from = 0; from < 2; ++from) {
    for (int64_t at = 0; at < num_edges; ++at) {
      const int32_t group = ends[from][slight[at]];
      if (sets.Work(group) >= light) continue;
      sets.JoinUpTo(group, ends[1 - from][slight[at]],
                    std::numeric_limits<double>::infinity());
    }
  }
  for (int64_t group = 0; group < num_groups; ++group) {
    units[group] = sets.Find(static_cast<int32_t>(group));
  }
  return 0;
} catch (const std::bad_alloc&) {
  return -1;
}

}  // extern "C"

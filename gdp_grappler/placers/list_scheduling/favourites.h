// Favourite children: the child of each task that needs no transfer.

#ifndef GDP_GRAPPLER_PLACERS_LIST_SCHEDULING_FAVOURITES_H_
#define GDP_GRAPPLER_PLACERS_LIST_SCHEDULING_FAVOURITES_H_

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace gdp {

// Matches parents and children to shorten the longest path: a matched pair
// needs no transfer. See favourite_children.py.
//
// Each round computes the longest path through each pair, with the matching of
// the previous round. It first matches pairs on paths above a limit, in
// decreasing length of their paths. Then it matches the other pairs, in
// decreasing length of their transfers. The result is the matching with the
// shortest critical path.
class Favourites {
 public:
  // Tasks are in topological order; `pairs` [E, 2] are sorted by parent.
  Favourites(int32_t num_tasks, int32_t num_pairs, const int32_t* pairs,
             const double* sent_s, const double* work_s)
      : M(num_tasks),
        E(num_pairs),
        pairs_(pairs),
        sent_s_(sent_s),
        work_s_(work_s),
        spared_(num_pairs, 0),
        best_(num_pairs, 0),
        rounds_(num_pairs, 0),
        start_s_(num_tasks),
        left_s_(num_tasks),
        through_s_(num_pairs),
        order_(num_pairs) {}

  // Writes the favourite child of each task or -1 to `child` [M]. `certain` [M]
  // gets only the favourite children that all rounds have matched.
  void Run(const double* limits, int32_t num_limits, int32_t* child,
           int32_t* certain) {
    std::fill(spared_.begin(), spared_.end(), 1);
    const double least_s = Length();
    std::fill(spared_.begin(), spared_.end(), 0);
    double shortest_s = Length();  // Computes the paths of the first `Match`.
    for (int32_t round = 0; round < num_limits; ++round) {
      Match(least_s + limits[round] * (shortest_s - least_s));
      const double length_s = Length();
      for (int32_t e = 0; e < E; ++e) rounds_[e] += spared_[e];
      if (round == 0 || length_s < shortest_s) {
        shortest_s = length_s;
        best_ = spared_;
      }
    }
    std::fill(child, child + M, -1);
    std::fill(certain, certain + M, -1);
    for (int32_t e = 0; e < E; ++e) {
      if (best_[e]) child[Parent(e)] = Child(e);
      if (rounds_[e] == num_limits) certain[Parent(e)] = Child(e);
    }
  }

 private:
  int32_t Parent(int32_t e) const { return pairs_[2 * e]; }
  int32_t Child(int32_t e) const { return pairs_[2 * e + 1]; }

  // Seconds of the longest path; a matched pair has no transfer.
  double Length() {
    std::fill(start_s_.begin(), start_s_.end(), 0.0);
    std::copy(work_s_, work_s_ + M, left_s_.begin());
    for (int32_t e = 0; e < E; ++e) {
      const double end_s = start_s_[Parent(e)] + work_s_[Parent(e)];
      double& start_s = start_s_[Child(e)];
      start_s = std::max(start_s, end_s + (spared_[e] ? 0.0 : sent_s_[e]));
    }
    for (int32_t e = E - 1; e >= 0; --e) {
      double& left_s = left_s_[Parent(e)];
      left_s = std::max(left_s, work_s_[Parent(e)] +
                                    (spared_[e] ? 0.0 : sent_s_[e]) +
                                    left_s_[Child(e)]);
    }
    double length_s = 0;
    for (int32_t i = 0; i < M; ++i) {
      length_s = std::max(length_s, start_s_[i] + left_s_[i]);
    }
    return length_s;
  }

  void Match(double limit_s) {
    for (int32_t e = 0; e < E; ++e) {
      through_s_[e] = start_s_[Parent(e)] + work_s_[Parent(e)] + sent_s_[e] +
                      left_s_[Child(e)];
    }
    std::iota(order_.begin(), order_.end(), 0);
    std::stable_sort(order_.begin(), order_.end(), [&](int32_t a, int32_t b) {
      const bool a_long = through_s_[a] > limit_s;
      const bool b_long = through_s_[b] > limit_s;
      if (a_long != b_long) return a_long;
      return a_long ? through_s_[a] > through_s_[b] : sent_s_[a] > sent_s_[b];
    });
    std::fill(spared_.begin(), spared_.end(), 0);
    std::vector<uint8_t> parents(M, 0), children(M, 0);
    for (const int32_t e : order_) {
      if (!sent_s_[e] || parents[Parent(e)] || children[Child(e)]) continue;
      spared_[e] = parents[Parent(e)] = children[Child(e)] = 1;
    }
  }

  const int32_t M, E;
  const int32_t* pairs_;
  const double *sent_s_, *work_s_;
  std::vector<uint8_t> spared_, best_;    // [E]
  std::vector<int32_t> rounds_;           // [E] rounds that matched the pair.
  std::vector<double> start_s_, left_s_;  // [M]
  std::vector<double> through_s_;         // [E]
  std::vector<int32_t> order_;            // [E]
};

}  // namespace gdp

#endif  // GDP_GRAPPLER_PLACERS_LIST_SCHEDULING_FAVOURITES_H_

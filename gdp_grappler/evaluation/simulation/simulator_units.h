// The compute units of the simulator.

#ifndef GDP_GRAPPLER_EVALUATION_SIMULATOR_UNITS_H_
#define GDP_GRAPPLER_EVALUATION_SIMULATOR_UNITS_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gdp_grappler/evaluation/simulation/simulator_cards.h"
#include "gdp_grappler/evaluation/simulation/simulator_graph.h"
#include "gdp_grappler/evaluation/simulation/simulator_queues.h"

namespace gdp {

// The state of the compute units: waiting ops and work, free slots, use of
// memory buses, and the ends of the compute streams of asynchronous devices.
class Units {
 public:
  explicit Units(const Graph& graph)
      : g_(graph),
        fifo_(graph.num_units),
        ranked_(graph.num_units),
        owed_(graph.num_units),
        free_slots_(graph.num_units),
        slot_taken_(graph.num_units),
        starts_(graph.num_units),
        filled_s_(graph.num_units),
        left_s_(graph.num_units),
        cards_(graph.cut ? graph.num_devices : 0) {}

  // `priorities` [N] are by op of the graph, or null. `scheduled` says whether
  // numbers of slots are needed. `is_over` compares with `ceiling`.
  void Reset(const double* priorities, bool scheduled, double ceiling) {
    ceiling_ = ceiling;
    is_over_ = false;
    std::fill(left_s_.begin(), left_s_.end(), 0.0);
    priorities_ = priorities;
    touched_.clear();
    for (Fifo& queue : fifo_) queue.clear();
    for (Heap<Ranked>& queue : ranked_) queue.clear();
    for (Heap<Owed>& queue : owed_) queue.clear();
    std::copy(g_.slots.begin(), g_.slots.end(), free_slots_.begin());
    std::fill(starts_.begin(), starts_.end(), Starts{-1, 0});
    std::fill(filled_s_.begin(), filled_s_.end(), 0.0);
    last_s_ = 0;
    for (CardUse& card : cards_) card.Reset();
    if (scheduled) {
      for (std::vector<uint8_t>& taken : slot_taken_) taken.clear();
    }
  }

  void PushOp(int32_t unit, int32_t op, double now) {
    if (priorities_) {
      ranked_[unit].Push({-priorities_[g_.order[op]], now, op});
    } else {
      fifo_[unit].Push(now, op);
    }
    touched_.push_back(unit);
  }

  void PushWork(int32_t unit, const Owed& work) {
    owed_[unit].Push(work);
    touched_.push_back(unit);
  }

  // Gives free slots to waiting work and ops, by StartWork and StartOp. Looks
  // at units that got a free slot, work or an op since the last call.
  template <typename Machine>
  void StartAll(double now, Machine* machine) {
    // On a cut card the first kernel gets the largest share, so fix the order.
    if (g_.cut) std::sort(touched_.begin(), touched_.end());
    for (const int32_t unit : touched_) {
      while (free_slots_[unit] > 0) {
        if (g_.copy_work && !owed_[unit].empty()) {
          machine->StartWork(owed_[unit].Pop().copy);
        } else if (priorities_ ? !ranked_[unit].empty()
                               : !fifo_[unit].empty()) {
          machine->StartOp(priorities_ ? ranked_[unit].Pop().op
                                       : fifo_[unit].Pop(now));
        } else {
          break;
        }
        --free_slots_[unit];
        if (g_.contended) CountStart(unit, now);
      }
    }
    touched_.clear();
  }

  // An op or work that started `seconds` ago ends.
  void Leave(int32_t unit, int32_t slot, double seconds, double now,
             bool scheduled) {
    ++free_slots_[unit];
    // If it has no duration, it started at this moment.
    if (g_.contended && now + seconds == now) --starts_[unit].count;
    touched_.push_back(unit);
    if (scheduled) slot_taken_[unit][slot] = 0;
  }

  // Takes the lowest free slot. Only schedules need its number.
  int32_t TakeSlot(int32_t unit) {
    std::vector<uint8_t>& taken = slot_taken_[unit];
    const auto slot = std::find(taken.begin(), taken.end(), 0);
    const int32_t index = static_cast<int32_t>(slot - taken.begin());
    if (slot == taken.end()) taken.push_back(0);
    taken[index] = 1;
    return index;
  }

  // Puts an op at the end of its unit's compute stream, after a gap. Returns
  // its start, which is not before `now`. The op takes `seconds`, of which
  // `WillFill` announced `told`.
  double Fill(int32_t unit, double seconds, double told, double gap,
              double now) {
    const bool first = filled_s_[unit] == 0;
    const double start = first ? now : std::max(now, filled_s_[unit] + gap);
    filled_s_[unit] = start + seconds;
    last_s_ = std::max(last_s_, filled_s_[unit]);
    left_s_[unit] -= told;
    is_over_ |= filled_s_[unit] + left_s_[unit] > ceiling_;
    return start;
  }

  // The same on a device of a cut card, of which the op can use a `share`. The
  // op takes longer while earlier kernels leave less.
  double FillPart(int32_t device, double share, double seconds, double told,
                  double gap, double start, double now) {
    const int32_t unit = g_.unit[device];
    if (filled_s_[unit] > 0) start = std::max(start, filled_s_[unit] + gap);
    filled_s_[unit] = cards_[g_.card[device]].Run(share, seconds, now, &start);
    last_s_ = std::max(last_s_, filled_s_[unit]);
    left_s_[unit] -= told;
    is_over_ |= filled_s_[unit] + left_s_[unit] > ceiling_;
    return start;
  }

  // Announces an op that will be put on the stream. All announcements come
  // before the first `Fill`.
  void WillFill(int32_t unit, double seconds) { left_s_[unit] += seconds; }

  // Whether a compute stream, with its work so far and all announced work, ends
  // after the ceiling.
  bool is_over() const { return is_over_; }

  // End of the work so far on a compute stream.
  double filled_s(int32_t unit) const { return filled_s_[unit]; }

  // End of the work so far on all compute streams.
  double last_s() const { return last_s_; }

  // The seconds of an op or work that starts now, lengthened by the busy units
  // that share the device's bus.
  double Slowed(int32_t device, double seconds, double now) const {
    if (!g_.contended || g_.contention[device] == 0) return seconds;
    const int32_t own = g_.unit[device];
    int32_t others = 0;
    for (int32_t unit = 0; unit < g_.num_units; ++unit) {
      others += unit != own && g_.bus[unit] == g_.bus[own] && IsBusy(unit, now);
    }
    return seconds * (1 + others * g_.contention[device]);
  }

 private:
  // Number of ops and works that a unit started at one moment and that have not
  // ended.
  struct Starts {
    double time_s;
    int32_t count;
  };

  void CountStart(int32_t unit, double now) {
    Starts& starts = starts_[unit];
    if (starts.time_s != now) starts = {now, 0};
    ++starts.count;
  }

  // Whether a unit runs something that started before this moment.
  bool IsBusy(int32_t unit, double now) const {
    const Starts& starts = starts_[unit];
    return g_.slots[unit] - free_slots_[unit] >
           (starts.time_s == now ? starts.count : 0);
  }

  const Graph& g_;
  const double* priorities_ = nullptr;
  Vector<int32_t> touched_;
  Vector<Fifo> fifo_;            // [units] used without priorities.
  Vector<Heap<Ranked>> ranked_;  // [units] used with priorities.
  Vector<Heap<Owed>> owed_;      // [units]
  Vector<int32_t> free_slots_;   // [units]
  std::vector<std::vector<uint8_t>> slot_taken_;  // [units] if scheduled.
  Vector<Starts> starts_;                         // [units] if contended.
  Vector<double> filled_s_;                       // [units] if asynchronous.
  // Announced seconds of ops that are not on the stream yet; [units] if
  // asynchronous and there is a ceiling.
  Vector<double> left_s_;
  Vector<CardUse> cards_;  // [cards], at most D, if some are cut.
  double last_s_ = 0;
  double ceiling_ = kInfinity;
  bool is_over_ = false;
};

}  // namespace gdp

#endif  // GDP_GRAPPLER_EVALUATION_SIMULATOR_UNITS_H_

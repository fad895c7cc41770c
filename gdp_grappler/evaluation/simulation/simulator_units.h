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

// What waits for each unit, its slots, how busy buses are, and how far the
// compute streams of asynchronous devices are filled.
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

  // `priorities` [N] by op of the graph, or null; `scheduled` if slots matter.
  // Nobody cares for steps above `ceiling`.
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

  // Gives the free slots of the units that became free, or got something to do,
  // to what waits for them: calls StartWork and StartOp.
  template <typename Machine>
  void StartAll(double now, Machine* machine) {
    // Who starts first gets what is left of a card.
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

  // What started `seconds` ago ends.
  void Leave(int32_t unit, int32_t slot, double seconds, double now,
             bool scheduled) {
    ++free_slots_[unit];
    // Without a duration it began at this moment.
    if (g_.contended && now + seconds == now) --starts_[unit].count;
    touched_.push_back(unit);
    if (scheduled) slot_taken_[unit][slot] = 0;
  }

  // The lowest free slot; only schedules need to know.
  int32_t TakeSlot(int32_t unit) {
    std::vector<uint8_t>& taken = slot_taken_[unit];
    const auto slot = std::find(taken.begin(), taken.end(), 0);
    const int32_t index = static_cast<int32_t>(slot - taken.begin());
    if (slot == taken.end()) taken.push_back(0);
    taken[index] = 1;
    return index;
  }

  // Puts an op behind all that its unit's compute stream has, and a gap;
  // returns its start, which is not before `now`. It takes `seconds`, of which
  // `told` were told of.
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

  // The same on a device of a card that is cut into several, of which the op
  // can use a `share`. It takes longer while others leave less.
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

  // Tells of an op that will be put there. Before the first one is.
  void WillFill(int32_t unit, double seconds) { left_s_[unit] += seconds; }

  // Whether the step takes longer than the ceiling, as far as compute streams
  // say: what they have and what they will get.
  bool is_over() const { return is_over_; }

  // When all that a compute stream has will be done.
  double filled_s(int32_t unit) const { return filled_s_[unit]; }

  // When all compute streams will be done.
  double last_s() const { return last_s_; }

  // What starts now on a device takes so much longer, for the units that share
  // its bus.
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
  // What a unit started at one moment and has not ended.
  struct Starts {
    double time_s;
    int32_t count;
  };

  void CountStart(int32_t unit, double now) {
    Starts& starts = starts_[unit];
    if (starts.time_s != now) starts = {now, 0};
    ++starts.count;
  }

  // Whether a unit is in the middle of something: started before this moment.
  bool IsBusy(int32_t unit, double now) const {
    const Starts& starts = starts_[unit];
    return g_.slots[unit] - free_slots_[unit] >
           (starts.time_s == now ? starts.count : 0);
  }

  const Graph& g_;
  const double* priorities_ = nullptr;
  Vector<int32_t> touched_;
  Vector<Fifo> fifo_;                             // [units] no priorities.
  Vector<Heap<Ranked>> ranked_;                   // [units] priorities.
  Vector<Heap<Owed>> owed_;                       // [units]
  Vector<int32_t> free_slots_;                    // [units]
  std::vector<std::vector<uint8_t>> slot_taken_;  // [units] if scheduled.
  Vector<Starts> starts_;                         // [units] if contended.
  Vector<double> filled_s_;                       // [units] if asynchronous.
  Vector<double> left_s_;  // [units] if asynchronous and there is a ceiling.
  Vector<CardUse> cards_;  // [cards], at most D, if some are cut.
  double last_s_ = 0;
  double ceiling_ = kInfinity;
  bool is_over_ = false;
};

}  // namespace gdp

#endif  // GDP_GRAPPLER_EVALUATION_SIMULATOR_UNITS_H_

// The busy times of a resource that does one thing at a time.

#ifndef GDP_GRAPPLER_PLACERS_LIST_SCHEDULING_TIMELINE_H_
#define GDP_GRAPPLER_PLACERS_LIST_SCHEDULING_TIMELINE_H_

#include <algorithm>
#include <cstddef>
#include <vector>

namespace gdp {

// Busy spans in order of time.
class Timeline {
 public:
  // Joins spans with a gap shorter than `shortest`, because nothing fits there.
  // `Earliest` looks at the latest `most_gaps` gaps only.
  explicit Timeline(double shortest = 0, size_t most_gaps = ~size_t{0})
      : shortest_(shortest), most_gaps_(most_gaps) {}

  // The earliest start of a free span of a length, at `ready` or later.
  double Earliest(double ready, double length) const {
    if (busy_.empty() || busy_.back().end <= ready) return ready;
    const size_t skipped =
        busy_.size() > most_gaps_ ? busy_.size() - most_gaps_ : 0;
    auto span = std::upper_bound(
        busy_.begin() + skipped, busy_.end(), ready,
        [](double time, const Span& s) { return time < s.end; });
    double start = ready;
    if (skipped > 0) start = std::max(start, busy_[skipped - 1].end);
    for (; span != busy_.end(); ++span) {
      if (start + length <= span->start) return start;
      start = std::max(start, span->end);
    }
    return start;
  }

  // Marks a span as busy; it must be a free span from `Earliest`.
  void Take(double start, double end) {
    if (busy_.empty() || busy_.back().end + shortest_ < start) {
      busy_.push_back({start, end});
      return;
    }
    auto next = std::lower_bound(
        busy_.begin(), busy_.end(), start,
        [](const Span& s, double time) { return s.start < time; });
    const bool after =
        next != busy_.begin() && (next - 1)->end + shortest_ >= start;
    const bool before = next != busy_.end() && next->start <= end + shortest_;
    if (after && before) {
      (next - 1)->end = std::max(end, next->end);
      busy_.erase(next);
    } else if (after) {
      (next - 1)->end = std::max((next - 1)->end, end);
    } else if (before) {
      next->start = start;
    } else {
      busy_.insert(next, {start, end});
    }
  }

 private:
  struct Span {
    double start, end;
  };
  std::vector<Span> busy_;
  double shortest_;
  size_t most_gaps_;
};

}  // namespace gdp

#endif  // GDP_GRAPPLER_PLACERS_LIST_SCHEDULING_TIMELINE_H_

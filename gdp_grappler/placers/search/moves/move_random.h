// Random numbers for moves; a seed gives the same numbers on every machine.

#ifndef GDP_GRAPPLER_PLACERS_SEARCH_MOVES_MOVE_RANDOM_H_
#define GDP_GRAPPLER_PLACERS_SEARCH_MOVES_MOVE_RANDOM_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace gdp {

// xoshiro256** of D. Blackman and S. Vigna, "Scrambled Linear Pseudorandom
// Number Generators", ACM TOMS 47, 2021, seeded by SplitMix64 as in the paper.
class MoveRandom {
 public:
  explicit MoveRandom(uint64_t seed) {
    for (uint64_t& word : state_) {
      uint64_t z = (seed += 0x9e3779b97f4a7c15u);
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
      z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
      word = z ^ (z >> 31);
    }
  }

  // Uniform in [0, 1).
  double Uniform() { return (Next() >> 11) * 0x1p-53; }

  bool Chance(double probability) { return Uniform() < probability; }

  // Uniform from 0 to `count` - 1; `count` is positive. D. Lemire, "Fast Random
  // Integer Generation in an Interval", ACM TOMACS 29, 2019.
  int32_t Below(int32_t count) {
    const uint32_t range = static_cast<uint32_t>(count);
    uint64_t product = (Next() >> 32) * range;
    if (static_cast<uint32_t>(product) < range) {
      const uint32_t least = -range % range;
      while (static_cast<uint32_t>(product) < least) {
        product = (Next() >> 32) * range;
      }
    }
    return static_cast<int32_t>(product >> 32);
  }

  // From 1 to `most`, log-uniform.
  int32_t Size(int32_t most) {
    const double size = std::exp(Uniform() * std::log(most + 1.));
    return std::min(static_cast<int32_t>(size), most);
  }

  // A random index, by cumulative weights; uniform if all weights are 0.
  int32_t Weighted(const std::vector<double>& sums) {
    const int32_t count = static_cast<int32_t>(sums.size());
    if (!(sums.back() > 0)) return Below(count);
    const auto found =
        std::upper_bound(sums.begin(), sums.end(), Uniform() * sums.back());
    return std::min(static_cast<int32_t>(found - sums.begin()), count - 1);
  }

 private:
  uint64_t state_[4];

  static uint64_t Rotated(uint64_t x, int by) {
    return (x << by) | (x >> (64 - by));
  }

  uint64_t Next() {
    const uint64_t result = Rotated(state_[1] * 5, 7) * 9;
    const uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = Rotated(state_[3], 45);
    return result;
  }
};

}  // namespace gdp

#endif  // GDP_GRAPPLER_PLACERS_SEARCH_MOVES_MOVE_RANDOM_H_

// Connected sets of vertices; the rules are those of `grown` in
// neighbourhood.py, and the random numbers are those of Python's
// `random.Random`, so that both give the same sets.

#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

namespace {

// Mersenne Twister (Matsumoto and Nishimura, ACM TOMACS 8, 1998), seeded by
// their init_by_array as CPython's _randommodule.c does with a whole number.
class PythonRandom {
 public:
  explicit PythonRandom(uint64_t seed) {
    const uint32_t key[] = {static_cast<uint32_t>(seed),
                            static_cast<uint32_t>(seed >> 32)};
    const int length = key[1] ? 2 : 1;
    state_[0] = 19650218u;
    for (int i = 1; i < kSize; ++i) state_[i] = 1812433253u * Mixed(i - 1) + i;
    int i = 1, j = 0;
    for (int k = kSize; k > 0; --k) {
      state_[i] = (state_[i] ^ (Mixed(i - 1) * 1664525u)) + key[j] + j;
      Advance(&i);
      j = (j + 1) % length;
    }
    for (int k = kSize - 1; k > 0; --k) {
      state_[i] = (state_[i] ^ (Mixed(i - 1) * 1566083941u)) - i;
      Advance(&i);
    }
    state_[0] = 0x80000000u;
  }

  // From 0 up to 1.
  double Draw() {
    const uint32_t high = Next() >> 5, low = Next() >> 6;
    return (high * 67108864. + low) / 9007199254740992.;
  }

 private:
  static constexpr int kSize = 624, kAhead = 397;
  uint32_t state_[kSize];
  int at_ = kSize;

  uint32_t Mixed(int i) const { return state_[i] ^ (state_[i] >> 30); }

  void Advance(int* i) {
    if (++*i < kSize) return;
    state_[0] = state_[kSize - 1];
    *i = 1;
  }

  uint32_t Next() {
    if (at_ == kSize) Refill();
    uint32_t y = state_[at_++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
  }

  void Refill() {
    for (int k = 0; k < kSize; ++k) {
      const uint32_t y =
          (state_[k] & 0x80000000u) | (state_[(k + 1) % kSize] & 0x7fffffffu);
      state_[k] =
          state_[(k + kAhead) % kSize] ^ (y >> 1) ^ (y & 1 ? 0x9908b0dfu : 0u);
    }
    at_ = 0;
  }
};

}  // namespace

extern "C" {

// Writes up to `size` connected vertices around `start` to `out` and returns
// how many, or -1 if memory runs out. Only vertices with the label of `start`
// count. Of V vertices, those next to v are neighbours[starts[v]] to
// neighbours[starts[v + 1]], with as many `eagerness`.
int64_t gdp_grown(int64_t num_vertices, const int64_t* starts,
                  const int64_t* neighbours, const double* eagerness,
                  const int32_t* labels, int64_t start, int64_t size,
                  uint64_t seed, int64_t* out) try {
  struct Edge {
    int64_t vertex;
    double eager;
  };
  PythonRandom random(seed);
  std::vector<uint8_t> inside(num_vertices, 0);
  std::vector<Edge> frontier;
  int64_t count = 0;
  const auto add = [&](int64_t vertex) {
    inside[vertex] = 1;
    out[count++] = vertex;
    for (int64_t e = starts[vertex]; e < starts[vertex + 1]; ++e) {
      if (labels[neighbours[e]] != labels[vertex]) continue;
      frontier.push_back({neighbours[e], eagerness[e]});
    }
  };
  add(start);
  while (!frontier.empty() && count < size) {
    const size_t index = static_cast<size_t>(random.Draw() * frontier.size());
    const Edge edge = frontier[index];
    if (!inside[edge.vertex] && random.Draw() >= edge.eager) continue;
    frontier[index] = frontier.back();
    frontier.pop_back();
    if (!inside[edge.vertex]) add(edge.vertex);
  }
  return count;
} catch (const std::bad_alloc&) {
  return -1;
}

}  // extern "C"

// Products of small matrices, computed in the caller's thread.

#include <algorithm>
#include <cstdint>

// Compiles a function once for each of these processors. The dynamic loader
// chooses the version for the processor at hand.
#if defined(__x86_64__) && defined(__linux__)
#define GDP_EACH_PROCESSOR \
  __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define GDP_EACH_PROCESSOR
#endif

namespace {

// Adds in the order of `inner` on all processors, so that results are equal.
template <typename T>
inline __attribute__((always_inline)) void Multiply(int64_t rows, int64_t inner,
                                                    int64_t columns,
                                                    const T* __restrict a,
                                                    const T* __restrict b,
                                                    T* __restrict out) {
  std::fill_n(out, rows * columns, T{0});
  for (int64_t r = 0; r < rows; ++r) {
    T* __restrict sums = out + r * columns;
    for (int64_t k = 0; k < inner; ++k) {
      const T factor = a[r * inner + k];
      const T* __restrict row = b + k * columns;
      for (int64_t c = 0; c < columns; ++c) sums[c] += factor * row[c];
    }
  }
}

}  // namespace

extern "C" {

// Writes the product [rows, columns] of `a` [rows, inner] and `b` [inner,
// columns].
GDP_EACH_PROCESSOR void gdp_multiply_float32(int64_t rows, int64_t inner,
                                             int64_t columns, const float* a,
                                             const float* b, float* out) {
  Multiply(rows, inner, columns, a, b, out);
}

GDP_EACH_PROCESSOR void gdp_multiply_float64(int64_t rows, int64_t inner,
                                             int64_t columns, const double* a,
                                             const double* b, double* out) {
  Multiply(rows, inner, columns, a, b, out);
}

}  // extern "C"

// Lists of integers, stored one after the other.

#ifndef GDP_GRAPPLER_FEATURES_MOVES_ROWS_H_
#define GDP_GRAPPLER_FEATURES_MOVES_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace gdp {

// Rows of a sparse matrix: the values of row r are values[starts[r]] to
// values[starts[r + 1] - 1].
struct Rows {
  std::vector<int32_t> starts, values;

  void Build(int32_t num_rows, const std::vector<int32_t>& rows,
             const std::vector<int32_t>& entries) {
    starts.assign(num_rows + 1, 0);
    for (const int32_t row : rows) ++starts[row + 1];
    std::partial_sum(starts.begin(), starts.end(), starts.begin());
    std::vector<int32_t> next(starts.begin(), starts.end() - 1);
    values.resize(entries.size());
    for (size_t i = 0; i < entries.size(); ++i) {
      values[next[rows[i]]++] = entries[i];
    }
  }
};

}  // namespace gdp

#endif  // GDP_GRAPPLER_FEATURES_MOVES_ROWS_H_

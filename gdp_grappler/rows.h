// Lists of integers, stored one after the other.

#ifndef GDP_GRAPPLER_ROWS_H_
#define GDP_GRAPPLER_ROWS_H_

#include <cstdint>
#include <numeric>
#include <vector>

namespace gdp {

// The values of one row.
struct Row {
  const int32_t* first;
  const int32_t* last;
  const int32_t* begin() const { return first; }
  const int32_t* end() const { return last; }
};

// Rows of uneven length: the values of row r are values[starts[r]] to
// values[starts[r + 1] - 1].
struct Rows {
  std::vector<int32_t> starts, values;

  // Sorts n values by their row; values of one row keep their order.
  template <typename RowOf, typename Value>
  void Fill(int32_t num_rows, int32_t n, RowOf row_of, Value value) {
    starts.assign(num_rows + 1, 0);
    for (int32_t i = 0; i < n; ++i) ++starts[row_of(i) + 1];
    std::partial_sum(starts.begin(), starts.end(), starts.begin());
    std::vector<int32_t> next(starts.begin(), starts.end() - 1);
    values.resize(n);
    for (int32_t i = 0; i < n; ++i) values[next[row_of(i)]++] = value(i);
  }

  // Sorts `entries` by their rows: rows[i] is the row of entries[i].
  void Fill(int32_t num_rows, const std::vector<int32_t>& rows,
            const std::vector<int32_t>& entries) {
    Fill(
        num_rows, static_cast<int32_t>(rows.size()),
        [&](int32_t i) { return rows[i]; },
        [&](int32_t i) { return entries[i]; });
  }

  Row operator[](int32_t row) const {
    return {values.data() + starts[row], values.data() + starts[row + 1]};
  }
};

}  // namespace gdp

#endif  // GDP_GRAPPLER_ROWS_H_

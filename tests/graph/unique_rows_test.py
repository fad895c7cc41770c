import numpy as np
import pytest

from gdp_grappler.graph import unique_rows


def test_rows_by_their_first_column_and_then_by_the_next():
  values, where = unique_rows.distinct(
      [np.array([2, -1, 2, 2]), np.array([5, 9, 3, 5])])
  assert values.tolist() == [[-1, 2, 2], [9, 3, 5]]
  assert where.tolist() == [2, 0, 1, 2]


@pytest.mark.parametrize('high', [3, 1 << 20, 1 << 31, 1 << 40])
def test_they_are_those_of_unique(high):
  rng = np.random.default_rng(high)
  drawn = rng.integers(-3, high, (4, 200))
  given = drawn[:, rng.integers(0, 200, 500)]
  values, where = unique_rows.distinct(list(given))
  expected, places = np.unique(given, axis=1, return_inverse=True)
  assert (values == expected).all() and (where == places.reshape(-1)).all()


@pytest.mark.parametrize('kind', [bool, np.uint8, np.int32])
def test_small_types_do_not_overflow(kind):
  given = np.array([[1, 0, 1], [0, 1, 1], [1, 1, 1], [1, 0, 0]], kind)
  values, where = unique_rows.distinct(list(given) * 8)
  assert (values[:, where] == np.tile(given, (8, 1))).all()
  assert values.shape == (32, 3)


def test_no_rows():
  values, where = unique_rows.distinct([np.zeros(0, int)] * 3)
  assert values.shape == (3, 0) and not len(where)


def test_columns_that_are_too_wide_for_one_number():
  """Keys once wrapped, and rows were out of order or one."""
  rows = np.arange(1000)
  for others in ([np.where(rows % 2, 0, 1 << 60)], [rows * (1 << 51), rows % 7],
                 [np.where(rows % 3, -(1 << 62), 1 << 62), rows]):
    found, where = unique_rows.distinct([rows // 2, *others])
    expected, inverse = np.unique(np.stack([rows // 2, *others]), axis=1,
                                  return_inverse=True)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(where, inverse.reshape(-1))

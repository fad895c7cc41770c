"""Groups that can become one without leaving it too little to choose from."""

from __future__ import annotations

import numpy as np

from gdp_grappler.graph import unique_rows


def kinds(allowed: np.ndarray) -> np.ndarray:
  """int32 [G], equal for groups that may be joined.

  Those have the same devices, or one has some in addition: a tensor's shape may
  change on the CPU as well, but nobody wants it there if what the tensor is
  computed from and for must be on a GPU. What is joined has the devices that
  all may have; groups with one device and groups with several stay apart.

  Args:
    allowed: bool [G, D].
  """
  sets, of_groups = unique_rows.distinct(
      list(np.packbits(allowed, axis=1).T.astype(np.int64)))
  first = np.zeros(sets.shape[1], np.int64)
  first[of_groups] = np.arange(len(of_groups))
  rows, counts = allowed[first], np.bincount(of_groups, minlength=len(first))
  return _joined(rows, counts)[of_groups].astype(np.int32)


def _joined(rows: np.ndarray, counts: np.ndarray) -> np.ndarray:
  """int [S], for each set of devices the set that it becomes.

  Args:
    rows: bool [S, D], sets of devices.
    counts: int [S], groups with that set.
  """
  result, sizes = np.arange(len(rows)), rows.sum(axis=1)
  for large in np.argsort(sizes, kind='stable').tolist():
    within = np.flatnonzero(~(rows & ~rows[large]).any(axis=1) & (sizes > 1)
                            & (sizes < sizes[large]))
    if within.size:
      result[large] = result[within[counts[within].argmax()]]
  return result


def of_all(allowed: np.ndarray, labels: np.ndarray, count: int) -> np.ndarray:
  """bool [M, D], devices that all of a set may have.

  Args:
    allowed: bool [G, D].
    labels: int [G], the set of each, from 0 to M - 1.
    count: M.
  """
  return np.stack(
      [np.bincount(labels, ~column, count) == 0 for column in allowed.T],
      axis=1)

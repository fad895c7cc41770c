"""Finds groups that may be joined without losing too many legal devices."""

from __future__ import annotations

import numpy as np

from gdp_grappler.graph import unique_rows


def kinds(allowed: np.ndarray) -> np.ndarray:
  """Numbers groups, so that groups of one number may be joined, int32 [G].

  Groups of one number have the same legal devices, or some of them have more.
  For example, a Reshape may also be on the CPU, but is not wanted there if the
  ops before and after it must be on a GPU. Joined groups may only be on the
  devices that are legal for all of them. Groups with one legal device are never
  joined with groups that have several.

  Args:
    allowed: bool [G, D], legal devices of each group.
  """
  sets, of_groups = unique_rows.distinct(
      list(np.packbits(allowed, axis=1).T.astype(np.int64)))
  first = np.zeros(sets.shape[1], np.int64)
  first[of_groups] = np.arange(len(of_groups))
  rows, counts = allowed[first], np.bincount(of_groups, minlength=len(first))
  return _joined(rows, counts)[of_groups].astype(np.int32)


def _joined(rows: np.ndarray, counts: np.ndarray) -> np.ndarray:
  """Returns, for each set of devices, the set that replaces it, int [S].

  A set is replaced by a smaller set that it contains: the most frequent one.

  Args:
    rows: bool [S, D], sets of devices.
    counts: int [S], number of groups with each set.
  """
  result, sizes = np.arange(len(rows)), rows.sum(axis=1)
  for large in np.argsort(sizes, kind='stable').tolist():
    within = np.flatnonzero(~(rows & ~rows[large]).any(axis=1) & (sizes > 1)
                            & (sizes < sizes[large]))
    if within.size:
      result[large] = result[within[counts[within].argmax()]]
  return result


def of_all(allowed: np.ndarray, labels: np.ndarray, count: int) -> np.ndarray:
  """Returns the devices that are legal for all members of a set, bool [M, D].

  Args:
    allowed: bool [G, D], legal devices of each member.
    labels: int [G], number of each member's set, from 0 to M - 1.
    count: M, number of sets.
  """
  return np.stack(
      [np.bincount(labels, ~column, count) == 0 for column in allowed.T],
      axis=1)

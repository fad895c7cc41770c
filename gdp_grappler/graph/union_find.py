"""Union-find: disjoint sets that can be joined."""

from __future__ import annotations

from typing import Iterable

import numpy as np


class UnionFind:
  """Disjoint sets of 0 .. n-1."""

  def __init__(self, n: int) -> None:
    self._parent = list(range(n))

  def find(self, item: int) -> int:
    """Returns the representative of an item's set."""
    parent = self._parent
    while parent[item] != item:
      parent[item] = parent[parent[item]]
      item = parent[item]
    return item

  def join(self, a: int, b: int) -> None:
    """Joins two sets; the smaller representative stays."""
    a, b = self.find(a), self.find(b)
    if a != b:
      self._parent[max(a, b)] = min(a, b)

  def join_all(self, items: Iterable[int]) -> None:
    """Joins the sets of all items."""
    members = list(items)
    for item in members[1:]:
      self.join(members[0], item)

  def numbers(self) -> np.ndarray:
    """Numbers the sets from 0 in the order of their first items, int32 [n]."""
    # A parent is smaller than its children, so roots are the first items.
    roots = np.array(self._parent, np.int32)
    while True:
      above = roots[roots]
      if (above == roots).all():
        break
      roots = above
    return np.unique(roots, return_inverse=True)[1].astype(np.int32)

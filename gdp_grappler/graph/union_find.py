"""Sets that grow together."""

from __future__ import annotations

from typing import Iterable

import numpy as np


class UnionFind:
  """Disjoint sets of 0 .. n-1."""

  def __init__(self, n: int) -> None:
    self._parent = list(range(n))

  def find(self, item: int) -> int:
    """The representative of an item's set."""
    parent = self._parent
    while parent[item] != item:
      parent[item] = parent[parent[item]]
      item = parent[item]
    return item

  def join(self, a: int, b: int) -> None:
    """Makes two sets one; the smaller representative stays."""
    a, b = self.find(a), self.find(b)
    if a != b:
      self._parent[max(a, b)] = min(a, b)

  def join_all(self, items: Iterable[int]) -> None:
    """Makes the sets of all items one."""
    members = list(items)
    for item in members[1:]:
      self.join(members[0], item)

  def numbers(self) -> np.ndarray:
    """int32 [n], sets numbered 0 .. in the order of their first item."""
    # Parents come before their children, so roots are firsts.
    roots = np.array(self._parent, np.int32)
    while True:
      above = roots[roots]
      if (above == roots).all():
        break
      roots = above
    return np.unique(roots, return_inverse=True)[1].astype(np.int32)

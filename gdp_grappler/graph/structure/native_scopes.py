"""The functions of `name_scopes.cc` over names of ops."""

from __future__ import annotations

import ctypes
import dataclasses
import functools
from typing import Sequence

import numpy as np

from gdp_grappler import native


@dataclasses.dataclass(frozen=True, eq=False)
class NativeScopes:
  """S scopes of N names, and a tree of scopes with P places.

  A place is a scope together with the scopes around it. The scope of a gradient
  has the place of its forward op's scope.

  Attributes:
    scopes: int32 [N], scope of each name.
    backward: bool [S], whether a scope is of gradients, by its name.
    forward_ops: int64 [S], index of the name whose gradient a scope has; -1 for
      other scopes.
    places: int64 [S], place of each scope in the tree.
    parents: int64 [P], parent of each place. Place 0 is the root, and its own
      parent.
    families: int64 [2 P], two families of each place: of its number, and of the
      number of times that it was opened. Numbered by first use; -1 for place 0.
    numbers: int64 [2 P], both numbers of each place; -1 for none.
    siblings: int64 [2 P], equal for families in the same scope.
  """

  scopes: np.ndarray
  backward: np.ndarray
  forward_ops: np.ndarray
  places: np.ndarray
  parents: np.ndarray
  families: np.ndarray
  numbers: np.ndarray
  siblings: np.ndarray


def read(names: Sequence[str]) -> NativeScopes:
  """Reads the scopes of N names.

  Raises:
    MemoryError: there is not enough memory.
  """
  lib = _library()
  texts, ends = _laid_out(names)
  handle = lib.gdp_scopes_read(len(names), texts, ends.ctypes.data)
  if not handle:
    raise MemoryError('No memory for the names of a graph of this size.')
  try:
    sizes = np.empty(2, np.int64)
    lib.gdp_scopes_sizes(handle, sizes.ctypes.data)
    count, num_places = sizes.tolist()
    of_names = np.empty(len(names), np.int32)
    of_scopes = np.empty((3, count), np.int64)
    parents = np.empty(num_places, np.int64)
    entries = np.empty((3, 2 * num_places), np.int64)
    lib.gdp_scopes_copy(
        handle,
        *(array.ctypes.data
          for array in (of_names, of_scopes, parents, entries)))
  finally:
    lib.gdp_scopes_destroy(handle)
  backward, forward_ops, places = of_scopes
  families, numbers, siblings = entries
  return NativeScopes(of_names, backward > 0, forward_ops, places, parents,
                      families, numbers, siblings)


def levels(names: Sequence[str], depths: Sequence[int],
           wrappers: Sequence[str]) -> np.ndarray:
  """Ranks the first parts of each name's scope, int32 [D, N].

  Args:
    names: [N], names of ops.
    depths: [D], numbers of parts, the largest first.
    wrappers: Prefixes of parts. Parts with such a prefix are left out before
      parts are counted.

  Raises:
    MemoryError: there is not enough memory.
  """
  result = np.empty((len(depths), len(names)), np.int32)
  parts = np.array(depths, np.int32)
  texts, ends = _laid_out(names)
  wrapper_texts, wrapper_ends = _laid_out(wrappers)
  if _library().gdp_scope_levels(len(names), texts, ends.ctypes.data,
                                 len(wrappers),
                                 wrapper_texts, wrapper_ends.ctypes.data,
                                 len(parts), parts.ctypes.data,
                                 result.ctypes.data):
    raise MemoryError('No memory for the names of a graph of this size.')
  return result


def _laid_out(texts: Sequence[str]) -> tuple[bytes, np.ndarray]:
  """Returns all texts in one, and the end of each, int64 [n]."""
  # Names that users make may not be valid Unicode.
  each = [text.encode('utf-8', 'surrogatepass') for text in texts]
  lengths = np.fromiter(map(len, each), np.int64, len(each))
  return b''.join(each), np.cumsum(lengths)


@functools.cache
def _library() -> ctypes.CDLL:
  lib = native.load(native.Library.GRAPH)
  pointer, text, i64 = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int64
  native.declare(
      lib, {
          'gdp_scopes_read': (pointer, [i64, text, pointer]),
          'gdp_scopes_destroy': (None, [pointer]),
          'gdp_scopes_sizes': (None, [pointer, pointer]),
          'gdp_scopes_copy': (None, [pointer] * 5),
          'gdp_scope_levels':
              (ctypes.c_int32,
               [i64, text, pointer, i64, text, pointer, i64, pointer, pointer]),
      })
  return lib

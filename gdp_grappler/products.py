"""Matrix products that are computed in the caller's thread.

`numpy.matmul` calls a BLAS library, which shares out all but the smallest
products among the cores. After a product, the threads of OpenBLAS wait for the
next one in a busy loop, for about a tenth of a second. A search multiplies
small matrices all the time, so these threads would occupy the cores of the
user's program. `products.cc` has no threads.
"""

from __future__ import annotations

import ctypes
import functools

import numpy as np

from gdp_grappler import native


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
  """Returns a matrix product: [A, C] of two matrices, [A] for a vector `b`.

  Args:
    a: float [A, B].
    b: float [B, C] or [B].

  Returns:
    float32 if both arguments are, else float64. All processors add in the order
    of `B`, so they have equal results.

  Raises:
    ValueError: the shapes do not match.
  """
  if a.ndim != 2 or b.ndim not in (1, 2) or a.shape[1] != len(b):
    raise ValueError(f'No product of {list(a.shape)} and {list(b.shape)}.')
  single = a.dtype == b.dtype == np.float32
  dtype = np.float32 if single else np.float64
  a, b = np.ascontiguousarray(a, dtype), np.ascontiguousarray(b, dtype)
  result = np.empty(a.shape[:1] + b.shape[1:], dtype)
  columns = b.shape[1] if b.ndim == 2 else 1
  multiply = getattr(_library(), f'gdp_multiply_{np.dtype(dtype).name}')
  multiply(*a.shape, columns, a.ctypes.data, b.ctypes.data, result.ctypes.data)
  return result


@functools.cache
def _library() -> ctypes.CDLL:
  lib = native.load(native.Library.PRODUCTS)
  for function in lib.gdp_multiply_float32, lib.gdp_multiply_float64:
    function.restype = None
    function.argtypes = [ctypes.c_int64] * 3 + [ctypes.c_void_p] * 3
  return lib

"""Finds and loads the shared libraries that the build puts into `lib/`.

This module checks that a library was built for the running TensorFlow. The
modules that call a library declare its functions.
"""

from __future__ import annotations

import ctypes
import enum
import functools
import json
import pathlib
from typing import Any, Mapping, Sequence

import numpy as np

from gdp_grappler import errors

LIB_DIR = pathlib.Path(__file__).parent / 'lib'
# Only the dynamic linker loads this library, by its path.
LOOPBACK_PATH = LIB_DIR / 'libgdp_loopback.so'
_REMEDY = ('Reinstall the package next to the TensorFlow it is to run with: '
           'pip install --force-reinstall --no-deps gdp-grappler')


class Library(enum.Enum):
  """The libraries, by file name."""

  SIMULATOR = 'libgdp_simulator.so'
  GRAPH = 'libgdp_graph.so'  # Algorithms on a whole graph.
  MOVES = 'libgdp_moves.so'  # Algorithms for the moves of a search.
  PRODUCTS = 'libgdp_products.so'  # Products of matrices.
  LIST_SCHEDULER = 'libgdp_list_scheduler.so'
  GRAPPLER = 'libgdp_grappler.so'  # The pass and the op estimator.
  EMULATED_GPUS = 'libgdp_emulated_gpus.so'


# Libraries that are linked against TensorFlow.
_WITH_TENSORFLOW = {Library.GRAPPLER, Library.EMULATED_GPUS}
# TensorFlow loads this library by its path.
EMULATED_GPUS_PATH = LIB_DIR / Library.EMULATED_GPUS.value


@functools.cache
def load(library: Library) -> ctypes.CDLL:
  """Loads a library.

  Raises:
    PluginError: the library is missing, cannot be loaded, or was built for
      another TensorFlow.
  """
  if library in _WITH_TENSORFLOW:
    _check_tensorflow()
  try:
    return ctypes.CDLL(str(LIB_DIR / library.value))
  except OSError as error:
    raise errors.PluginError(
        f'Cannot load {library.value}: {error}. {_REMEDY}') from error


def declare(library: ctypes.CDLL,
            functions: Mapping[str, tuple[Any, Sequence[Any]]]) -> None:
  """Declares the types of a library's functions.

  Args:
    library: The library.
    functions: By name, the type of the result, or None, and the types of the
      arguments.
  """
  for name, (result, arguments) in functions.items():
    function = getattr(library, name)
    function.restype, function.argtypes = result, arguments


# Functions that make contiguous arrays of a C type.
i32, i64, f64, u8 = (functools.partial(np.ascontiguousarray, dtype=dtype)
                     for dtype in (np.int32, np.int64, np.float64, np.uint8))


def struct(**fields: int | float | np.ndarray | None) -> ctypes.Structure:
  """Returns a C struct, which keeps its arrays alive.

  Args:
    **fields: In the order of the struct: an int for `int32_t`, a float for
      `double`, and a contiguous array or None for a pointer. A double must be
      a float: an int would shift the fields after it.
  """
  members = {name: _member(value) for name, value in fields.items()}
  types = tuple((name, of) for name, (of, _) in members.items())
  result = _struct_type(types)(*(value for _, value in members.values()))
  result.arrays = fields
  return result


def _member(
    value: int | float | np.ndarray | None) -> tuple[Any, int | float | None]:
  """Returns the C type of a field, and its value: an array's address."""
  if value is None:
    return ctypes.c_void_p, None
  if isinstance(value, np.ndarray):
    assert value.flags.c_contiguous
    return ctypes.c_void_p, value.ctypes.data
  return ctypes.c_double if isinstance(value, float) else ctypes.c_int32, value


@functools.cache
def _struct_type(types: tuple[tuple[str, Any], ...]) -> type[ctypes.Structure]:
  return type('Struct', (ctypes.Structure,), {'_fields_': types})


def built_for_tensorflow() -> str:
  """Returns the version of TensorFlow that the libraries were built for.

  Raises:
    PluginError: the file with the version is missing or damaged.
  """
  path = LIB_DIR / 'build_info.json'
  try:
    return json.loads(path.read_text())['tensorflow']
  except (OSError, ValueError, KeyError) as error:
    raise errors.PluginError(
        f'The native libraries are missing ({path}: {error}). {_REMEDY}'
    ) from error


def _check_tensorflow() -> None:
  import tensorflow as tf
  built, running = built_for_tensorflow(), tf.__version__
  if _minor(built) != _minor(running):
    raise errors.PluginError(
        f'The native library was built for TensorFlow {built} but {running} '
        f'is running. {_REMEDY}')


def _minor(version: str) -> tuple[str, ...]:
  return tuple(version.split('.')[:2])

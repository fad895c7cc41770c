"""Finds and loads the shared libraries that the build put in `lib/`.

Every user of a library declares its own functions; this module only answers
"where is it, and does it fit this TensorFlow".
"""

from __future__ import annotations

import ctypes
import functools
import json
import pathlib

from gdp_grappler import errors

LIB_DIR = pathlib.Path(__file__).parent / 'lib'
# TensorFlow is given this one by its path.
EMULATED_GPUS_PATH = LIB_DIR / 'libgdp_emulated_gpus.so'
# The dynamic linker is given this one by its path.
LOOPBACK_PATH = LIB_DIR / 'libgdp_loopback.so'
_REMEDY = ('Reinstall the package next to the TensorFlow it is to run with: '
           'pip install --force-reinstall --no-deps gdp-grappler')


@functools.cache
def load_simulator() -> ctypes.CDLL:
  """The simulator; knows nothing of TensorFlow.

  Raises:
    PluginError: the library is missing or cannot be loaded.
  """
  return _load('libgdp_simulator.so')


@functools.cache
def load_graph() -> ctypes.CDLL:
  """What is done with all of a graph; knows nothing of TensorFlow.

  Raises:
    PluginError: the library is missing or cannot be loaded.
  """
  return _load('libgdp_graph.so')


@functools.cache
def load_moves() -> ctypes.CDLL:
  """What moves of a search need; knows nothing of TensorFlow.

  Raises:
    PluginError: the library is missing or cannot be loaded.
  """
  return _load('libgdp_moves.so')


@functools.cache
def load_list_scheduler() -> ctypes.CDLL:
  """The list schedulers; knows nothing of TensorFlow.

  Raises:
    PluginError: the library is missing or cannot be loaded.
  """
  return _load('libgdp_list_scheduler.so')


@functools.cache
def load_grappler() -> ctypes.CDLL:
  """The Grappler pass and the op estimator; linked against TensorFlow.

  Raises:
    PluginError: the library is missing, or was built for another TensorFlow.
  """
  _check_tensorflow()
  return _load('libgdp_grappler.so')


@functools.cache
def load_emulated_gpus() -> ctypes.CDLL:
  """The emulated GPUs; linked against TensorFlow, which loads them as well.

  Raises:
    PluginError: the library is missing, or was built for another TensorFlow.
  """
  _check_tensorflow()
  return _load(EMULATED_GPUS_PATH.name)


def built_for_tensorflow() -> str:
  """Version of the TensorFlow that the libraries were built against.

  Raises:
    PluginError: the build left no libraries.
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


def _load(file_name: str) -> ctypes.CDLL:
  try:
    return ctypes.CDLL(str(LIB_DIR / file_name))
  except OSError as error:
    raise errors.PluginError(
        f'Cannot load {file_name}: {error}. {_REMEDY}') from error


def _minor(version: str) -> tuple[str, ...]:
  return tuple(version.split('.')[:2])

"""Every library of the list is built, loads, and fits this TensorFlow."""

import ctypes
import importlib.metadata
import pathlib
import runpy
import shutil
import subprocess
import sys

import pytest

from gdp_grappler import native
from helpers import fresh

_LIST = pathlib.Path(__file__).parents[2] / 'bazel' / 'native_sources.bzl'
_NATIVE = runpy.run_path(str(_LIST))
_LIBRARIES = _NATIVE['NATIVE_LIBRARIES']


def test_built_for_the_installed_tensorflow():
  built = native.built_for_tensorflow()
  assert built == importlib.metadata.version('tensorflow')
  assert built.startswith(_NATIVE['TENSORFLOW_MINOR'] + '.')


def test_lib_holds_the_list_and_nothing_else():
  assert ({path.name for path in native.LIB_DIR.glob('*.so')
          } == set(_LIBRARIES))


@pytest.mark.parametrize(
    'name', [n for n, spec in _LIBRARIES.items() if not spec['tensorflow']])
def test_loads_without_tensorflow(name):
  code = ('import ctypes, sys; ctypes.CDLL(sys.argv[1]); '
          'assert "libtensorflow" not in open("/proc/self/maps").read()')
  subprocess.run([sys.executable, '-c', code,
                  str(native.LIB_DIR / name)], env=fresh.environment(),
                 check=True)


def test_pass_loads_next_to_tensorflow():
  assert isinstance(native.load(native.Library.GRAPPLER), ctypes.CDLL)


def test_two_copies_in_one_process_do_not_end_it(tmp_path):
  copy = tmp_path / 'libgdp_grappler.so'
  shutil.copy(native.LIB_DIR / 'libgdp_grappler.so', copy)
  code = f"""
import ctypes
import tensorflow as tf
ctypes.CDLL({str(copy)!r})
tf.config.optimizer.set_experimental_options({{'gdp_placement': True}})
print(float(tf.function(lambda x: tf.sin(x) * 2)(0.)))
"""
  finished = fresh.run_code(code)
  assert finished.results == 0.
  line, = finished.notices
  assert 'Placement is off. Another copy of the native library' in line


def test_loader_knows_the_release_it_was_built_for():
  loader = (native.LIB_DIR / 'libgdp_loader.so').read_bytes()
  assert f'TensorFlow {_NATIVE["TENSORFLOW_MINOR"]} '.encode() in loader

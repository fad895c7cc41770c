"""Libraries that are missing or do not fit; the others load everywhere."""

import ctypes
import json
import pathlib

import numpy as np
import pytest

from gdp_grappler import errors
from gdp_grappler import native


@pytest.fixture
def folder(monkeypatch, tmp_path):
  monkeypatch.setattr(native, 'LIB_DIR', tmp_path)
  return tmp_path


def test_a_build_without_libraries(folder: pathlib.Path):
  with pytest.raises(errors.PluginError, match='missing .* Reinstall'):
    native.built_for_tensorflow()
  (folder / 'build_info.json').write_text('{}')
  with pytest.raises(errors.PluginError, match='missing'):
    native.built_for_tensorflow()


def test_a_library_that_does_not_load(folder: pathlib.Path):
  native.load.cache_clear()
  with pytest.raises(errors.PluginError,
                     match=r'Cannot load libgdp_graph\.so: .* Reinst'):
    native.load(native.Library.GRAPH)


@pytest.mark.parametrize('built, running, fits', [
    ('2.21.0', '2.21.3', True),
    ('2.21.0-rc1', '2.21.0', True),
    ('2.20.0', '2.21.0', False),
    ('2.2.1', '2.21.0', False),
])
def test_the_minor_release_has_to_be_the_same(folder, monkeypatch, built,
                                              running, fits):
  import tensorflow as tf
  (folder / 'build_info.json').write_text(json.dumps({'tensorflow': built}))
  monkeypatch.setattr(tf, '__version__', running)
  if fits:
    native._check_tensorflow()
  else:
    with pytest.raises(errors.PluginError,
                       match=f'built for TensorFlow {built} but {running}'):
      native._check_tensorflow()


def test_a_struct_has_its_fields_in_order_and_keeps_its_arrays():
  columns = np.arange(6.).reshape(2, 3).T
  made = native.struct(count=np.int64(3), share=np.float64(.5),
                       rows=native.i32(columns), more=7, none=None)
  assert made._fields_ == (('count', ctypes.c_int32), ('share',
                                                       ctypes.c_double),
                           ('rows', ctypes.c_void_p), ('more', ctypes.c_int32),
                           ('none', ctypes.c_void_p))
  assert (made.count, made.share, made.more) == (3, .5, 7)
  assert made.none is None
  rows = (ctypes.c_int32 * 6).from_address(made.rows)
  assert rows[:] == [0, 3, 1, 4, 2, 5]
  assert made.arrays['rows'].ctypes.data == made.rows
  with pytest.raises(AssertionError):
    native.struct(rows=columns)

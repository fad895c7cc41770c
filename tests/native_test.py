"""Libraries that are missing or do not fit; the others load everywhere."""

import json
import pathlib

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

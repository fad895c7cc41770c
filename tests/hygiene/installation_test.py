"""What is tested is what pip installed, whole."""

import importlib.metadata
import pathlib

import pytest

import gdp_grappler
from helpers import fresh


@pytest.fixture(name='distribution')
def _distribution():
  try:
    return importlib.metadata.distribution('gdp-grappler')
  except importlib.metadata.PackageNotFoundError:
    pytest.skip('this interpreter runs the source tree')


def test_tests_see_the_installed_package(distribution):
  installed = pathlib.Path(distribution.locate_file('gdp_grappler'))
  assert pathlib.Path(gdp_grappler.__file__).parent.samefile(installed)


def test_version_is_the_one_installed(distribution):
  assert distribution.version == gdp_grappler.__version__


def test_loader_is_where_tensorflow_looks(distribution):
  plugins = pathlib.Path(distribution.locate_file('tensorflow-plugins'))
  tensorflow = importlib.metadata.distribution('tensorflow')
  assert (plugins / 'libgdp_loader.so').exists()
  assert plugins.parent.samefile(tensorflow.locate_file('.'))


def test_core_depends_on_four_packages(distribution):
  core = [r for r in distribution.requires if 'extra ==' not in r]
  assert sorted(r.split('<')[0].split('>')[0] for r in core) == [
      'absl-py', 'numpy', 'rich', 'tensorflow'
  ]


@pytest.mark.parametrize('name',
                         ['gdp', 'gdp_bench', 'gdp_pretrain', 'gdp_train'])
def test_console_script_exists(distribution, name):
  # Each in an interpreter of its own: their flags have the same names.
  done = fresh.run_code(
      'import importlib.metadata, json; '
      f'(script,) = importlib.metadata.distribution({distribution.name!r})'
      f'.entry_points.select(group="console_scripts", name={name!r}); '
      'print(json.dumps(callable(script.load())))')
  assert done.results is True

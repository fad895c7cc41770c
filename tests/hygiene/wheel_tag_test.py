"""The platform tag that a wheel gets."""

import pathlib
import runpy
import shutil

import pytest

from gdp_grappler import native

_TOP = pathlib.Path(__file__).parents[2]
_MANYLINUX = runpy.run_path(str(_TOP / 'bazel/manylinux.py'))


def test_the_newest_symbol_counts_by_number():
  assert _MANYLINUX['newest']("""
  00000 DF *UND* 0000 (GLIBC_2.9)  memcpy
  00000 DF *UND* 0000 (GLIBC_2.17) clock_gettime
  00000 DF *UND* 0000 (GLIBCXX_3.4.9) _ZNSo
  """) == {'GLIBC': (2, 17), 'GLIBCXX': (3, 4, 9)}


@pytest.mark.parametrize('symbols, tag', [
    ('(GLIBC_2.17)', 'manylinux_2_28_x86_64'),
    ('(GLIBC_2.34)', 'manylinux_2_34_x86_64'),
    ('(GLIBC_2.17) (GLIBCXX_3.4.30)', 'manylinux_2_35_x86_64'),
    ('(GLIBC_2.99)', None),
])
def test_tag(symbols, tag, monkeypatch):
  platform = _MANYLINUX['platform']
  monkeypatch.setitem(platform.__globals__, 'subprocess', _Printing(symbols))
  assert platform([], 'x86_64') == tag


class _Printing:
  """In place of `subprocess`: a program that prints a text."""

  def __init__(self, text):
    self.stdout = text

  def run(self, *args, **kwargs):
    return self


@pytest.mark.skipif(not shutil.which('objdump'), reason='needs binutils')
def test_libraries_have_a_tag():
  libraries = sorted(
      (pathlib.Path(native.__file__).parent / 'lib').glob('*.so'))
  assert _MANYLINUX['platform'](libraries, 'x86_64').startswith('manylinux_2_')


def test_types_are_announced():
  for package in ('gdp_grappler', 'placer_model'):
    assert (_TOP / package / 'py.typed').exists()

"""README, Makefile, build lists and git say the same."""

import ast
import importlib
import pathlib
import re
import runpy
import subprocess
from typing import Iterator

import pytest

import gdp_grappler
from gdp_grappler.bin import placer_docs
from gdp_grappler.reports import glossary

_TOP = pathlib.Path(__file__).parents[2]
_NATIVE = runpy.run_path(str(_TOP / 'bazel' / 'native_sources.bzl'))
_MAX_BYTES = 3_000_000
# Of a text: more is data, to be compressed or made again.
_MAX_TEXT_LINES, _MAX_TEXT_BYTES = 1500, 100_000


def _read(name: str) -> str:
  return (_TOP / name).read_text(encoding='utf-8')


def _set_up_commands() -> list[str]:
  """Lines of the fenced blocks under README's heading "Set up"."""
  under, fenced, commands = False, False, []
  for line in _read('README.md').splitlines():
    if line.startswith('```'):
      fenced = not fenced
    elif not fenced and line.startswith('#'):
      under = line.lstrip('# ').lower().startswith('set up')
    elif fenced and under and line.partition('#')[0].strip():
      commands.append(line.partition('#')[0].strip())
  return commands


def test_readme_sets_up_with_two_commands():
  assert _set_up_commands() == ['make demo', 'make test']


@pytest.mark.parametrize('name', ['Makefile', 'pyproject.toml', 'setup.py'])
def test_one_tensorflow_release(name):
  required = set(re.findall(r'tensorflow>=(\d+\.\d+)', _read(name)))
  assert required == {_NATIVE['TENSORFLOW_MINOR']}


def test_every_native_source_is_in_the_list():
  listed = {
      path for spec in _NATIVE['NATIVE_LIBRARIES'].values()
      for path in spec['srcs'] + spec['hdrs']
  }
  present = {
      str(path.relative_to(_TOP)) for path in (_TOP / 'gdp_grappler').rglob('*')
      if path.suffix in ('.c', '.cc', '.cpp', '.h')
  }
  assert present == listed


def test_docs_list_the_placers_there_are():
  page = _read('docs/placers.md')
  assert placer_docs.updated(page) == page, (
      'Run: python -m gdp_grappler.bin.placer_docs docs/placers.md')


def test_docs_have_the_glossary_there_is():
  assert _read('docs/glossary.md') == glossary.markdown(), (
      'Run: python -m gdp_grappler.reports.glossary docs/glossary.md')


def test_docs_have_all_public_names():
  documented = re.findall(r'^::: (\S+)$', _read('docs/api.md'), re.MULTILINE)
  assert sorted(name.rpartition('.')[2] for name in documented) == sorted(
      gdp_grappler.__all__)
  for path in documented:
    module, _, name = path.rpartition('.')
    assert getattr(gdp_grappler,
                   name) is getattr(importlib.import_module(module), name)


def test_readme_has_at_most_120_lines():
  assert len(_read('README.md').splitlines()) <= 120


def _tracked() -> list[pathlib.Path]:
  if not (_TOP / '.git').exists():
    pytest.skip('not a git checkout')
  names = subprocess.run(['git', 'ls-files', '-z'], cwd=_TOP, check=True,
                         capture_output=True, text=True).stdout.split('\0')
  return [_TOP / name for name in names if (_TOP / name).is_file()]


def test_no_large_file_is_tracked():
  assert not [p for p in _tracked() if p.stat().st_size > _MAX_BYTES]


def test_no_long_text_is_tracked():
  contents = ((path, path.read_bytes()) for path in _tracked())
  texts = ((path, data) for path, data in contents if b'\0' not in data)
  assert not [
      path.relative_to(_TOP) for path, data in texts
      if data.count(b'\n') > _MAX_TEXT_LINES or len(data) > _MAX_TEXT_BYTES
  ]


def _python() -> list[pathlib.Path]:
  return [
      path for top in ('gdp_grappler', 'placer_model', 'benchmarks', 'tests')
      for path in sorted((_TOP / top).rglob('*.py'))
  ]


def test_modules_have_at_most_400_lines():
  long = [
      str(path.relative_to(_TOP)) for path in _python()
      if len(path.read_text(encoding='utf-8').splitlines()) > 400
  ]
  assert not long


def _statements(node: ast.AST) -> Iterator[ast.stmt]:
  """Yields the statements in a node.

  Expressions, which are most of the nodes, contain no statements.
  """
  for child in ast.iter_child_nodes(node):
    if isinstance(child, ast.stmt):
      yield child
    if not isinstance(child, ast.expr):
      yield from _statements(child)


def _long_functions(source: str) -> list[str]:
  return [
      node.name for node in _statements(ast.parse(source))
      if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and
      node.end_lineno - node.lineno >= 60
  ]


def test_functions_have_at_most_60_lines():
  long = [
      f'{path.relative_to(_TOP)}: {name}' for path in _python()
      for name in _long_functions(path.read_text(encoding='utf-8'))
  ]
  assert not long


def test_a_long_function_is_found_wherever_it_is():
  lines = '\n'.join(['        pass'] * 60)
  assert _long_functions('try:\n  pass\nexcept E:\n  class C:\n    if x:\n'
                         f'      def f():\n{lines}') == ['f']

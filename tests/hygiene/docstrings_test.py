"""Every module says what it is, every package also what it is not."""

import ast
import pathlib

import pytest

_TOP = pathlib.Path(__file__).parents[2]
_PACKAGES = ('gdp_grappler', 'placer_model')
_FOLDERS = sorted({
    path.parent.relative_to(_TOP) for package in _PACKAGES
    for path in (_TOP / package).rglob('*.py')
})
_MODULES = sorted(
    path.relative_to(_TOP)
    for folder in (*_PACKAGES, 'bazel', 'benchmarks', 'demo', 'tests')
    for path in (_TOP / folder).rglob('*.py'))


def _parse(path: pathlib.Path) -> ast.Module:
  return ast.parse((_TOP / path).read_text(encoding='utf-8'))


# Google's style guide asks for none in a test, whose name says what it tests.
@pytest.mark.parametrize(
    'path', [m for m in _MODULES if not m.name.endswith('_test.py')], ids=str)
def test_module_has_a_docstring(path):
  assert ast.get_docstring(_parse(path))


@pytest.mark.parametrize('folder', _FOLDERS, ids=str)
def test_package_says_what_belongs_there(folder):
  docstring = ast.get_docstring(_parse(folder / '__init__.py')) or ''
  words = ' '.join(docstring.split())
  assert 'Belongs here:' in words
  assert 'Does not belong here:' in words


@pytest.mark.parametrize('path',
                         [m for m in _MODULES if m.parts[0] == 'gdp_grappler'],
                         ids=str)
def test_public_names_have_docstrings(path):
  kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
  bare = [
      node.name for node in _parse(path).body if isinstance(node, kinds) and
      not node.name.startswith('_') and not ast.get_docstring(node)
  ]
  assert not bare

"""Every module says what it is, every package also what it is not."""

import ast
import functools
import pathlib

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


@functools.cache
def _parse(path: pathlib.Path) -> ast.Module:
  return ast.parse((_TOP / path).read_text(encoding='utf-8'))


def test_modules_have_docstrings():
  # Google's style guide asks for none in a test, whose name says what it tests.
  assert not [
      path for path in _MODULES if not path.name.endswith('_test.py') and
      not ast.get_docstring(_parse(path))
  ]


def test_packages_say_what_belongs_there():
  for folder in _FOLDERS:
    docstring = ast.get_docstring(_parse(folder / '__init__.py')) or ''
    words = ' '.join(docstring.split())
    assert 'Belongs here:' in words, folder
    assert 'Does not belong here:' in words, folder


def test_public_names_have_docstrings():
  kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
  bare = [(path, node.name) for path in _MODULES
          if path.parts[0] == 'gdp_grappler' for node in _parse(path).body
          if isinstance(node, kinds) and not node.name.startswith('_') and
          not ast.get_docstring(node)]
  assert not bare

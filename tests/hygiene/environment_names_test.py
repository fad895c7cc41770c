"""The names of our environment variables stand in one module."""

import ast
import pathlib
import re

import pytest

from gdp_grappler import environment

_TOP = pathlib.Path(__file__).parents[2]
_NAMES = re.compile(r'GDP_(PLACEMENT|CAPTURE_DIR|CACHE_DIR|POLICY|DISABLE)')
_MODULES = sorted(
    path.relative_to(_TOP)
    for folder in ('gdp_grappler', 'placer_model', 'benchmarks', 'demo')
    for path in (_TOP / folder).rglob('*.py'))


def _docstrings(tree: ast.Module) -> set[int]:
  """Ids of the nodes that are docstrings."""
  kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
  return {
      id(node.body[0].value) for node in ast.walk(tree)
      if isinstance(node, kinds) and ast.get_docstring(node)
  }


@pytest.mark.parametrize('path',
                         [m for m in _MODULES if m.name != 'environment.py'],
                         ids=str)
def test_no_name_is_written_out(path):
  tree = ast.parse((_TOP / path).read_text(encoding='utf-8'))
  exempt = _docstrings(tree)
  found = [
      node.value for node in ast.walk(tree)
      if isinstance(node, ast.Constant) and isinstance(node.value, str) and
      id(node) not in exempt and _NAMES.search(node.value)
  ]
  assert not found


def test_the_loader_reads_the_name_that_python_sets():
  loader = (_TOP / 'gdp_grappler' / 'plugin' / 'loader.c').read_text()
  assert re.findall(r'getenv\("(\w+)"\)', loader) == [environment.DISABLE]

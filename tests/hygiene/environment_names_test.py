"""The names of our environment variables stand in one module."""

import ast
import pathlib
import re

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


def _written_out(path: pathlib.Path) -> list[str]:
  """The texts of a module that hold such a name, docstrings aside."""
  text = (_TOP / path).read_text(encoding='utf-8')
  if 'GDP_' not in text:
    return []
  tree = ast.parse(text)
  exempt = _docstrings(tree)
  return [
      node.value for node in ast.walk(tree)
      if isinstance(node, ast.Constant) and isinstance(node.value, str) and
      id(node) not in exempt and _NAMES.search(node.value)
  ]


def test_no_name_is_written_out():
  found = {
      path: _written_out(path) for path in _MODULES
      if path.name != 'environment.py'
  }
  assert not [item for item in found.items() if item[1]]


def test_the_loader_reads_the_name_that_python_sets():
  loader = (_TOP / 'gdp_grappler' / 'plugin' / 'loader.c').read_text()
  assert re.findall(r'getenv\("(\w+)"\)', loader) == [environment.DISABLE]

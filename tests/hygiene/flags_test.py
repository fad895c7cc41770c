"""Flags of commands are named by what only commands say.

What the Python API says names its arguments: by `spelling.argument`.
"""

import ast
import pathlib
import re

_ROOT = pathlib.Path(__file__).parents[2]
_FLAG = re.compile(r'(?<![\w-])--[a-z_]+')
# A command that a text names may have flags behind it.
_COMMANDS = re.compile(r'\b(gdp \w+|gdp_train|pip install|ray start)\b')
# What goes after the name of a command, and flags of other programs.
_OTHERS = {
    'gdp_grappler/problems/request.py': 'what to type after a command',
    'gdp_grappler/processes/launching.py': 'of the child process',
    'gdp_grappler/plugin/doctor.py': 'of XLA',
}


def _docstrings(tree):
  kinds = ast.Module, ast.ClassDef, ast.FunctionDef
  return {
      id(node.body[0].value) for node in ast.walk(tree)
      if isinstance(node, kinds) and node.body and
      isinstance(node.body[0], ast.Expr)
  }


def _texts(tree):
  """All texts, those with values in them in one piece."""
  skipped = _docstrings(tree)
  for node in ast.walk(tree):
    if isinstance(node, ast.JoinedStr):
      parts = [p for p in node.values if isinstance(p, ast.Constant)]
      skipped |= {id(part) for part in parts}
      yield '{}'.join(str(part.value) for part in parts)
  for node in ast.walk(tree):
    if (isinstance(node, ast.Constant) and isinstance(node.value, str) and
        id(node) not in skipped):
      yield node.value


def _named(source):
  if '--' not in source:  # Parsing takes long, and most files name no flag.
    return []
  return [
      text for text in _texts(ast.parse(source))
      if _FLAG.search(text) and not _COMMANDS.search(text)
  ]


def test_only_commands_name_flags():
  named = {
      f'{path}: {text}' for path in (_ROOT / 'gdp_grappler').rglob('*.py')
      if (name := path.relative_to(_ROOT).as_posix()) not in _OTHERS and
      not name.startswith('gdp_grappler/bin/')
      for text in _named(path.read_text('utf-8'))
  }
  assert not named


def test_a_flag_in_a_message_is_found():
  assert _named('raise E(f"{path} is bad. "\n"Give --shape={x}.")')
  assert not _named('"""Of --shape."""')
  assert not _named('raise E("Run gdp place --help.")')

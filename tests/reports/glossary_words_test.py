"""Whatever programs call their columns and options is explained or plain.

Heads of tables, headings of the page and acronyms of help texts are read from
the sources, so that a new one has to go into the glossary, or among the plain
words below.
"""

import ast
import functools
import pathlib
import re

from gdp_grappler.reports import glossary

_TOP = pathlib.Path(glossary.__file__).parents[2]
_PACKAGES = ('gdp_grappler', 'placer_model')
# Not in the wheel.
_DOCS = pathlib.Path(__file__).parents[2] / 'docs'
_PAGE = _TOP / 'gdp_grappler/reports/assets'
# English that means what it says, units, and names that docs explain.
_PLAIN = frozenset("""
alone and are as at before best by bytes change copy count critical each error
first fit flop for found from fullest gpus holds in its kind largest least
lower made makes meaning median memory microseconds missing model most no
occupies of on ops other out over path per search seconds sent shares single
slower status such take takes than that the these time timeline to took type
waits what where which why with won word words work
""".split())
# Placeholders of help texts, units and what every user knows.
_ACRONYMS = frozenset("""
CLUSTER COMMAND COUNT DEVICE DIR FILE FOLDER GRAPH HOST KINDS NAME OP PLAN PORT
SIZE CPU GB GPU JSON MB PIL SIGTERM
""".split())
# Where a head is text between bars.
_MARKDOWN = re.compile(r'^\| (?!-)[^\n]*\|', re.MULTILINE)


@functools.cache
def _modules():
  return [(path, ast.parse(path.read_text(encoding='utf-8')))
          for package in _PACKAGES
          for path in sorted((_TOP / package).rglob('*.py'))]


def _text(node):
  """Of a string, formatted or not; None for anything else."""
  if isinstance(node, ast.Constant) and isinstance(node.value, str):
    return node.value
  if isinstance(node, ast.JoinedStr):
    return ''.join(_text(part) or ' ' for part in node.values)
  return None


def _heads(tree):
  """First rows of lists, and constants called heads."""
  for node in ast.walk(tree):
    row = None
    if isinstance(node, ast.List) and node.elts:
      row = node.elts[0]
    elif isinstance(node, ast.Assign) and any(
        getattr(target, 'id', '').endswith('_HEAD') for target in node.targets):
      row = node.value
    elif isinstance(node, ast.Call) and node.args and getattr(
        node.func, 'id', '').endswith('Builder'):
      row = node.args[0]
    if isinstance(row, (ast.Tuple, ast.List)):
      cells = [_text(cell) for cell in row.elts]
      if sum(cell is not None for cell in cells) > 2:
        yield from filter(None, cells)


def _cells_of_tables():
  """(Where, cell) of each head of a table."""
  for path, tree in _modules():
    source = path.read_text(encoding='utf-8')
    if not re.search(r'import tables\b|\| ---|\|---|Builder', source):
      continue
    where = path.relative_to(_TOP)
    yield from ((where, cell) for cell in _heads(tree))
    for node in ast.walk(tree):
      for head in _MARKDOWN.findall(_text(node) or ''):
        yield from ((where, cell) for cell in head.split('|'))
  script = (_PAGE / 'page.js').read_text(encoding='utf-8')
  yield from (
      ('page.js', cell) for cell in re.findall(r"\btext: '([^']+)'", script))
  page = (_PAGE / 'page.html').read_text(encoding='utf-8')
  yield from (
      ('page.html', cell) for cell in re.findall(r'<h2>([^<]+)</h2>', page))


def _help_texts():
  """(Where, text) of the options of all programs."""
  for path, tree in _modules():
    in_place = path.parent.name in ('bin', 'commands')
    if in_place or path.name == 'help_texts.py':
      for node in ast.walk(tree):
        text = _text(node)
        if text:
          yield path.relative_to(_TOP), text


def _unexplained(cell):
  """The words of a cell that are neither terms, parts of terms, nor plain."""
  rest = cell.lower()
  for term in sorted(map(str.lower, glossary.TERMS), key=len, reverse=True):
    rest = re.sub(rf'(?<!\w){re.escape(term)}(e?s)?(?!\w)', ' ', rest)
  return {
      word for word in re.findall(r'[a-zé]{2,}', rest) if word not in _PLAIN
  }


def test_heads_of_tables():
  found = list(_cells_of_tables())
  # One of a list, of a tuple, of a builder, of the page and of its script.
  assert {
      'cut', 'median error of fit', 'cut tensors', 'Tensors that are sent',
      'takes'
  } <= {cell.strip() for _, cell in found}
  missing = {
      (str(where), word) for where, cell in found for word in _unexplained(cell)
  }
  assert not missing, 'Put them into the glossary, or among the plain words.'


def test_acronyms_of_options():
  known = {word for term in glossary.TERMS for word in re.findall(r'\w+', term)}
  known |= _ACRONYMS
  missing = {(str(where), word) for where, text in _help_texts()
             for word in re.findall(r'(?<![\w-])[A-Z]{2,}(?![\w-])', text)
             if word not in known}
  assert not missing, 'Put them into the glossary, or among the plain ones.'


def _read():
  """All that may use a word, but for the glossary."""
  return '\n'.join(
      path.read_text(encoding='utf-8').lower()
      for path in (*_DOCS.rglob('*.md'), *_PAGE.iterdir(),
                   *(path for path, _ in _modules()))
      if path.name not in ('glossary.md', 'glossary.py'))


def test_no_word_is_explained_that_nobody_reads():
  text = _read()
  assert not [
      term for term in glossary.TERMS
      if not re.search(rf'(?<!\w){re.escape(term.lower())}(?!\w)', text)
  ]

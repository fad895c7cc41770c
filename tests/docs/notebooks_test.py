"""The notebooks run, and show what is said to have been shown."""

import json
import re

import pytest

from helpers import benchmarks
from helpers import pages

_NOTEBOOKS = sorted((pages.TOP / 'docs/notebooks').glob('*.ipynb'))

# Searches, of which no output's kind depends on how far they come: by notebook,
# what it says and what is run. (With a time budget a slow machine says that
# reading is none of it.)
_SHORTER = {
    'compare': ("'m_etf', 'gdp'])", "'m_etf', 'gdp'], time_budget_s=1)"),
    'place': ("plan = gdp_grappler.place(model, '2xP100')",
              "plan = gdp_grappler.place(model, '2xP100', placer='m_etf')"),
    'train': ("'--time_budget_s=40'", "'--time_budget_s=3'"),
}


def _code(path):
  found = json.loads(path.read_text(encoding='utf-8'))['cells']
  return [cell for cell in found if cell['cell_type'] == 'code']


def _kinds(path):
  """Of each cell, the kinds of its outputs."""
  return [[(output['output_type'], sorted(output.get('data', {})))
           for output in cell['outputs']] for cell in _code(path)]


def _run(tmp_path, *sources):
  """A notebook of these cells, and what became of it."""
  path = tmp_path / 'cells.ipynb'
  path.write_text(
      json.dumps({
          'cells': [{'cell_type': 'code', 'source': source, 'outputs': []}
                    for source in sources]
      }))
  return path, benchmarks.run('showing.notebooks', str(path), folder=tmp_path)


@pytest.mark.e2e
@pytest.mark.parametrize('path', _NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs_and_shows_what_it_showed(path, tmp_path):
  copied = tmp_path / path.name
  text = path.read_text(encoding='utf-8')
  if path.stem in _SHORTER:
    shown, shorter = _SHORTER[path.stem]
    assert text.count(shown) == 1
    text = text.replace(shown, shorter)
  copied.write_text(text, encoding='utf-8')
  done = benchmarks.run('showing.notebooks', str(copied), folder=tmp_path)
  assert done.code == 0, done.stderr
  assert _kinds(copied) == _kinds(path)


@pytest.mark.parametrize('path', _NOTEBOOKS, ids=lambda path: path.stem)
def test_its_links_lead_somewhere(path):
  for target in re.findall(r'\]\((?!https?:)([^)#]+)', path.read_text()):
    assert (path.parent / target).exists(), target


def test_what_is_printed_and_the_last_expression_are_shown(tmp_path):
  path, done = _run(tmp_path, ['x = 3\n', 'import sys'],
                    ['print("said", file=sys.stderr)\n', 'x'], ['x = None\nx'])
  assert done.code == 0, done.stderr
  first, [said, value], last = (cell['outputs'] for cell in _code(path))
  assert not first and not last
  assert said['text'] == ['said\n']
  assert value['data'] == {'text/plain': ['3']}


def test_what_fails_leaves_the_notebook_alone(tmp_path):
  path, done = _run(tmp_path, ['1\n'], ['x = 1 / 0'])
  assert done.code == 1
  assert 'ZeroDivisionError' in done.stderr and '<cell 2>' in done.stderr
  assert not any(cell['outputs'] for cell in _code(path))

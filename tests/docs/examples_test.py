"""What the pages say to type can be typed."""

import json
import pathlib
import re
import shutil

import pytest

from gdp_grappler.bin import gdp
from gdp_grappler.graph.sources import captured_folders
from helpers import fresh
from helpers import pages

_TESTDATA = pathlib.Path(__file__).parents[1] / 'testdata'
_BLOCKS = pages.blocks()
_HOW_TOS = sorted(
    {block.page for block in _BLOCKS if block.page.startswith('docs/how_to/')}
    - {'docs/how_to/README.md'})
# Lines of a page.
_SCREEN = 60
_COMMANDS = [(block.page, command) for block in _BLOCKS
             if block.language in ('', 'sh') for command in block.commands()]


def _pages() -> list[pathlib.Path]:
  """All pages but the changelog, which names what has gone, too."""
  top = [
      pages.TOP / f'{name}.md'
      for name in ('README', 'ARCHITECTURE', 'CONTRIBUTING', 'SECURITY')
  ]
  return top + sorted((pages.TOP / 'docs').rglob('*.md'))


def _joined(page: pathlib.Path) -> str:
  """The text with each command on one line."""
  return page.read_text(encoding='utf-8').replace('\\\n', ' ')


def _of(program):
  return [
      pytest.param(command, id=' '.join(command)[:60])
      for _, command in _COMMANDS if command[0] == program
  ]


@pytest.mark.e2e
@pytest.mark.parametrize('folders, some', [
    (['.', 'docs'], ['README.md', 'docs/fit.md', 'docs/plans.md']),
    (['docs/how_to'], _HOW_TOS),
], ids=['pages', 'how_to'])
def test_code_of_all_pages_runs(tmp_path, folders, some):
  (tmp_path / 'graphs').mkdir()
  shutil.copy(
      _TESTDATA / 'dense_train_step.pb',
      tmp_path / 'graphs' / captured_folders.file_name('step', 192, 'abcdef'))
  results = fresh.run('documented.py', str(tmp_path), *folders).results
  assert {page for page, _ in results} >= set(some)
  assert not [error for _, error in results if error]


def test_how_tos_are_ten_and_on_one_screen():
  lines = {
      page: len((pages.TOP / page).read_text(encoding='utf-8').splitlines())
      for page in _HOW_TOS
  }
  assert len(lines) == 10
  assert max(lines.values()) <= _SCREEN, lines


@pytest.mark.parametrize('command', _of('gdp'))
def test_commands_of_gdp_are_understood(command):
  gdp.parser().parse_args(command[1:])


@pytest.mark.parametrize('program', ['gdp_train', 'gdp_bench', 'gdp_pretrain'])
def test_flags_exist(program):
  sources = [
      pages.TOP / f'placer_model/bin/{name}.py'
      for name in (program, 'command_line')
  ]
  defined = {
      name for source in sources for name in re.findall(
          r"DEFINE_\w+\(\s*'(\w+)'", source.read_text(encoding='utf-8'))
  }
  used = {
      flag for page in _pages()
      for words in re.findall(rf'(?<!\w){program} ([^`\n#|]*)', _joined(page))
      for flag in re.findall(r'(?<!\S)--(\w+)', words)
  }
  assert used and used <= defined


def test_programs_of_the_repository_exist():
  for block in _BLOCKS:
    for name in re.findall(r'python -m (benchmarks\.\w+)', block.text):
      path = pages.TOP / name.replace('.', '/')
      assert path.is_dir() or path.with_suffix('.py').is_file(), name


def test_flags_of_programs_exist():
  """In results and their comments, too: a table's command makes it again."""
  used = 0
  for page in _pages():
    for name, words in re.findall(r'python -m benchmarks\.(\w+)([^`\n#]*)',
                                  _joined(page)):
      defined = _flags_of(name)
      for flag in re.findall(r'(?<!\S)--(\w+)', words):
        assert flag in defined, (page, name, flag)
        used += 1
  assert used > 50


def _flags_of(name: str) -> set[str]:
  """Of a program of `benchmarks`, and those that all tables have."""
  top = pages.TOP / 'benchmarks'
  sources = [top / f'{name}.py', top / 'tables.py', *(top / name).rglob('*.py')]
  return {
      flag for source in sources if source.exists() for flag in re.findall(
          r"(?:'--|DEFINE_\w+\(\s*')(\w+)'", source.read_text(encoding='utf-8'))
  }


def test_targets_exist():
  targets = set(
      re.findall(r'^([a-z_]+):', (pages.TOP / 'Makefile').read_text(),
                 re.MULTILINE))
  for page in _pages():
    text = page.read_text(encoding='utf-8')
    assert set(re.findall(r'(?:^|`)make ([a-z_]+)', text,
                          re.MULTILINE)) <= targets, page


def test_examples_of_json_are_json():
  for block in _BLOCKS:
    if block.language == 'json':
      json.loads(block.text)

"""Tables and limits on pages are those of the code."""

import ast
import dataclasses
import re
import runpy
from unittest import mock

import pytest

from gdp_grappler import files
from gdp_grappler.bin import gdp
from gdp_grappler.cluster import calibration
from gdp_grappler.cluster import cluster_file
from gdp_grappler.graph.sources import graph_files
from gdp_grappler.graph.sources import inlining
from gdp_grappler.plugin import settings
from helpers import pages


def _read(page: str) -> str:
  return (pages.TOP / page).read_text(encoding='utf-8')


def _programs(monkeypatch) -> set[str]:
  """Names of the console programs of the package."""
  monkeypatch.chdir(pages.TOP)
  with mock.patch('setuptools.setup') as setup:
    runpy.run_path(str(pages.TOP / 'setup.py'))
  scripts = setup.call_args.kwargs['entry_points']['console_scripts']
  return {script.partition(' = ')[0] for script in scripts}


def _named_commands(page: str) -> list[str]:
  """Commands in the first columns of a page, without "gdp" and targets."""
  cells = re.findall(r'^\| (`(?:gdp|gdp_\w+)\b[^|]*) \|', _read(page),
                     re.MULTILINE)
  return [
      name.removeprefix('gdp ') for cell in cells
      for name in re.findall('`([^`]+)`', cell)
  ]


def test_tables_of_commands_name_those_that_there_are(monkeypatch):
  every = {*gdp._parsers()[1], *_programs(monkeypatch) - {'gdp'}}
  listed = _named_commands('docs/commands.md')
  assert len(listed) == len(set(listed)) and set(listed) == every
  in_brief = _named_commands('README.md')
  assert in_brief and set(in_brief) <= every


def test_every_key_of_the_option_has_a_row_with_its_default():
  rows = {
      key: default for key, default in re.findall(
          r'^\| `(\w+)` \| (`[^`]+`|not set|this machine) \|',
          _read('docs/fit.md'), re.MULTILINE)
  }
  fields = {
      field.name: field.default
      for field in dataclasses.fields(settings.Settings)
  }
  assert rows.keys() == fields.keys()
  for key, default in rows.items():
    # In words, a default depends on other keys or on the machine.
    value = ast.literal_eval(default.strip('`')) if '`' in default else None
    assert value == fields[key], key


@pytest.mark.parametrize('said', [
    f'text beyond {files.MOST_TEXT_BYTES >> 20} MiB',
    f'protocol buffers beyond {(files.MOST_PROTO_BYTES + 1) >> 30} GiB',
    f'calibrations beyond {cluster_file._MOST_BYTES >> 20} MiB',
    f'calibrations beyond {calibration._FORMAT.most_bytes >> 20} MiB',
    f'nested {inlining._DEEPEST} deep',
    f'more than {inlining._MOST_NODES // 10**6} million nodes',
    f'more than {graph_files._MOST_OUTPUTS:,} outputs',
    f'unpack to more than {files.MOST_TEXT_BYTES >> 20} MiB',
])
def test_limits_are_those_that_the_page_names(said):
  assert said in ' '.join(_read('SECURITY.md').split())

"""The recorded sessions are of commands that there are."""

import re
import shlex

import pytest

from gdp_grappler.bin import gdp
from helpers import pages

_PAGE = (pages.TOP / 'docs/sessions.md').read_text(encoding='utf-8')
_SOURCE = (pages.TOP / 'benchmarks/showing/sessions.py').read_text()
_SESSIONS = re.findall(
    r'<!-- (Session \d+); made by .*?-->\n(.*?)<!-- End of \1. -->', _PAGE,
    re.DOTALL)
_COMMANDS = [
    command for _, text in _SESSIONS for command in re.findall(
        r'^\$ (.*)$', text.replace('\\\n', ' '), re.MULTILINE)
]


def test_each_that_is_recorded_is_there():
  recorded = re.findall(r"^    '(Session \d+)':", _SOURCE, re.MULTILINE)
  assert len(recorded) >= 9
  assert [title for title, text in _SESSIONS if text.strip()] == recorded


@pytest.mark.parametrize('command', _COMMANDS)
def test_commands_are_understood(command):
  assert command.startswith('gdp ')
  typed = command.removesuffix('; echo $?')
  gdp.parser().parse_args(shlex.split(typed)[1:])


def test_they_fit_into_a_terminal():
  lines = [line for _, text in _SESSIONS for line in text.splitlines()]
  assert lines and max(map(len, lines)) <= 80


def test_the_model_is_the_one_that_was_placed():
  model = re.search(r"MODEL = '''(.*?)'''", _SOURCE, re.DOTALL)[1]
  assert model in _PAGE

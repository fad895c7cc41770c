"""Short sessions in a terminal, recorded from real runs."""

from __future__ import annotations

import os
import pathlib
import shlex
import subprocess
import sys
import textwrap
from typing import Mapping, Sequence

from benchmarks import pages
from gdp_grappler import errors
from gdp_grappler import files

_WIDTH, _MOST_LINES = 80, 24  # Of a terminal.
# What the sessions are about, in a folder of their own.
MODEL = '''import keras

layers = keras.layers


def branches():
  inputs = keras.Input((1024,), batch_size=512)
  ends = []
  for name, depth in ('deep', 5), ('middle', 3), ('flat', 2), ('small', 1):
    hidden = inputs
    for i in range(depth):
      hidden = layers.Dense(2048, 'relu', name=f'{name}_{i}')(hidden)
    ends.append(hidden)
  model = keras.Model(inputs, layers.Dense(10, name='head')(layers.add(ends)))
  model.compile('sgd', 'mse')
  return model
'''
_GRAPH = 'models:branches'
# Title in the page -> what is typed. Later ones use what earlier ones left.
SESSIONS: Mapping[str, Sequence[str]] = {
    'Session 1': (f'gdp place {_GRAPH} --cluster=2xP100 --output=plan.json',),
    'Session 2': (f'gdp explain {_GRAPH} --plan=plan.json deep_2',),
    'Session 3': (
        f'gdp place {_GRAPH} --cluster=2xP100 --placer=m_etf --output=etf.json',
        f'gdp diff {_GRAPH} etf.json plan.json'),
    'Session 4': (f'gdp simulate {_GRAPH} --plan=plan.json --trace=trace.json '
                  '--tensorboard=logs --node_data=nodes.json',
                  f'gdp report {_GRAPH} --plan=etf.json --plan=plan.json '
                  '--output=report.html'),
    'Session 5': ('gdp cluster 2xT4', 'gdp verify', 'gdp glossary FIFO'),
    'Session 6': (f'gdp show {_GRAPH} --plan=etf.json',),
}


def record(folder: pathlib.Path, page: pathlib.Path, command: str) -> None:
  """Runs all sessions and puts them into a page.

  Args:
    folder: Where they run; what they write stays there.
    page: With a place for each session.
    command: That does this.

  Raises:
    GdpError: a command failed, or the page has no place.
  """
  folder.mkdir(parents=True, exist_ok=True)
  files.write_atomically(folder / 'models.py', MODEL)
  for title, commands in SESSIONS.items():
    said = '\n\n'.join(_said(typed, folder) for typed in commands)
    pages.Page(page, title).put(command, f'```text\n{said}\n```')


def _said(typed: str, folder: pathlib.Path) -> str:
  """A command with its output, as wide as a terminal."""
  done = subprocess.run(
      [sys.executable, '-m', 'gdp_grappler', *shlex.split(typed)[1:]],
      cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
      check=False,
      env=os.environ | {'COLUMNS': str(_WIDTH), 'TF_CPP_MIN_LOG_LEVEL': '3'})
  if done.returncode:
    raise errors.GdpError(f'"{typed}" failed: {done.stdout.strip()}')
  typed_lines = textwrap.wrap(f'$ {typed}', _WIDTH - 2, break_on_hyphens=False,
                              break_long_words=False, subsequent_indent='    ')
  text = '\n'.join(map(_wrapped, done.stdout.rstrip().splitlines()))
  said = text.splitlines()
  if len(said) > _MOST_LINES:
    said[_MOST_LINES - 1:] = ['...']
  return '\n'.join([' \\\n'.join(typed_lines), *said])


def _wrapped(line: str) -> str:
  if len(line) <= _WIDTH:
    return line
  return textwrap.fill(line, _WIDTH, break_on_hyphens=False,
                       break_long_words=False)

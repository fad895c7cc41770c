"""Short sessions in a terminal, recorded from real runs."""

from __future__ import annotations

import os
import pathlib
import re
import shlex
import subprocess
import sys
import textwrap
from typing import Mapping, Sequence

from benchmarks import pages
from gdp_grappler import errors
from gdp_grappler import files

# Columns of the terminal.
WIDTH = 80
_MOST_LINES = 24  # Lines of a command's output that the page shows.
# Lines that a terminal overwrites.
_STILL_WAITS = re.compile(r'gdp: .+, \d+:\d\d')
# End of a command whose exit code is shown.
_SHOWS_CODE = '; echo $?'
# The model file of the sessions.
MODEL = '''import keras
import tensorflow as tf

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


def words():
  ids = keras.Input((16,), dtype='int32', batch_size=32)
  table = layers.Embedding(400_000, 64, name='words')
  hidden = layers.GlobalAveragePooling1D()(table(ids))
  model = keras.Model(ids, layers.Dense(50_000, name='next')(hidden))
  model.compile('adam', 'mse')
  return model


def on_host():
  ids = keras.Input((16,), dtype='int32', batch_size=32)
  with tf.device('/CPU:0'):
    table = layers.Embedding(400_000, 64, name='words')
    table.build()
  hidden = layers.GlobalAveragePooling1D()(table(ids))
  model = keras.Model(ids, layers.Dense(50_000, name='next')(hidden))
  model.compile('sgd', 'mse')
  return model
'''
# Layer -> device.
MAP = '{"deep_*": "GPU:0", "middle_*": "GPU:1", "head": "GPU:1"}\n'
_GRAPH, _TABLE = 'models:branches', 'models:words'
_ASKED = 'models:on_host'
_SMALL = '--max_memory=GPU=330MB,CPU=330MB'
# Title in the page -> commands. Later sessions use the files of earlier ones.
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
    'Session 7':
        (f'gdp place {_GRAPH} --cluster=2xP100 --plan=map.json '
         '--output=mapped.json', f'gdp show {_GRAPH} --plan=mapped.json'),
    'Session 8':
        (f'gdp place {_TABLE} --cluster=2xP100 {_SMALL} --split_tables=off '
         f'--output=none.json{_SHOWS_CODE}',),
    'Session 9': (f'gdp place {_ASKED} --cluster=2xP100 --output=kept.json',
                  f'gdp show {_ASKED} --plan=kept.json'),
    'Session 10':
        (f'gdp place {_TABLE} --cluster=2xP100 {_SMALL} '
         '--output=split.json', f'gdp show {_TABLE} --plan=split.json'),
}


def record(folder: pathlib.Path, page: pathlib.Path, command: str) -> None:
  """Runs all sessions and puts them into a page.

  Args:
    folder: Folder in which the sessions run. Their files stay there.
    page: Page with a place for each session.
    command: The command that records the sessions.

  Raises:
    GdpError: a command failed, or the page has no place.
  """
  prepare(folder)
  for title, commands in SESSIONS.items():
    said = '\n\n'.join(said_of(typed, folder) for typed in commands)
    pages.Page(page, title).put(command, f'```text\n{said}\n```')


def prepare(folder: pathlib.Path) -> None:
  """Writes the models and the map that the sessions use."""
  folder.mkdir(parents=True, exist_ok=True)
  files.write_atomically(folder / 'models.py', MODEL)
  files.write_atomically(folder / 'map.json', MAP)


def said_of(typed: str, folder: pathlib.Path) -> str:
  """Runs a command, and returns it with its output, as wide as a terminal.

  Args:
    typed: The command. It begins with 'gdp', and may end with `_SHOWS_CODE`.
    folder: Folder in which the command runs.

  Raises:
    GdpError: the command failed, and `typed` does not ask for its exit code.
  """
  shows_code = typed.endswith(_SHOWS_CODE)
  arguments = shlex.split(typed.removesuffix(_SHOWS_CODE))[1:]
  done = subprocess.run([sys.executable, '-m', 'gdp_grappler', *arguments],
                        cwd=folder, text=True, stdout=subprocess.PIPE,
                        stderr=subprocess.STDOUT, check=False, env=os.environ
                        | {'COLUMNS': str(WIDTH), 'TF_CPP_MIN_LOG_LEVEL': '3'})
  if done.returncode and not shows_code:
    raise errors.GdpError(f'"{typed}" failed: {done.stdout.strip()}')
  typed_lines = textwrap.wrap(f'$ {typed}', WIDTH - 2, break_on_hyphens=False,
                              break_long_words=False, subsequent_indent='    ')
  text = '\n'.join(
      _wrapped(line) for line in done.stdout.rstrip().splitlines()
      if not _STILL_WAITS.fullmatch(line))
  said = text.splitlines()
  if len(said) > _MOST_LINES:
    said[_MOST_LINES - 1:] = ['...']
  if shows_code:
    said.append(str(done.returncode))
  return '\n'.join([' \\\n'.join(typed_lines), *said])


def _wrapped(line: str) -> str:
  if len(line) <= WIDTH:
    return line
  return textwrap.fill(line, WIDTH, break_on_hyphens=False,
                       break_long_words=False)

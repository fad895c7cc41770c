"""Runs the code of all pages of the docs, in the order of each page.

Arguments: a folder with the files that the pages name, and the folders of the
pages, '.' for the root. Prints a list of [page, error].
"""

import contextlib
import io
import itertools
import json
import os
import pathlib
import sys
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))

import common
import keras
import numpy as np

from gdp_grappler.api import placing
from gdp_grappler.bin import gdp
from helpers import pages

# Shortens the searches of the examples.
_SEARCH_S = .3
placing.place.__kwdefaults__['time_budget_s'] = _SEARCH_S


def _model():
  """Returns the model that the pages call `model`."""
  model = keras.Sequential([
      keras.Input((4,)),
      keras.layers.Dense(8, name='embedding'),
      keras.layers.Dense(8, name='encoder'),
      keras.layers.Dense(1, name='decoder')
  ])
  model.compile('sgd', 'mse')
  return model


def _run(block, names):
  if block.language == 'python':
    exec(compile(block.text, block.page, 'exec'), names)
    return
  for command in block.commands():
    more = [f'--time_budget_s={_SEARCH_S}'] * (command[1:2] == ['place'])
    # The page's own arguments come last, so they win over `more`.
    if command[0] != 'gdp' or gdp.run([*command[1:2], *more, *command[2:]]):
      raise ValueError(f'{command} failed')


def _error(block, names):
  """Returns the error of a block of code, or None."""
  said = io.StringIO()
  try:
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
      _run(block, names)
  except (Exception, SystemExit):
    return f'{block.text}\n{said.getvalue()}\n{traceback.format_exc()}'
  return None


os.chdir(sys.argv[1])
common.make_devices(2)
results = []
chosen = [
    b for b in pages.blocks()
    if str(pathlib.PurePath(b.page).parent) in sys.argv[2:]
]
for page, blocks in itertools.groupby(chosen, lambda b: b.page):
  common.set_option(False)
  namespace = {
      'model': _model(), 'inputs': np.zeros((8, 4), np.float32),
      'targets': np.zeros((8, 1), np.float32)
  }
  results += [[page, _error(block, namespace)] for block in blocks
              if block.language in ('python', 'sh')]
print(json.dumps(results))

"""Runs programs of `benchmarks` on small models."""

from __future__ import annotations

import importlib
import pathlib
import subprocess
import sys
import types
from typing import Sequence

import pytest

from helpers import forked
from helpers import fresh

TOP = pathlib.Path(__file__).parents[2]
_PROGRAMS = TOP / 'benchmarks'
_TIMEOUT_S = 280
_MODELS = '''
import keras
layers = keras.layers


def branches(units=64):
  features = keras.Input((32,), batch_size=16)
  ends = [layers.Dense(units, 'relu')(features) for _ in range(2)]
  model = keras.Model(features, layers.Dense(3)(layers.concatenate(ends)))
  model.compile('sgd', 'mse')
  return model


def wide():
  return branches(6000)


def two_outputs():
  words = keras.Input((None,), dtype='int32')
  hidden = layers.GlobalAveragePooling1D()(layers.Embedding(9, 4)(words))
  outputs = {'a': layers.Dense(3, name='a')(hidden),
             'b': layers.Dense(1, name='b')(hidden)}
  model = keras.Model(words, outputs)
  model.compile('adam', {
      'a': keras.losses.SparseCategoricalCrossentropy(from_logits=True),
      'b': 'mse'})
  return model


def not_compiled():
  return keras.Sequential([keras.Input((4,)), layers.Dense(1)])


def number():
  return 7
'''


def module(name: str) -> types.ModuleType:
  """Returns a module of `benchmarks`, which is not installed: 'gpu.page'."""
  with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(str(TOP))
    return importlib.import_module(f'benchmarks.{name}')


def run(program: str, *args: str, folder: pathlib.Path) -> fresh.Finished:
  """Runs a program in a process of its own; see `run_all`."""
  _fill(folder)
  done = subprocess.run([sys.executable, '-m', f'benchmarks.{program}', *args],
                        env=fresh.environment(), text=True, cwd=folder,
                        capture_output=True, timeout=_TIMEOUT_S, check=False)
  return fresh.Finished(done.returncode, done.stdout, done.stderr)


def run_all(program: str, arguments: Sequence[Sequence[str]],
            folder: pathlib.Path, imports: Sequence[str] = (),
            **variables: str) -> list[fresh.Finished]:
  """Runs a program in a folder with links to `benchmarks` and `models.py`.

  Args:
    program: Name of the program, such as 'fit_gain'.
    arguments: Arguments of each run.
    folder: A folder that has neither of the two.
    imports: Further modules that are imported before the program starts.
    **variables: Further environment variables.
  """
  _fill(folder)
  return forked.run(f'benchmarks.{program}:main', ['tensorflow', *imports],
                    arguments, _TIMEOUT_S, folder, **variables)


def _fill(folder: pathlib.Path) -> None:
  (folder / 'benchmarks').symlink_to(_PROGRAMS)
  (folder / 'models.py').write_text(_MODELS)

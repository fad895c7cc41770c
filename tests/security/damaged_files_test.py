"""Files of anybody are read, or refused in one line; nothing else happens."""

from __future__ import annotations

import pathlib
import shutil
from typing import Callable

import numpy as np
import pytest

from helpers import damage
from helpers import readers

_SEEDS = 25
# A policy is loaded, and run, by TensorFlow each time.
_SEEDS_OF_A_POLICY = 4


@pytest.fixture(name='good', scope='module')
def _good(tmp_path_factory) -> Callable[[str], pathlib.Path]:
  """A folder with a good file of each kind."""
  made: dict[str, pathlib.Path] = {}

  def make(name: str) -> pathlib.Path:
    if name not in made:
      made[name] = tmp_path_factory.mktemp('good') / name
      made[name].parent.mkdir(parents=True, exist_ok=True)
      readers.READERS[name].write(made[name])
    return made[name]

  return make


def _copy(good: pathlib.Path, name: str, folder: pathlib.Path) -> pathlib.Path:
  top = good.parents[len(pathlib.Path(name).parts) - 1]
  shutil.copytree(top, folder / 'copy')
  return folder / 'copy' / name


@pytest.mark.parametrize('name', readers.READERS)
def test_damage_is_read_or_refused(good, tmp_path, name):
  path = _copy(good(name), name, tmp_path)
  data = path.read_bytes()
  assert readers.read(name, path), 'undamaged'
  is_of_policy = name.startswith('policy/')
  for seed in range(_SEEDS_OF_A_POLICY if is_of_policy else _SEEDS):
    path.write_bytes(damage.damaged(data, np.random.default_rng(seed)))
    readers.read(name, path)


@pytest.mark.parametrize('name', readers.READERS)
def test_what_is_no_file_of_ours_is_refused(good, tmp_path, name):
  path = _copy(good(name), name, tmp_path)
  for what in damage.obstacles(path):
    read = readers.read(name, path)
    assert not read or what in readers.READERS[name].taken, what

"""What a cell's result depends on, and the key of a cell."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import importlib.metadata
import json
import os
import pathlib
import platform
from typing import Any

import gdp_grappler
from placer_model.benchmark import placer_sets

SCHEMA = 1
SIMULATED, MEASURED, EMULATED = 'simulated', 'measured', 'emulated'
REWARDS = (SIMULATED, MEASURED, EMULATED)
_PACKAGES = ('tensorflow', 'numpy', 'scipy', 'pymetis', 'scotchpy64',
             'mtkahypar', 'highspy', 'tf-agents', 'tensorflow-gnn')
# Where prices and placements come from; loading shows in the graph's digest.
_CODE = ('cluster', 'evaluation', 'placers', 'lib/libgdp_simulator.so',
         'lib/libgdp_emulated_gpus.so')
_LEARNED_CODE = ('features', 'graph/coarsening.py')
_QUICK_BUDGET_S = 2.
_QUICK_TIMEOUT_S, _TIMEOUT_S, _LEARNED_TIMEOUT_S = 120., 900., 6 * 3600.


@dataclasses.dataclass(frozen=True)
class Settings:
  """How all cells of a run are computed.

  Attributes:
    seed: Of every placer.
    reward: One of `REWARDS`.
    quick: Small variants of the workloads, and short searches.
    time_budget_s: What a search may take. None: as much as each has by default,
      but 2 s for those that do not learn if `quick`. Which placement a search
      has found when its time is over depends on the machine.
    cell_timeout_s: A cell that takes longer has failed. None: 15 minutes, 2 if
      `quick`, 6 hours for those that learn, and the budget on top.
    local_workers: Servers to measure on; 0 for the devices of this machine.
    batch_size: For dimensions that graphs leave open.
    jobs: Cells computed side by side.
  """

  seed: int = 0
  reward: str = SIMULATED
  quick: bool = False
  time_budget_s: float | None = None
  cell_timeout_s: float | None = None
  local_workers: int = 0
  batch_size: int = 32
  jobs: int = 1

  @property
  def simulated(self) -> bool:
    return self.reward == SIMULATED

  def budget_s(self, placer: str) -> float | None:
    """Seconds that a placer's search may take."""
    if self.time_budget_s is not None or placer in placer_sets.LEARNED:
      return self.time_budget_s
    return _QUICK_BUDGET_S if self.quick else None

  def timeout_s(self, placer: str) -> float:
    """Seconds after which a cell has failed."""
    if self.cell_timeout_s is not None:
      return self.cell_timeout_s
    if placer in placer_sets.LEARNED and not self.quick:
      return _LEARNED_TIMEOUT_S + (self.time_budget_s or 0.)
    limit_s = _QUICK_TIMEOUT_S if self.quick else _TIMEOUT_S
    return limit_s + (self.budget_s(placer) or 0.)

  def to_json(self) -> dict[str, Any]:
    """All that a reader should know."""
    return {
        'seed': self.seed, 'reward': self.reward, 'quick': self.quick,
        'time_budget_s': self.time_budget_s,
        'local_workers': self.local_workers, 'batch_size': self.batch_size,
        'jobs': self.jobs
    }


def cell_key(settings: Settings, task: str, graph_digest: str,
             placer: str) -> str:
  """16 hex digits that change with all that a cell's result depends on.

  How many cells run side by side does not count, although seconds of a search
  depend on it: the result says how many there were.

  Args:
    settings: Of the run.
    task: Its name.
    graph_digest: Of `loading.Loaded`.
    placer: Its name.
  """
  parts = (SCHEMA, task, graph_digest, placer, settings.seed, settings.reward,
           settings.budget_s(placer), settings.local_workers,
           settings.batch_size, versions(), _code_digest(placer))
  return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


@functools.cache
def versions() -> dict[str, str]:
  """Versions of Python, of this project and of what placers are made of."""
  found = {
      'python': platform.python_version(),
      'gdp-grappler': gdp_grappler.__version__
  }
  for package in _PACKAGES:
    try:
      found[package] = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
      found[package] = 'not installed'
  return found


def _code_digest(placer) -> str:
  """Of the sources behind a placer; for the learned policy, of its files."""
  learned = placer in placer_sets.LEARNED
  folder = pathlib.Path(gdp_grappler.__file__).parent
  paths = [folder / part for part in _CODE + _LEARNED_CODE * learned]
  trainer = pathlib.Path(__file__).parents[1]
  paths += [
      trainer / 'benchmark' / f'{name}.py'
      for name in ('cell', 'bounds', 'placer_sets')
  ]
  if placer == placer_sets.LEARNED[0]:
    paths.append(
        pathlib.Path(os.environ.get('GDP_POLICY') or trainer / 'pretrained'))
  elif learned:
    paths.append(trainer / 'hdp')
  return _digest(tuple(paths))


@functools.cache
def _digest(paths) -> str:
  result = hashlib.sha256()
  for path in paths:
    files = [path] if path.is_file() else sorted(
        file for file in path.rglob('*')
        if file.is_file() and file.suffix not in ('.pyc', '.md'))
    for file in files:
      result.update(str(file.relative_to(path.parent)).encode())
      result.update(file.read_bytes())
  return result.hexdigest()

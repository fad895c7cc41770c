"""What a cell's result depends on, and the key of a cell."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import pathlib
import types
from typing import Any, Mapping

import gdp_grappler
from gdp_grappler import environment
from gdp_grappler.graph import assumptions
from gdp_grappler.placers import placer_table
from gdp_grappler.placers import registry
from gdp_grappler.placers.policy import shipped_policy
from gdp_grappler.problems import rewards
import placer_model
from placer_model import versions as versions_lib
from placer_model.benchmark import clocks
from placer_model.benchmark import placer_sets

SCHEMA = 1
_PACKAGES = ('tensorflow', 'numpy', 'scipy', 'pymetis', 'scotchpy64',
             'mtkahypar', 'highspy', 'tf-agents', 'tensorflow-gnn')
# No cell imports these.
_OTHERS = ('gdp_grappler/bin/', 'gdp_grappler/reports/', 'placer_model/bin/',
           'placer_model/pretrained/',
           *(f'placer_model/benchmark/{name}.py'
             for name in ('figures', 'gantt', 'headroom', 'pictures',
                          'progress', 'published', 'report', 'summary',
                          'tables')))
_NOT_RUN = ('.pyc', '.md', '.c', '.cc', '.h')
_QUICK_BUDGET_S = 2.
_QUICK_TIMEOUT_S, _TIMEOUT_S, _LEARNED_TIMEOUT_S = 120., 900., 6 * 3600.


@dataclasses.dataclass(frozen=True)
class Settings:
  """How all cells of a run are computed.

  Attributes:
    seed: Of every placer.
    reward: One of `rewards.ALL`.
    quick: Small variants of the workloads, and short searches.
    time_budget_s: What a search may take. None: as much as each has by default,
      but 2 s for those that do not learn if `quick`. Which placement a search
      has found when its time is over depends on the machine.
    cell_timeout_s: A cell that takes longer has failed. None: 15 minutes, 2 if
      `quick`, 6 hours for those that learn, and the budget on top.
    local_workers: Servers to measure on; 0 for the devices of this machine.
    batch_size: As of `request.Request`, for all graphs.
    trip_count: As of `request.Request`.
    profile: As of `request.Request`.
    jobs: Cells computed side by side.
    may_round: As of `request.Request`.
    max_memory: As of `max_memory.parse`, for all clusters.
    clock: Of `clocks.CLOCKS`; measures the seconds of searches.
  """

  seed: int = 0
  reward: str = rewards.SIMULATED
  quick: bool = False
  time_budget_s: float | None = None
  cell_timeout_s: float | None = None
  local_workers: int = 0
  batch_size: int = assumptions.DEFAULT_BATCH_SIZE
  trip_count: int = assumptions.DEFAULT_TRIP_COUNT
  profile: str = ''
  jobs: int = 1
  may_round: bool = False
  max_memory: str = ''
  clock: str = clocks.WALL

  @property
  def simulated(self) -> bool:
    """Whether steps are simulated."""
    return self.reward == rewards.SIMULATED

  def budget_s(self, placer: str) -> float | None:
    """Seconds that a placer's search may take."""
    if self.time_budget_s is not None or placer_sets.learns(placer):
      return self.time_budget_s
    return _QUICK_BUDGET_S if self.quick else None

  def timeout_s(self, placer: str) -> float:
    """Seconds after which a cell has failed."""
    if self.cell_timeout_s is not None:
      return self.cell_timeout_s
    if placer_sets.learns(placer) and not self.quick:
      return _LEARNED_TIMEOUT_S + (self.time_budget_s or 0.)
    limit_s = _QUICK_TIMEOUT_S if self.quick else _TIMEOUT_S
    return limit_s + (self.budget_s(placer) or 0.)

  def to_json(self) -> dict[str, Any]:
    """All that a reader should know."""
    return {
        'seed': self.seed, 'reward': self.reward, 'quick': self.quick,
        'time_budget_s': self.time_budget_s,
        'local_workers': self.local_workers, 'batch_size': self.batch_size,
        'trip_count': self.trip_count, 'profile': self.profile,
        'jobs': self.jobs, 'may_round': self.may_round,
        'max_memory': self.max_memory, 'clock': self.clock
    }

  @classmethod
  def from_json(cls, fields: Mapping[str, Any]) -> Settings:
    """What `to_json` made, with the usual limits of time.

    Before it said whether ops may round they might.
    """
    return cls(**{'may_round': True, **fields})


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
           settings.batch_size, settings.clock, versions(), _code_digest(),
           _policy_digest(placer))
  return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


@functools.cache
def versions() -> dict[str, str]:
  """Versions of Python, of this project and of what placers are made of."""
  return versions_lib.of(_PACKAGES)


def sources() -> dict[str, pathlib.Path]:
  """Whatever a cell's result may depend on in both packages, by its path.

  That is every file, native libraries too, but for the policy, which only some
  placers read, what is needed once cells are finished, command lines, whose
  values arrive as settings, and what does not run: documents and the sources of
  the libraries.
  """
  return {
      name: path for package in (gdp_grappler, placer_model)
      for name, path in _files(_folder(package)).items()
      if path.suffix not in _NOT_RUN and not name.startswith(_OTHERS)
  }


def _folder(package: types.ModuleType) -> pathlib.Path:
  assert package.__file__ is not None  # It has an __init__.py.
  return pathlib.Path(package.__file__).parent


def _files(folder: pathlib.Path) -> dict[str, pathlib.Path]:
  """All files of a folder, by their paths with its name."""
  return {
      path.relative_to(folder.parent).as_posix(): path
      for path in sorted(folder.rglob('*')) if path.is_file()
  }


@functools.cache
def _code_digest() -> str:
  return _digest(sources())


def _policy_digest(placer: str) -> str:
  """Of the policy that a placer reads; '' if it reads none."""
  if placer_table.Need.POLICY not in registry.get(placer).needs:
    return ''
  folder = environment.policy_folder() or shipped_policy.shipped_policy()
  return _digest(_files(pathlib.Path(folder)))


def _digest(files: Mapping[str, pathlib.Path]) -> str:
  result = hashlib.sha256()
  for name, path in files.items():
    for part in (name.encode(), path.read_bytes()):
      result.update(len(part).to_bytes(8))
      result.update(part)
  return result.hexdigest()

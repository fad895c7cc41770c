"""Settings of cells, and the key that identifies a cell's result."""

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

SCHEMA = 1  # Of a record. A new number makes all cells anew.
_PACKAGES = ('tensorflow', 'numpy', 'scipy', 'pymetis', 'scotchpy64',
             'mtkahypar', 'highspy', 'tf-agents', 'tensorflow-gnn')
# Modules that no cell imports.
_OTHERS = ('gdp_grappler/bin/', 'gdp_grappler/reports/', 'placer_model/bin/',
           'placer_model/pretrained/',
           *(f'placer_model/benchmark/{name}.py'
             for name in ('figures', 'gantt', 'headroom', 'pictures',
                          'progress', 'published', 'report', 'summary',
                          'tables')))
_NOT_RUN = ('.pyc', '.md', '.c', '.cc', '.h')
_QUICK_BUDGET_S = 2.  # Time budget of a search with --quick.
# Time limit of a cell with --quick.
_QUICK_TIMEOUT_S = 120.
_TIMEOUT_S = 900.  # Time limit of a cell.
_LEARNED_TIMEOUT_S = 6 * 3600.  # Time limit of a cell whose placer learns.


@dataclasses.dataclass(frozen=True)
class Settings:
  """Settings of all cells of a run.

  Attributes:
    seed: Seed of all placers.
    reward: One of `rewards.ALL`.
    quick: Whether to use small variants of the workloads, and short searches.
    time_budget_s: Time limit of each search, in seconds. None means the limit
      of the placer or, if `quick`, a short limit for placers that do not learn.
      The result of a search with a time limit depends on the machine.
    cell_timeout_s: Seconds after which a cell has failed. None means a limit
      that depends on `quick` and on whether the placer learns, plus the time
      budget.
    local_workers: Number of servers to measure on; 0 for the devices of this
      machine.
    batch_size: Batch size of all graphs, see `request.Request`.
    trip_count: Iterations of loops without a known count, see
      `request.Request`.
    profile: Profile with costs of ops, see `request.Request`.
    jobs: Number of cells computed in parallel.
    may_round: Whether ops may move to devices that round differently, see
      `request.Request`.
    max_memory: Limits on the memory of all clusters' devices, see
      `max_memory.parse`.
    clock: Clock that measures the seconds of searches, of `clocks.CLOCKS`.
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
    """Returns the time limit of a search; None for the placer's own limit."""
    if self.time_budget_s is not None or placer_sets.learns(placer):
      return self.time_budget_s
    return _QUICK_BUDGET_S if self.quick else None

  def timeout_s(self, placer: str) -> float:
    """Returns the seconds after which a cell has failed."""
    if self.cell_timeout_s is not None:
      return self.cell_timeout_s
    if placer_sets.learns(placer) and not self.quick:
      return _LEARNED_TIMEOUT_S + (self.time_budget_s or 0.)
    limit_s = _QUICK_TIMEOUT_S if self.quick else _TIMEOUT_S
    return limit_s + (self.budget_s(placer) or 0.)

  def to_json(self) -> dict[str, Any]:
    """Returns the settings that the results show."""
    fields = dataclasses.asdict(self)
    del fields['cell_timeout_s']
    return fields

  @classmethod
  def from_json(cls, fields: Mapping[str, Any]) -> Settings:
    """Returns settings from `to_json`, with the default timeout of cells.

    In results of versions without `may_round`, ops could always move to devices
    that round differently.
    """
    return cls(**{'may_round': True, **fields})


def cell_key(settings: Settings, task: str, graph_digest: str,
             placer: str) -> str:
  """Returns 16 hex digits that depend on all that a cell's result depends on.

  The number of parallel cells is left out, although the seconds of a search
  depend on it. Each record states it.

  Args:
    settings: Settings of the run.
    task: Name of the task.
    graph_digest: Digest of the graph, `loading.Loaded.digest`.
    placer: Name of the placer.
  """
  parts = (SCHEMA, task, graph_digest, placer, settings.seed, settings.reward,
           settings.budget_s(placer), settings.local_workers,
           settings.batch_size, settings.clock, versions(), code_digest(),
           _policy_digest(placer))
  return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


@functools.cache
def versions() -> dict[str, str]:
  """Returns versions of Python, of this project and of placers' packages."""
  return versions_lib.of(_PACKAGES)


def sources() -> dict[str, pathlib.Path]:
  """Returns all files that a cell's result may depend on, by path.

  These are all files of both packages, native libraries too, with these
  exceptions: the policy, which only some placers read; modules that run after
  the cells; command lines, whose values are in the settings; and files that do
  not run, such as documents and sources of libraries.
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
  """Returns all files of a folder by paths that begin with its name."""
  return {
      path.relative_to(folder.parent).as_posix(): path
      for path in sorted(folder.rglob('*')) if path.is_file()
  }


@functools.cache
def code_digest() -> str:
  """Returns the digest of all files that a cell's result may depend on."""
  return _digest(sources())


def _policy_digest(placer: str) -> str:
  """Returns the digest of the policy that a placer reads; '' without one."""
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

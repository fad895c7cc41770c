"""Tasks, bundles and proposals, which all list schedulers share."""

from __future__ import annotations

import dataclasses
import functools
import threading
from typing import Any, Callable

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.graph import op_graph
from gdp_grappler.placers.list_scheduling import bundling
from gdp_grappler.placers.list_scheduling import favourite_children
from gdp_grappler.placers.list_scheduling import native_scheduler
from gdp_grappler.placers.list_scheduling import task_graph
from gdp_grappler.placers.partitioning import partitioning
from gdp_grappler.placers.search.memory import memory_estimate

# Ops above which a problem is large. Placers then make fewer schedules.
LARGE_OPS = 40_000
# Ops times devices above which a problem is large, too.
LARGE = 200_000
# Number of halvings that always leaves one accelerator.
_ALL = 63


@dataclasses.dataclass(frozen=True)
class Bundles:
  """How ops become tasks and bundles.

  A task is ops that run as one. A bundle is tasks that share a device.

  Attributes:
    grain: Grain of `bundling.fuse`; None for one task per op.
    parts: Least number of bundles per device that `bundling.co_place` makes;
      None joins no bundles in this way.
    transfer_grain: Grain of `bundling.co_place_by_transfer`; None joins no
      bundles in this way. It must be None if `parts` is given.
    every_device: Whether every op may be on every device. Otherwise a CPU gets
      only ops that no accelerator can have.
    halvings: Number of times to halve the number of accelerators in use; at
      least one stays in use. If transfers take long, fewer accelerators are
      better. The fastest accelerators stay in use.
  """

  grain: float | None = None
  parts: int | None = None
  transfer_grain: float | None = None
  every_device: bool = False
  halvings: int = 0


@dataclasses.dataclass(frozen=True)
class ScheduleConfig:
  """How a list scheduler makes a proposal.

  Attributes:
    bundles: The tasks and bundles to schedule.
    rules: The rules of the scheduler.
  """

  bundles: Bundles
  rules: native_scheduler.Rules


def config(**fields: Any) -> ScheduleConfig:
  """Makes a configuration.

  Args:
    **fields: Fields of `Bundles` and of `native_scheduler.Rules`, by name.
  """
  names = {field.name for field in dataclasses.fields(Bundles)}
  bundles = {name: fields.pop(name) for name in names & fields.keys()}
  return ScheduleConfig(Bundles(**bundles), native_scheduler.Rules(**fields))


# Function of the capacities of memories [P], in bytes. Returns the devices of
# groups, int [G].
Proposer = Callable[[np.ndarray], np.ndarray]


class Proposals:
  """Makes proposals for one graph, and keeps results that they share.

  Attributes:
    graph: N ops in G groups.
    cluster: D devices.
  """

  def __init__(self, graph: op_graph.OpGraph, cluster: cluster_lib.Cluster,
               seconds: np.ndarray, allowed: np.ndarray) -> None:
    """Computes nothing yet.

    Args:
      graph: N ops in G groups.
      cluster: D devices.
      seconds: float64 [N, D], seconds of ops (`Problem.busy_seconds`).
      allowed: bool [G, D], devices that each group may have.
    """
    self.graph, self.cluster = graph, cluster
    self._seconds, self._allowed = seconds, allowed
    self._tasks: dict[Bundles, task_graph.TaskGraph] = {}
    self._favourites: dict[Bundles, np.ndarray] = {}
    self._lock = threading.RLock()

  @property
  def large(self) -> bool:
    """Whether placers should make fewer schedules, to save time."""
    num_ops = self.graph.num_ops
    return num_ops > LARGE_OPS or num_ops * self.cluster.num_devices > LARGE

  @functools.cached_property
  def accelerators(self) -> np.ndarray:
    """int [A], the accelerators of the cluster."""
    return np.array(self.cluster.accelerators)

  def targets(self, halvings: int) -> np.ndarray:
    """int [t], the accelerators in use; see `Bundles.halvings`."""
    left = max(1, len(self.accelerators) >> halvings)
    return np.sort(
        partitioning.accelerators(self.cluster, self._seconds)[:left])

  @functools.cached_property
  def link(self) -> tuple[float, float]:
    """Mean seconds of latency, and mean seconds per byte, of links.

    The links are those between accelerators.
    """
    return partitioning.mean_link(self.cluster, self.accelerators)

  @functools.cached_property
  def equal_devices(self) -> bool:
    """Whether every op takes as long on one accelerator as on another."""
    seconds = self._seconds[:, self.accelerators]
    return bool((seconds == seconds[:, :1]).all())

  @functools.cached_property
  def group_bytes(self) -> np.ndarray:
    """float64 [G], estimated bytes of each group; see `memory_estimate`."""
    return memory_estimate.group_bytes(self.graph,
                                       memory_estimate.alive_share(self.graph))

  def tasks(self, bundles: Bundles) -> task_graph.TaskGraph:
    """The tasks and bundles; several threads may call this at once."""
    with self._lock:
      if bundles not in self._tasks:
        self._tasks[bundles] = self._make_tasks(bundles)
      return self._tasks[bundles]

  def suited(self, config: ScheduleConfig) -> ScheduleConfig:
    """The configuration, with `earliest_finish` if accelerators differ."""
    if self.equal_devices:
      return config
    return dataclasses.replace(
        config, rules=dataclasses.replace(config.rules, earliest_finish=True))

  def favourites(self, bundles: Bundles) -> np.ndarray:
    """int32 [2, M], favourite children; see `favourite_children.matched`.

    Co-placement changes no task, so it does not count. Several threads may call
    this at once.
    """
    key = dataclasses.replace(bundles, parts=None, transfer_grain=None)
    with self._lock:
      if key not in self._favourites:
        tasks = self.tasks(key)
        self._favourites[key] = favourite_children.matched(
            tasks, bundling.work_s(tasks), self.link)
      return self._favourites[key]

  def proposer(self, config: ScheduleConfig,
               favourites: np.ndarray | None = None) -> Proposer:
    """A proposer that makes one schedule.

    Args:
      config: Tasks and rules.
      favourites: int [M], favourite child of each task; needed by the rule
        `Rules.favourites`.
    """
    return lambda pool_bytes: self.schedule(self.tasks(config.bundles), config.
                                            rules, pool_bytes, favourites)

  def alone(self, pool_bytes: np.ndarray) -> np.ndarray:
    """int [G], a proposal with all groups on the fastest accelerator.

    A group that may not be there gets another device.

    Args:
      pool_bytes: [P], not used, because the proposal ignores memories.
    """
    del pool_bytes
    return self._choices(Bundles(halvings=_ALL)).argmax(axis=1)

  def schedule(self, tasks: task_graph.TaskGraph, rules: native_scheduler.Rules,
               pool_bytes: np.ndarray,
               favourites: np.ndarray | None = None) -> np.ndarray:
    """int32 [G], devices of groups; see `native_scheduler.run`."""
    planned = native_scheduler.run(tasks, self.cluster,
                                   tasks.bundle_sums(self.group_bytes),
                                   pool_bytes, rules, favourites)
    by_bundle = np.empty(tasks.num_bundles, np.int32)
    by_bundle[tasks.bundles] = planned.devices
    return by_bundle[tasks.group_bundles]

  def _make_tasks(self, bundles: Bundles) -> task_graph.TaskGraph:
    if bundles.parts is not None:
      made = self.tasks(dataclasses.replace(bundles, parts=None))
      devices = len(self.targets(bundles.halvings))
      return bundling.co_place(made, self.link, bundles.parts * devices)
    if bundles.transfer_grain is not None:
      made = self.tasks(dataclasses.replace(bundles, transfer_grain=None))
      return bundling.co_place_by_transfer(made, self.link,
                                           bundles.transfer_grain)
    if bundles.grain is not None:
      made = self.tasks(dataclasses.replace(bundles, grain=None))
      return bundling.fuse(made, self.link, bundles.grain)
    return task_graph.from_graph(self.graph, self._seconds,
                                 self._choices(bundles))

  def _choices(self, bundles: Bundles) -> np.ndarray:
    """bool [G, D], the devices that each group may have in a proposal."""
    allowed = self._allowed
    if bundles.every_device:
      return allowed
    result = allowed
    for devices in (self.accelerators, self.targets(bundles.halvings)):
      wanted = np.zeros(allowed.shape, bool)
      wanted[:, devices] = allowed[:, devices]
      result = np.where(wanted.any(axis=1, keepdims=True), wanted, result)
    return result

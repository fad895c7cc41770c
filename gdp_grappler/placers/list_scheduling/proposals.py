"""What the placers of this package have in common: ways to propose."""

from __future__ import annotations

import dataclasses
import functools
import threading

import numpy as np

from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.list_scheduling import bundling
from gdp_grappler.placers.list_scheduling import candidates
from gdp_grappler.placers.list_scheduling import native_scheduler
from gdp_grappler.placers.list_scheduling import task_graph
from gdp_grappler.placers.search.memory import memory_estimate

# Ops, and ops times devices, above which a problem is large: placers try fewer
# ways.
LARGE_OPS = 40_000
LARGE = 200_000
# More than any number of accelerators can be halved.
_ALL = 63


@dataclasses.dataclass(frozen=True)
class Bundles:
  """How ops become tasks and bundles.

  Attributes:
    grain: Of `bundling.fuse`; None for a task per op.
    parts: `bundling.co_place` makes parts of one over so many times the number
      of devices; None for only what the graph itself puts together.
    dear: Of `bundling.co_place_dear`; None as above. Not with `parts`.
    every_device: Choose from all devices; otherwise a CPU is only for what may
      not be on an accelerator, if there is one.
    halvings: How often to halve the number of accelerators to choose from, as
      long as one is left: where communication is dear, fewer are better. The
      fastest stay, of equals the first.
  """

  grain: float | None = None
  parts: int | None = None
  dear: float | None = None
  every_device: bool = False
  halvings: int = 0


@dataclasses.dataclass(frozen=True)
class Way:
  """One way to propose: what is scheduled, by which rules."""

  bundles: Bundles
  rules: native_scheduler.Rules


class Proposals:
  """Ways to propose for one problem; what they share is computed once."""

  def __init__(self, problem: placer_lib.Problem) -> None:
    self.problem = problem
    self._tasks: dict[Bundles, task_graph.TaskGraph] = {}
    self._lock = threading.RLock()

  @property
  def large(self) -> bool:
    """Whether only few ways can be tried in the time there is."""
    num_ops = self.problem.graph.num_ops
    return (num_ops > LARGE_OPS or
            num_ops * self.problem.cluster.num_devices > LARGE)

  @functools.cached_property
  def accelerators(self) -> np.ndarray:
    """int, those of the cluster."""
    return np.array(self.problem.cluster.accelerators)

  def targets(self, halvings: int) -> np.ndarray:
    """int, the accelerators in use; see `Bundles.halvings`."""
    count = len(self.accelerators)
    left = max(1, count >> halvings)
    work_s = self.problem.busy_seconds[:, self.accelerators].sum(axis=0)
    return self.accelerators[np.sort(np.argsort(work_s, kind='stable')[:left])]

  @functools.cached_property
  def link(self) -> tuple[float, float]:
    """Seconds of latency and per byte between accelerators."""
    return bundling.mean_link(self.problem.cluster, self.accelerators)

  @functools.cached_property
  def equal_devices(self) -> bool:
    """Whether every op takes as long on one accelerator as on another."""
    seconds = self.problem.busy_seconds[:, self.accelerators]
    return bool((seconds == seconds[:, :1]).all())

  @functools.cached_property
  def group_bytes(self) -> np.ndarray:
    """float64 [G], memory to set aside; see `memory_estimate`."""
    graph = self.problem.graph
    return memory_estimate.group_bytes(graph,
                                       memory_estimate.alive_share(graph))

  def tasks(self, bundles: Bundles) -> task_graph.TaskGraph:
    """Tasks and bundles; from several threads at once."""
    with self._lock:
      if bundles not in self._tasks:
        self._tasks[bundles] = self._make_tasks(bundles)
      return self._tasks[bundles]

  def proposer(self, way: Way,
               favourites: np.ndarray | None = None) -> candidates.Proposer:
    """What `candidates.best` asks.

    Args:
      way: Tasks and rules.
      favourites: int [M], favourite children, if the rules have them.
    """
    return lambda pool_bytes: self.schedule(self.tasks(way.bundles), way.rules,
                                            pool_bytes, favourites)

  def alone(self, pool_bytes: np.ndarray) -> np.ndarray:
    """int [G], everything on the fastest accelerator that may be there."""
    del pool_bytes
    return self._choices(Bundles(halvings=_ALL)).argmax(axis=1)

  def schedule(self, tasks: task_graph.TaskGraph, rules: native_scheduler.Rules,
               pool_bytes: np.ndarray,
               favourites: np.ndarray | None = None) -> np.ndarray:
    """int32 [G], devices of groups; arguments as `native_scheduler.run`."""
    planned = native_scheduler.run(tasks, self.problem.cluster,
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
    if bundles.dear is not None:
      made = self.tasks(dataclasses.replace(bundles, dear=None))
      return bundling.co_place_dear(made, self.link, bundles.dear)
    if bundles.grain is not None:
      made = self.tasks(dataclasses.replace(bundles, grain=None))
      return bundling.fuse(made, self.link, bundles.grain)
    return task_graph.from_problem(self.problem, self._choices(bundles))

  def _choices(self, bundles: Bundles) -> np.ndarray:
    """bool [G, D], the devices to choose from."""
    allowed = self.problem.allowed
    if bundles.every_device:
      return allowed
    result = allowed
    for devices in (self.accelerators, self.targets(bundles.halvings)):
      wanted = np.zeros(allowed.shape, bool)
      wanted[:, devices] = allowed[:, devices]
      result = np.where(wanted.any(axis=1, keepdims=True), wanted, result)
    return result

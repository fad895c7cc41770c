"""Which placers there are, by set and by name, and how they are made."""

from __future__ import annotations

import importlib
from typing import Sequence

import numpy as np

from gdp_grappler import errors
from gdp_grappler import suggestions
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers import registry
from gdp_grappler.placers import single_device

CPU_ONLY, GPU_ONLY = 'cpu_only', 'gpu_only'
_ONLY = {CPU_ONLY: 'CPU', GPU_ONLY: 'GPU'}
EXPERT = 'human_expert'
# Those that learn. All but the first are searches by `placer_model.hdp`.
LEARNED = (registry.LEARNED, 'hdp', 'hdp_no_grouping', 'hdp_random_grouping',
           'coloc_rl')
# How tables list them; others follow.
_ORDER = (CPU_ONLY, GPU_ONLY, 'single_device', EXPERT, 'random', 'round_robin',
          'metis', 'scotch', 'min_cut', 'mt_kahypar', 'm_topo', 'm_etf',
          'm_sct', 'heft', 'local_search', 'best_of', *LEARNED)


def heuristics() -> tuple[str, ...]:
  """All that do not learn."""
  known = {*registry.names(), *_ONLY} - set(LEARNED)
  return (*(name for name in _ORDER if name in known),
          *sorted(known - set(_ORDER)))


def parse(text: str) -> tuple[str, ...]:
  """The placers that a user means, each once.

  Args:
    text: 'all', 'heuristics', 'learned' or names, separated by commas.

  Raises:
    GdpError: nothing of that name.
  """
  sets = {
      'all': (*heuristics(), *LEARNED), 'heuristics': heuristics(),
      'learned': LEARNED
  }
  result: list[str] = []
  for item in filter(None, (part.strip() for part in text.split(','))):
    if item not in sets and item not in sets['all']:
      raise errors.GdpError(
          f'Unknown placer "{item}". Placers: {", ".join(sets["all"])}; sets: '
          f'{", ".join(sets)}.{suggestions.did_you_mean(item, sets["all"])}')
    result += sets.get(item, (item,))
  if not result:
    raise errors.GdpError('--placers names no placer. Give all, heuristics, '
                          'learned or names.')
  return tuple(dict.fromkeys(result))


def named_by_user(text: str) -> frozenset[str]:
  """Those asked for by name, not by set."""
  return frozenset(part.strip() for part in text.split(','))


def create(name: str) -> placer_lib.Placer:
  """Makes a placer.

  Raises:
    GdpError: no such placer, or what it needs is missing.
  """
  if name in _ONLY:
    return OnlyPlacer(_ONLY[name])
  if name in registry.names():
    return registry.create(name)
  placers = importlib.import_module('placer_model.hdp.registry').PLACERS
  if name not in placers:
    raise errors.GdpError(f'Placer "{name}" is not among those of '
                          f'placer_model.hdp: {", ".join(placers)}.')
  return placers[name]()


class OnlyPlacer:
  """Everything on the first device of a type, as far as it may be there."""

  def __init__(self, device_type: str):
    """Of `op_graph.DEVICE_TYPES`."""
    self._type = device_type

  def place(self, problem: placer_lib.Problem) -> placement_lib.Placement:
    """See `Placer`.

    Raises:
      InfeasiblePlacementError: the cluster has no such device, or the graph
        nothing for it.
    """
    first = first_device(problem.cluster, self._type)
    if first is None:
      raise errors.InfeasiblePlacementError(
          f'Cluster "{problem.cluster.name}" has no {self._type}. Take another '
          'cluster or another placer.')
    if len(problem.allowed) and not problem.allowed[:, first].any():
      raise errors.InfeasiblePlacementError(
          f'No op of graph "{problem.graph.name}" may be on a {self._type}. '
          'Take another placer.')
    return single_device.OnlyDevicePlacer(first).place(problem)


def first_device(cluster: cluster_lib.Cluster, device_type: str) -> int | None:
  """Index of the first device of a type; None if there is none."""
  return next((i for i, device in enumerate(cluster.devices)
               if device.type == device_type), None)


def applicable(names: Sequence[str], cluster: cluster_lib.Cluster,
               has_expert: bool, wanted: frozenset[str]) -> tuple[str, ...]:
  """Those that make sense on a task, and those asked for by name.

  Args:
    names: Of `parse`.
    cluster: Without a GPU there is no `GPU_ONLY`.
    has_expert: Whether an expert placement is known.
    wanted: Of `named_by_user`.
  """
  senseless = set()
  if first_device(cluster, 'GPU') is None:
    senseless.add(GPU_ONLY)
  if not has_expert:
    senseless.add(EXPERT)
  return tuple(n for n in names if n not in senseless or n in wanted)


def expert_on_one_gpu(num_ops: int, cluster: cluster_lib.Cluster) -> np.ndarray:
  """int32 [N], the first GPU, or the host where there is none."""
  first = first_device(cluster, 'GPU')
  return np.full(num_ops, cluster.host if first is None else first, np.int32)

"""Sets of placers by name, and the placers that apply to a task."""

from __future__ import annotations

from typing import Sequence

import numpy as np

from gdp_grappler import errors
from gdp_grappler import suggestions
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.placers import placer_table
from gdp_grappler.placers import registry
from gdp_grappler.placers.simple import single_device


def heuristics() -> tuple[str, ...]:
  """Returns all placers that do not learn, in the order of tables."""
  return tuple(e.name for e in _own() if not e.learns)


def learned() -> tuple[str, ...]:
  """Returns the placers that learn."""
  return tuple(e.name for e in _own() if e.learns)


def learns(name: str) -> bool:
  """Returns whether a placer learns; other names of a placer count too."""
  entry = placer_table.table().get(name)
  return entry is not None and entry.learns


def kind(name: str) -> str:
  """Returns a placer's kind for tables; 'removed' if this version lacks it.

  Results of an earlier version may name placers that no longer exist.

  Args:
    name: Name of a placer of any version.
  """
  entry = placer_table.table().get(name)
  return entry.kind if entry else 'removed'


def color(name: str) -> str:
  """Returns a placer's color in pictures; grey if this version lacks it.

  Args:
    name: Name of a placer of any version.
  """
  entry = placer_table.table().get(name)
  return entry.color if entry else '#999999'


def _own() -> list[placer_table.Entry]:
  """Returns the placers without aliases."""
  return [entry for entry in placer_table.table().values() if not entry.same_as]


def parse(text: str) -> tuple[str, ...]:
  """Returns the placers that a user's text means, each once.

  Args:
    text: 'all', 'heuristics', 'learned' or names, separated by commas.

  Raises:
    GdpError: there is no placer or set of that name.
  """
  names = registry.names()
  sets = {
      'all': tuple(entry.name for entry in _own()), 'heuristics': heuristics(),
      'learned': learned()
  }
  result: list[str] = []
  for item in filter(None, (part.strip() for part in text.split(','))):
    if item not in sets and item not in names:
      raise errors.GdpError(
          suggestions.unknown('placer', item, names,
                              f'gdp place --help; sets: {", ".join(sets)}'))
    result += sets.get(item, (item,))
  if not result:
    raise errors.GdpError('--placers names no placer. Give all, heuristics, '
                          'learned or names.')
  return tuple(dict.fromkeys(result))


def named_by_user(text: str) -> frozenset[str]:
  """Returns the placers that the user named, instead of a set."""
  return frozenset(part.strip() for part in text.split(','))


def applicable(names: Sequence[str], cluster: cluster_lib.Cluster,
               has_expert: bool, wanted: frozenset[str]) -> tuple[str, ...]:
  """Returns the placers that apply to a task, or that the user named.

  Args:
    names: Result of `parse`.
    cluster: Cluster of the task; it may have no GPU, and only one host.
    has_expert: Whether an expert placement is known.
    wanted: Result of `named_by_user`.
  """
  lacking = set()
  if single_device.first_device(cluster, 'GPU') is None:
    lacking.add(placer_table.Need.GPU)
  if not has_expert:
    lacking.add(placer_table.Need.EXPERT)
  if len(cluster.hosts) < 2:
    lacking.add(placer_table.Need.HOSTS)
  return tuple(name for name in names
               if name in wanted or not lacking & registry.get(name).needs)


def expert_on_one_gpu(num_ops: int, cluster: cluster_lib.Cluster) -> np.ndarray:
  """Returns the first GPU, or the host without one, for all ops, int32 [N]."""
  first = single_device.first_device(cluster, 'GPU')
  return np.full(num_ops, cluster.host if first is None else first, np.int32)

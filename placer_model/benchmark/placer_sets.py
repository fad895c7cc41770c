"""Sets of placers by name, and those that make sense on a task."""

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
  """All that do not learn, as tables list them."""
  return tuple(e.name for e in _own() if not e.learns)


def learned() -> tuple[str, ...]:
  """Those that learn."""
  return tuple(e.name for e in _own() if e.learns)


def learns(name: str) -> bool:
  """Whether this is one of those that learn, by whatever name."""
  entry = placer_table.table().get(name)
  return entry is not None and entry.learns


def kind(name: str) -> str:
  """What a placer does, for tables; 'removed' if this version lacks it.

  Results of an earlier version may name placers that are gone.

  Args:
    name: Of a placer of any version.
  """
  entry = placer_table.table().get(name)
  return entry.kind if entry else 'removed'


def color(name: str) -> str:
  """The color of a placer in pictures; grey if this version lacks it.

  Args:
    name: Of a placer of any version.
  """
  entry = placer_table.table().get(name)
  return entry.color if entry else '#999999'


def _own() -> list[placer_table.Entry]:
  """Without other names of them."""
  return [entry for entry in placer_table.table().values() if not entry.same_as]


def parse(text: str) -> tuple[str, ...]:
  """The placers that a user means, each once.

  Args:
    text: 'all', 'heuristics', 'learned' or names, separated by commas.

  Raises:
    GdpError: nothing of that name.
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
  """Those asked for by name, not by set."""
  return frozenset(part.strip() for part in text.split(','))


def applicable(names: Sequence[str], cluster: cluster_lib.Cluster,
               has_expert: bool, wanted: frozenset[str]) -> tuple[str, ...]:
  """Those that make sense on a task, and those asked for by name.

  Args:
    names: Of `parse`.
    cluster: It may have no GPU, and one host.
    has_expert: Whether an expert placement is known.
    wanted: Of `named_by_user`.
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
  """int32 [N], the first GPU, or the host where there is none."""
  first = single_device.first_device(cluster, 'GPU')
  return np.full(num_ops, cluster.host if first is None else first, np.int32)

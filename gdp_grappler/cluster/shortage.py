"""Messages about graphs that do not fit a cluster: reasons and remedies."""

from __future__ import annotations

import re
from typing import Iterator, Sequence

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import constraints
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.graph import name_parts
from gdp_grappler.graph import op_graph
from gdp_grappler.graph import op_kinds
from gdp_grappler.sharding import choice

# Largest number of variables, and of tensors, that a message names.
_MOST_NAMED = 3
# A message names variables, constants or the temporary memory of an op as a
# cause if these have at least this share of the bytes that a memory needs.
_A_CAUSE = .1
# Share of the usable memory above which a message warns the user.
_NEARLY_FULL = .9
# Bytes of a unit in a message, the largest unit first.
_UNITS = (1e9, 'GB'), (1e6, 'MB'), (1e3, 'kB')
_HOST = 'CPU'
_VARIABLES = 'variables'
_AND = ' + '
_OF_PARTS = re.compile(rf'{re.escape(choice.PART)}\d+$')


def why_none_fits(graph: op_graph.OpGraph, cluster: cluster_lib.Cluster) -> str:
  """The reason why no placement can fit; '' if one may fit.

  The function looks only at variables and constants, so it needs no search. The
  largest group has to fit into one memory. All groups that may only be in some
  memories have to fit into these memories together.

  Args:
    graph: G groups.
    cluster: P memories.

  Raises:
    InfeasiblePlacementError: a group may not have any device.
  """
  held = graph.group_sums(graph.resident_bytes)
  if not held.any():
    return ''
  may = _pools_of_groups(graph, cluster)
  room = cluster.pool_bytes.astype(float)
  group = int(held.argmax())
  most = room[may[group]].max()
  if held[group] > most:
    return _sentence(
        graph, cluster, f'{_names(graph, [group])} must be in one memory, '
        f'and the largest that it may be in has {size(most)}',
        _causes(graph, graph.groups == group))
  for pools in np.unique(may[held > 0], axis=0):
    inside = ~(may & ~pools).any(axis=1)
    wanted, there = held[inside].sum(), room[pools].sum()
    if wanted > there:
      causes = _causes(graph, inside[graph.groups])
      return _sentence(
          graph, cluster, f'its {causes} hold {size(wanted)} for good, and '
          f'{_pool_names(cluster, pools)}, where they may be, '
          f'{"has" if pools.sum() == 1 else "have"} {size(there)}. The '
          f'largest are {_largest(graph, inside)}', causes)
  return ''


def of_placement(graph: op_graph.OpGraph, cluster: cluster_lib.Cluster,
                 devices: np.ndarray, peak_bytes: Sequence[int],
                 temporary_bytes: np.ndarray) -> str:
  """The reason why the best placement that was found does not fit.

  Args:
    graph: N ops.
    cluster: D devices with P memories.
    devices: int [N], the placement.
    peak_bytes: [P], bytes that the placement needs of each memory.
    temporary_bytes: int64 [N, D], bytes of each op while it runs.
  """
  peaks, room = np.asarray(peak_bytes), cluster.pool_bytes
  full = np.flatnonzero(peaks > room)
  there = np.isin(np.asarray(cluster.memory_pools)[devices], full)
  cause = _A_CAUSE * peaks[full].max(initial=0)
  held = graph.resident_bytes[there].sum()
  causes = ''
  said = [
      f'in the best placement found, '
      f'{list_exceeded(cluster, peak_bytes)}'
  ]
  if held and held >= cause:
    largest = _largest(graph, np.bincount(graph.groups, there) > 0)
    causes = _causes(graph, there)
    said.append(f'{causes.capitalize()} there hold {size(held)} for good; the '
                f'largest are {largest}')
  while_running = _of_a_step(graph, devices, there, temporary_bytes, cause)
  return _sentence(graph, cluster, '. '.join([*said, *while_running]), causes)


def _of_a_step(graph: op_graph.OpGraph, devices: np.ndarray, there: np.ndarray,
               temporary_bytes: np.ndarray, cause: float) -> list[str]:
  """Sentences about memory that a step takes and gives back.

  Args:
    graph: N ops.
    devices: int [N], the placement.
    there: bool [N], ops on a memory that is exceeded.
    temporary_bytes: int64 [N, D], bytes of each op while it runs.
    cause: Least temporary bytes of an op that the sentences name as a cause.
  """
  runs = there & (graph.executions > 0)
  own = graph.where_type(lambda kind: kind not in op_kinds.ALIASES)
  made = np.where(runs & own & ~graph.constants, graph.output_bytes, 0)
  result = []
  largest = [
      f'{_op_name(graph, op)}, {size(made[op])}'
      for op in np.argsort(-made, kind='stable')[:_MOST_NAMED] if made[op]
  ]
  if largest:
    result.append(f'The largest tensors of a step are those of '
                  f'{"; ".join(largest)}')
  used = np.where(runs, temporary_bytes[np.arange(graph.num_ops), devices], 0)
  if used.max(initial=0) >= max(cause, 1):
    op = int(used.argmax())
    result.append(f'{_op_name(graph, op)} ({graph.op_types[op]}) alone may '
                  f'take {size(used[op])} of temporary memory while it runs')
  return result


def _op_name(graph: op_graph.OpGraph, op: int | np.integer) -> str:
  """'"adam/Sub_2" for "words/embeddings"', or '"dense/MatMul"'."""
  name = graph.variables[op] or name_parts.without_callers(graph.names[op])
  served = _served(graph, int(op))
  if served < 0:
    return f'"{name}"'
  variable = _label(graph, _first(graph, served))
  return f'"{name}" for "{variable}"'


def _served(graph: op_graph.OpGraph, op: int) -> int:
  """The group of the only variable that depends on an op; else -1."""
  holds = graph.holds_variables[graph.groups]
  if holds[op]:
    return -1
  successors, starts = graph.successors
  found: set[int] = set()
  seen, waiting = {op}, [op]
  while waiting and len(found) < 2:
    at = waiting.pop()
    if holds[at]:
      found.add(int(graph.groups[at]))
      continue
    readers = set(successors[starts[at]:starts[at + 1]]) - seen
    seen |= readers
    waiting += readers
  return found.pop() if len(found) == 1 else -1


def list_exceeded(cluster: cluster_lib.Cluster,
                  peak_bytes: Sequence[int]) -> str:
  """'GPU:0 needs 16.3 GB of 12.7 GB', for each memory that is exceeded.

  Args:
    cluster: P memories.
    peak_bytes: [P], bytes that a placement needs of each memory.
  """
  return ', '.join(
      f'{name} {"need" if _AND in name else "needs"} {size(peak)} of '
      f'{size(room)}' for name, peak, room in _memories(cluster, peak_bytes)
      if peak > room)


def if_used_anyway(graph: op_graph.OpGraph, cluster: cluster_lib.Cluster,
                   peak_bytes: Sequence[int], less: bool) -> str:
  """A clause about a placement that is used although it exceeds a memory.

  Args:
    graph: The graph.
    cluster: P memories.
    peak_bytes: [P], bytes that the placement needs of each memory.
    less: Whether another placement would exceed memories even more.
  """
  advice = constraints.advice_on_memory(graph, cluster)
  return (f'it exceeds a memory{", though less than as it was" * less}: '
          f'{list_exceeded(cluster, peak_bytes)}{f"; {advice}" * bool(advice)}')


def violations(cluster: cluster_lib.Cluster,
               peak_bytes: np.ndarray) -> tuple[placement_lib.Violation, ...]:
  """A violation for each memory that a placement exceeds.

  Args:
    cluster: P memories.
    peak_bytes: int64 [P], bytes that the placement needs of each memory.
  """
  return tuple(
      placement_lib.Violation(
          'memory',
          f'{name} needs {size(peak)} at its peak, and a plan may use '
          f'{size(room)} of it')
      for name, peak, room in _memories(cluster, peak_bytes) if peak > room)


def nearly_full(cluster: cluster_lib.Cluster, peak_bytes: Sequence[int]) -> str:
  """A message if a plan nearly fills a memory; '' if it does not.

  Args:
    cluster: P memories.
    peak_bytes: [P], bytes that the plan needs of each memory.
  """
  full = [
      f'{name} {size(peak)} of {size(room)}'
      for name, peak, room in _memories(cluster, peak_bytes)
      if _NEARLY_FULL * room < peak <= room
  ]
  return f'it nearly fills memories: {", ".join(full)}' if full else ''


def rooms_bytes(cluster: cluster_lib.Cluster) -> tuple[int, ...]:
  """Bytes that plans may use of each card, or of each memory without cards.

  Args:
    cluster: P memories.

  Returns:
    One number per memory of a card, or [P] if the cluster has no card.
  """
  cards = {
      pool for device, pool in zip(cluster.devices, cluster.memory_pools)
      if device.type != _HOST
  }
  return tuple(
      int(room) for pool, room in enumerate(cluster.pool_bytes)
      if pool in cards or not cards)


def size(count: float) -> str:
  """'16.3 GB', or '12 MB', '147 kB' and '12 B' below 1 GB, 1 MB and 1 kB."""
  for unit, name in _UNITS:
    # From here on, three digits of the smaller unit would round up to 1000.
    if count >= .9995 * unit:
      digits = f'{count / unit:{".1f" if name == "GB" else ".3g"}}'
      return f'{digits} {name}'
  return f'{count:.0f} B'


def _sentence(graph: op_graph.OpGraph, cluster: cluster_lib.Cluster, why: str,
              causes: str) -> str:
  advice = constraints.advice_on_memory(graph, cluster)
  if _VARIABLES in causes:
    help_ = (
        'One tensor is never cut, except tables (split_tables). What would '
        'help: more or larger devices, a smaller batch, or an optimizer '
        'with fewer slots')
  elif causes:
    help_ = ('A constant is never cut. What would help: more or larger '
             'devices, constants of fewer bytes, or a smaller batch')
  else:
    help_ = 'What would help: a smaller batch, or more or larger devices'
  return (f'Graph "{graph.name}" does not fit cluster "{cluster.name}": {why}. '
          f'{help_}{f"; or: {advice}" * bool(advice)}.')


def _causes(graph: op_graph.OpGraph, ops: np.ndarray) -> str:
  """'variables', 'constants' or 'variables and constants'.

  Args:
    graph: N ops.
    ops: bool [N], ops that hold bytes for good.
  """
  constants, held = (graph.resident_bytes[which].sum()
                     for which in (ops & graph.constants, ops))
  parts = {_VARIABLES: held - constants, 'constants': constants}
  return ' and '.join(
      name for name, part in parts.items() if part >= _A_CAUSE * held)


def _pools_of_groups(graph: op_graph.OpGraph,
                     cluster: cluster_lib.Cluster) -> np.ndarray:
  """bool [G, P], memories in which each group may be."""
  allowed = constraints.allowed_devices(graph, cluster)
  pools = np.arange(len(cluster.pool_bytes))
  return allowed @ np.equal.outer(cluster.memory_pools, pools)


def _memories(
    cluster: cluster_lib.Cluster,
    peak_bytes: Sequence[int] | np.ndarray) -> Iterator[tuple[str, int, int]]:
  """Name, needed bytes and usable bytes of each memory."""
  pools = np.arange(len(cluster.pool_bytes))
  names = (_pool_names(cluster, pools == pool) for pool in pools)
  return zip(names, peak_bytes, cluster.pool_bytes)


def _pool_names(cluster: cluster_lib.Cluster, pools: np.ndarray) -> str:
  return _AND.join(
      label for label, pool in zip(cluster.device_labels, cluster.memory_pools)
      if pools[pool])


def _largest(graph: op_graph.OpGraph, inside: np.ndarray) -> str:
  """Names of the largest of some groups; '' if none holds bytes for good."""
  held = np.where(inside, graph.group_sums(graph.resident_bytes), 0)
  return _names(graph, [
      group
      for group in np.argsort(-held, kind='stable').tolist() if held[group]
  ])


def _names(graph: op_graph.OpGraph, groups: Sequence[int]) -> str:
  """Names of the first of some groups; parts of a table count as one.

  Args:
    graph: G groups.
    groups: Groups that hold bytes for good, the largest first.
  """
  whole: dict[str, list[int]] = {}
  for group in groups:
    table = _OF_PARTS.sub('', _label(graph, _first(graph, group)))
    if table in whole or len(whole) < _MOST_NAMED:
      whole.setdefault(table, []).append(group)
  return '; '.join(_name(graph, parts) for parts in whole.values())


def _name(graph: op_graph.OpGraph, groups: Sequence[int]) -> str:
  """'"words/embeddings", 6.0 GB, with its slots 18.0 GB'.

  Args:
    graph: G groups.
    groups: A group that holds bytes for good, or the groups of a table in
      parts.
  """
  first = _first(graph, groups[0])
  ops = _holding(graph, groups[0])
  own, in_all = graph.resident_bytes[first], graph.resident_bytes[ops].sum()
  if len(groups) > 1:
    table = _OF_PARTS.sub('', _label(graph, first))
    said = f'"{table}" in {len(groups)} parts, the largest of {size(own)}'
  else:
    said = f'"{graph.label(first)}", {size(own)}'
  if len(ops) == 1:
    return said
  others = 'group' if graph.constants[ops].any() else 'slots'
  return f'{said}, with its {others} {size(in_all)}'


def _first(graph: op_graph.OpGraph, group: int) -> int:
  """The variable of a group whose name is the shortest: slots have suffixes.

  A group without variables has a constant.
  """
  return int(
      min(_holding(graph, group), key=lambda op:
          (graph.constants[op], len(graph.label(op)), op)))


def _holding(graph: op_graph.OpGraph, group: int) -> np.ndarray:
  return np.flatnonzero((graph.groups == group) & (graph.resident_bytes > 0))


def _label(graph: op_graph.OpGraph, op: int) -> str:
  return graph.variables[op] or graph.names[op]

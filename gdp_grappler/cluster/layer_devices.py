"""What plans say about tables: devices of whole tables, and numbers of parts.

A table is the weight of an Embedding or Dense layer, which may be made in
parts. A table that a map of layers puts on a device as a whole is not made in
parts. A plan of ops only fits a program with the same tables in the same parts.
"""

from __future__ import annotations

import os
from typing import Any, Mapping, Sequence

from gdp_grappler import errors
from gdp_grappler.cluster import layer_map
from gdp_grappler.cluster import plan as plan_lib
from gdp_grappler.graph import name_parts
from gdp_grappler.sharding import choice


def layers(
    plan: str | os.PathLike[str] | Mapping[Any, Any] | None) -> plan_lib.Layers:
  """Returns the map of layers of a plan; () if the plan has none.

  Args:
    plan: A map of layers, the file of one, or a plan file, which may have been
      made by a map.

  Raises:
    PlanError: the file is missing or damaged.
    ClusterError: the map names no device.
  """
  if plan is None:
    return ()
  if isinstance(plan, Mapping):
    return layer_map.checked(plan)
  path = os.fspath(plan)
  entries = plan_lib.read_layers(path)
  if entries is None:
    return plan_lib.read(path).layers
  return of_file(path, entries)


def of_file(path: str, entries: Mapping[Any, Any]) -> plan_lib.Layers:
  """Checks a map of layers that was read from a file; errors name the file."""
  try:
    return layer_map.checked(entries)
  except (errors.PlanError, errors.ClusterError) as error:
    raise type(error)(f'{path}: {error}') from error


def parts_in_plan(plan: plan_lib.Plan, path: str) -> int:
  """Returns the number of parts of a table in a plan; 0 if it is not in parts.

  The plan's name of the table, or the path, may lack outer scopes. So several
  tables may match. If their numbers of parts differ, the result is 0.

  Args:
    plan: The plan.
    path: Scopes and name of the table, such as 'net/words/embeddings'.
  """
  tables = plan.tables or {}
  if path in tables:
    return tables[path]
  counts = {
      count for table, count in tables.items()
      if f'/{table}'.endswith(f'/{path}') or f'/{path}'.endswith(f'/{table}')
  }
  return counts.pop() if len(counts) == 1 else 0


def has_whole(plan: plan_lib.Plan, path: str) -> bool:
  """Whether a plan has ops of a layer, but not its table in parts.

  Args:
    plan: The plan. The result is False for a plan of an earlier version, which
      does not say which tables are in parts.
    path: Scopes and name of the table.
  """
  layer = path.rpartition('/')[0] or path
  return (plan.tables is not None and not parts_in_plan(plan, path) and
          _is_in(layer, list(plan.devices)))


def _is_in(layer: str, names: Sequence[str]) -> bool:
  return bool((layer_map.match([layer], names).patterns >= 0).any())


def match(patterns: Sequence[str], names: Sequence[str]) -> layer_map.Matches:
  """Finds the pattern of a map that holds for each variable.

  A scope in the name of a variable is called as its layer, without a number of
  TensorFlow. So if a layer `stage_1` has variables, the pattern 'stage_1' is
  not for a layer `stage_1_1`. Only if no scopes are called exactly as the whole
  pattern, their numbers are a guess, as in the names of ops. Other patterns
  have no influence on this.

  Args:
    patterns: Patterns as users write them.
    names: [N], names of all variables of one graph or program; '' for an op
      that holds none.
  """
  known = [n for n in dict.fromkeys(names) if not name_parts.is_guess(n)]
  paths = {
      path[:end] for path in map(layer_map.path_of, known)
      for end in range(1,
                       len(path) + 1)
  }
  # A variable `scale` does not tell whether a layer is called so.
  scopes = [name.rpartition('/')[0] + '/' for name in known]
  of_all = dict.fromkeys(paths, range(len(patterns)))
  found = layer_map.match(patterns, [*scopes, *known],
                          as_written=of_all).matching
  exact = {i for own in found[:len(known)] for i in own}
  exact |= {i for own in found for i in own if '/' in patterns[i]}
  return layer_map.match(patterns, names,
                         as_written=dict.fromkeys(paths, exact))


def of_variables(entries: plan_lib.Layers,
                 names: Sequence[str]) -> tuple[str, ...]:
  """Returns the device that a map gives to each variable; '' for none.

  A map that names a part, as 'words/embeddings_part_0', is for a table in
  parts. So the map gives no device to the whole variable. A pattern such as
  '*_part_0', with wildcards in all its names, names no table.

  Args:
    entries: Pairs of a pattern and a device.
    names: [N], names of all variables of a graph.
  """
  patterns = [pattern for pattern, _ in entries]
  tables = {p.partition(choice.PART)[0] for p in patterns if choice.PART in p}
  named = sorted(
      t for t in tables if not all(map(layer_map.has_wildcard, t.split('/'))))
  in_parts = match(named, names).patterns >= 0
  found = match(patterns, names).patterns
  return tuple('' if i < 0 or cut else entries[i][1]
               for i, cut in zip(found.tolist(), in_parts.tolist()))


def of_variable(entries: plan_lib.Layers, path: str) -> str:
  """Returns the device that a map gives to a variable; '' for none.

  Unlike in `of_variables`, the other variables are unknown. So a pattern
  'words' does not count for a layer `words_1`, because the program may also
  have a layer `words`.

  Args:
    entries: Pairs of a pattern and a device.
    path: Scopes and name of the variable, such as 'net/words/embeddings'.
  """
  bare = layer_map.bare_name(path)
  names = [path] if bare == path else [path, bare]
  return of_variables(entries, names)[0]

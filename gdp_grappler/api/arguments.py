"""Checks the arguments of functions of the API before any work is done.

The cluster of a plan is here, too. It is the default of the argument `cluster`.
"""

from __future__ import annotations

import collections.abc
import math
import numbers
import os
from typing import Any, Mapping

import numpy as np

from gdp_grappler import errors
from gdp_grappler import spelling
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import layer_devices
from gdp_grappler.cluster import plan as plan_lib
from gdp_grappler.evaluation.ordering import order_names
from gdp_grappler.placers import placer_table
from gdp_grappler.placers import registry


def check_search(seed: Any, time_budget_s: Any, repeatable: Any,
                 whole_graph: Any = False) -> None:
  """Checks the arguments of a search.

  Args:
    seed: A whole number of 0 or more.
    time_budget_s: Seconds, more than 0; None for the placer's own limit.
    repeatable: True or False.
    whole_graph: True or False.

  Raises:
    GdpError: an argument is something else.
  """
  check_switch('repeatable', repeatable)
  check_switch('whole_graph', whole_graph)
  if _is_no(numbers.Integral, seed) or seed < 0:
    raise errors.GdpError(
        f'seed is {errors.shown(seed)}; give a whole number of 0 or more.')
  if time_budget_s is None:
    return
  if _is_no(numbers.Real, time_budget_s) or not 0 < time_budget_s < math.inf:
    raise errors.GdpError(
        f'time_budget_s is {errors.shown(time_budget_s)}; give a number of '
        'seconds of more than 0, or None.')


def check_names(**names: Any) -> None:
  """Checks names of files, placers and other things.

  Args:
    **names: Value of each argument: a text, a path, or None.

  Raises:
    GdpError: a value is something else.
  """
  for argument, name in names.items():
    if not (name is None or isinstance(name, (str, os.PathLike))):
      raise errors.GdpError(f'{argument} is {errors.shown(name)}; give a text.')


def check_switch(argument: str, value: Any) -> None:
  """Checks an argument that is on or off. The text 'false' would be on.

  Raises:
    GdpError: the value is not True or False.
  """
  if not isinstance(value, (bool, np.bool_)):
    raise errors.GdpError(
        f'{argument} is {errors.shown(value)}; give True or False.')


def check_placers(placers: Any) -> None:
  """Checks that there are names of placers.

  Raises:
    GdpError: there is none, or the value is a single name.
  """
  if (isinstance(placers, str) or
      not isinstance(placers, collections.abc.Collection) or not len(placers)):
    raise errors.GdpError(f'placers is {errors.shown(placers)}; give a list of '
                          "names, such as ['metis', 'gdp'].")


def check_policy(placer: str, policy: Any) -> None:
  """Checks that a policy is given only to a placer that uses a network.

  Args:
    placer: Name of the placer.
    policy: Folder of a network; None for none.

  Raises:
    GdpError: the placer uses no network, or there is no such placer.
  """
  if placer is None:
    raise errors.GdpError("placer is None; give a name, such as 'gdp'.")
  name = registry.get(placer).name
  if policy is not None:
    placer_table.check_uses_policy(name)


def check_order(order: Any) -> None:
  """Checks that an order is a known name, or None.

  Raises:
    GdpError: it is something else.
  """
  if order is not None and order not in order_names.ORDERS:
    raise errors.GdpError(f'Unknown order "{order}"; there are '
                          f'{", ".join(order_names.ORDERS)}.')


def check_plan(plan: Any) -> None:
  """Checks that a plan is a map of layers, or a readable plan file.

  Reading a graph may take minutes, so errors in a plan should come earlier.

  Raises:
    GdpError: the plan is something else, or the file is missing or damaged.
  """
  if not isinstance(plan, (str, os.PathLike, Mapping)):
    raise errors.GdpError(
        f'plan is {errors.shown(plan)}; give a plan file, or devices by '
        "layer, such as {'encoder': 'GPU:0'}.")
  layer_devices.layers(plan)


def cluster_of(plan: Any, *others: str) -> cluster_lib.Cluster:
  """Returns the cluster that a plan was made for.

  Args:
    plan: A plan file.
    *others: Further plan files, which have to be for the same cluster, and
      files with a map of layers, which are for every cluster.

  Raises:
    PlanError: a file is missing or damaged, the first plan is a map of layers,
      or a further plan is for another cluster.
  """
  give = f'Give one, such as {spelling.argument("cluster", "2xP100")}.'
  if _is_map(plan):
    name = 'plan' if isinstance(plan, Mapping) else plan
    raise errors.PlanError(
        f'{name} is a map of layers, which names no cluster. {give}')
  found = plan_lib.read(os.fspath(plan)).cluster
  for other in [path for path in others if not _is_map(path)]:
    its = plan_lib.read(other).cluster
    if its != found:
      differ = (f'{found.name} and {its.name}' if its.name != found.name else
                f'both called {found.name}, with other memories or figures')
      raise errors.PlanError(
          f'{plan} and {other} are for different clusters: {differ}. {give} '
          'All plans are then priced on it.')
  return found


def _is_map(plan: Any) -> bool:
  return (isinstance(plan, Mapping) or
          plan_lib.read_layers(os.fspath(plan)) is not None)


def check_shape(shape: Any) -> None:
  """Checks the shapes of inputs.

  Args:
    shape: Sizes of the dimensions of each input, by the input's name; or None.

  Raises:
    GdpError: the value is something else.
  """
  if shape is None:
    return
  if not isinstance(shape, Mapping) or not all(
      isinstance(name, str) and isinstance(sizes, (list, tuple)) and all(
          not _is_no(numbers.Integral, size) and size > 0 for size in sizes)
      for name, sizes in shape.items()):
    raise errors.GdpError(
        f'shape is {errors.shown(shape)}; give the sizes of the dimensions by '
        "input, such as {'x': (32, 8)}.")


def _is_no(kind: type, value: Any) -> bool:
  """Whether a value is not a number of a kind. Booleans are not numbers."""
  return isinstance(value, bool) or not isinstance(value, kind)

"""Checks the arguments of functions of the API before any work is done."""

from __future__ import annotations

import collections.abc
import math
import numbers
import os
from typing import Any, Mapping

from gdp_grappler import errors
from gdp_grappler.cluster import layer_map
from gdp_grappler.cluster import plan as plan_lib
from gdp_grappler.evaluation.ordering import order_names
from gdp_grappler.placers.plans import planned


def check_search(seed: Any, time_budget_s: Any) -> None:
  """Checks the seed and the time budget of a search.

  Args:
    seed: A whole number of 0 or more.
    time_budget_s: Seconds, more than 0; None for the placer's own limit.

  Raises:
    GdpError: an argument is something else.
  """
  if _is_no(numbers.Integral, seed) or seed < 0:
    raise errors.GdpError(
        f'seed is {seed!r}; give a whole number of 0 or more.')
  if time_budget_s is None:
    return
  if _is_no(numbers.Real, time_budget_s) or not 0 < time_budget_s < math.inf:
    raise errors.GdpError(f'time_budget_s is {time_budget_s!r}; give a number '
                          'of seconds of more than 0, or None.')


def check_names(**names: Any) -> None:
  """Checks names of files, placers and other things.

  Args:
    **names: Value of each argument: a text, a path, or None.

  Raises:
    GdpError: a value is something else.
  """
  for argument, name in names.items():
    if not (name is None or isinstance(name, (str, os.PathLike))):
      raise errors.GdpError(f'{argument} is {name!r}; give a text.')


def check_placers(placers: Any) -> None:
  """Checks that there are names of placers.

  Raises:
    GdpError: there is none, or the value is a single name.
  """
  if (isinstance(placers, str) or
      not isinstance(placers, collections.abc.Collection) or not len(placers)):
    raise errors.GdpError(f'placers is {placers!r}; give a list of names, such '
                          "as ['metis', 'gdp'].")


def check_order(order: Any) -> None:
  """Checks that an order is a known name, or None.

  Raises:
    GdpError: it is something else.
  """
  if order is not None and order not in order_names.ORDERS:
    raise errors.GdpError(f'Unknown order "{order}"; there are '
                          f'{", ".join(order_names.ORDERS)}.')


def check_plan(plan: Any) -> None:
  """Checks that a plan is a map of layers, a readable plan file, or None.

  Reading a graph may take minutes, so errors in a plan should come earlier.

  Raises:
    GdpError: the plan is something else, or the file is missing or damaged.
  """
  if not (plan is None or isinstance(plan, (str, os.PathLike, Mapping))):
    raise errors.GdpError(
        f'plan is {plan!r}; give a plan file, or devices by layer, such as '
        "{'encoder': 'GPU:0'}.")
  if isinstance(plan, Mapping):
    layer_map.checked(plan)
  elif plan is not None:
    known = planned.of_file(os.fspath(plan))
    if isinstance(known, str):
      plan_lib.read(known)


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
        f'shape is {shape!r}; give the sizes of the dimensions by input, such '
        "as {'x': (32, 8)}.")


def _is_no(kind: type, value: Any) -> bool:
  """Whether a value is not a number of a kind. Booleans are not numbers."""
  return isinstance(value, bool) or not isinstance(value, kind)

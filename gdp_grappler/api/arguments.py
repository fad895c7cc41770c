"""Checks what a Python program passes to functions, before any work."""

from __future__ import annotations

import math
import numbers
import os
from typing import Any, Mapping

from gdp_grappler import errors


def check_search(seed: Any, time_budget_s: Any) -> None:
  """Checks what bounds a search and makes it the same again.

  Args:
    seed: A whole number of 0 or more.
    time_budget_s: Seconds; None for as many as the search takes by itself.

  Raises:
    GdpError: one of them is something else.
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
  """Checks names of files, placers and the like.

  Args:
    **names: By argument: a text, a path, or None.

  Raises:
    GdpError: one of them is something else.
  """
  for argument, name in names.items():
    if not (name is None or isinstance(name, (str, os.PathLike))):
      raise errors.GdpError(f'{argument} is {name!r}; give a text.')


def check_plan(plan: Any) -> None:
  """Checks that a plan is a file, a map of layers, or None.

  Raises:
    GdpError: it is something else.
  """
  if not (plan is None or isinstance(plan, (str, os.PathLike, Mapping))):
    raise errors.GdpError(
        f'plan is {plan!r}; give a plan file, or devices by layer, such as '
        "{'encoder': 'GPU:0'}.")


def check_shape(shape: Any) -> None:
  """Checks the shapes of inputs.

  Args:
    shape: By input, the sizes of its dimensions; None for none.

  Raises:
    GdpError: it is something else.
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
  """Whether a value is no number of a kind; True and False are none."""
  return isinstance(value, bool) or not isinstance(value, kind)

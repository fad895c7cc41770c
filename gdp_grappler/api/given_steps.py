"""Checks placed steps that users give, before any work is done."""

from __future__ import annotations

from typing import Any

from gdp_grappler import errors
from gdp_grappler.api import placed_step


def check(**steps: Any) -> None:
  """Checks that values are placed steps.

  Args:
    **steps: Value of each argument.

  Raises:
    PlanError: a value is something else.
  """
  for argument, step in steps.items():
    if not isinstance(step, placed_step.PlacedStep):
      shown = errors.one_line(repr(step))[:40]
      raise errors.PlanError(f'{argument} is {shown}; give what `place` or '
                             '`load_plan` returns.')

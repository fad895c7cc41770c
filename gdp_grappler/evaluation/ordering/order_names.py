"""The names of the orders of ready ops, and the default order.

This module imports nothing heavy, because every command line and TensorFlow's
start-up import it.
"""

from __future__ import annotations

from gdp_grappler import errors

# FIFO is TensorFlow's own order. CRITICAL_PATH puts ops on long paths first.
FIFO, CRITICAL_PATH = 'fifo', 'critical_path'
ORDERS = (FIFO, CRITICAL_PATH)
DEFAULT = FIFO


def chosen(wanted: str | None, has_priorities: bool) -> str:
  """The order to use.

  Args:
    wanted: One of `ORDERS`. None means `CRITICAL_PATH` for a placement with
      priorities, else `DEFAULT`.
    has_priorities: Whether the placement has priorities.

  Raises:
    GdpError: there is no such order.
  """
  if wanted is None:
    return CRITICAL_PATH if has_priorities else DEFAULT
  if wanted not in ORDERS:
    raise errors.GdpError(
        f'Unknown order "{wanted}"; there are {", ".join(ORDERS)}.')
  return wanted

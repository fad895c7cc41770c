"""The names of the orders of ready ops, and which of them is meant.

Light: every program's command line and TensorFlow's start-up read it.
"""

from __future__ import annotations

# First in, first out, TensorFlow's own order; or ops on long paths first.
FIFO, CRITICAL_PATH = 'fifo', 'critical_path'
ORDERS = (FIFO, CRITICAL_PATH)
DEFAULT = FIFO


def chosen(wanted: str | None, has_priorities: bool) -> str:
  """The order to use; by default that of the plan.

  Args:
    wanted: One of `ORDERS`; None for the default.
    has_priorities: Whether the placement brings priorities: then it has been
      ordered before.

  Raises:
    ValueError: there is no such order.
  """
  if wanted is None:
    return CRITICAL_PATH if has_priorities else DEFAULT
  if wanted not in ORDERS:
    raise ValueError(
        f'Unknown order "{wanted}"; there are {", ".join(ORDERS)}.')
  return wanted

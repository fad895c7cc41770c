"""The network that chooses moves, as it comes with the package.

How it was made and what it saw says docs/policy.md.
"""

from __future__ import annotations

import functools
import pathlib

from gdp_grappler.placers.search.moves import move_filter
from gdp_grappler.placers.search.moves import move_network

_WEIGHTS = pathlib.Path(__file__).with_name('shipped_moves.npz')


@functools.cache
def network() -> move_network.MoveNetwork:
  """The shipped weights.

  Raises:
    GdpError: they are missing, damaged or of another release.
  """
  return move_network.load(_WEIGHTS, move_filter.KINDS)

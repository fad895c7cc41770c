"""The network that chooses moves, with the weights that the package ships.

docs/policy.md describes how the network was trained, and on which graphs.
"""

from __future__ import annotations

import functools
import pathlib

from gdp_grappler.placers.search.moves import move_network
from gdp_grappler.placers.search.moves import move_scoring

_WEIGHTS = pathlib.Path(__file__).with_name('shipped_moves.npz')


@functools.cache
def network() -> move_network.MoveNetwork:
  """The shipped weights.

  Raises:
    GdpError: the file of weights is missing, damaged or of another release.
  """
  return move_network.load(_WEIGHTS, move_scoring.KINDS)

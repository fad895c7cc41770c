"""Positions of units in a structure that repeats, as shares of the work."""

from __future__ import annotations

import numpy as np

from gdp_grappler.features import schema
from gdp_grappler.graph import op_graph
from gdp_grappler.graph.structure import coordinates as coordinates_lib

_SUFFIX = '_place'


def columns(graph: op_graph.OpGraph, costliest: np.ndarray, work: np.ndarray,
            depth: np.ndarray) -> dict[str, np.ndarray]:
  """Returns the columns `schema.PLACE_FEATURES` by name, float64 [M] each.

  The position of a unit is that of its costliest op.

  Args:
    graph: N ops.
    costliest: int [M], the costliest op of each unit.
    work: float64 [M], work of each unit. Positions are shares of the total
      work.
    depth: float64 [M], distance of each unit from the nearer end of the graph.
  """
  coordinates = coordinates_lib.of(graph)
  values = coordinates.values[graph.groups[costliest]]  # [M, C]
  by_name = {
      name + _SUFFIX: values[:, column].astype(float)
      for column, name in enumerate(coordinates.names)
  }
  by_name['order' + _SUFFIX] = np.arange(len(work), dtype=float)
  by_name['depth' + _SUFFIX] = depth
  return {name: shares(by_name[name], work) for name in schema.PLACE_FEATURES}


def shares(values: np.ndarray, work: np.ndarray) -> np.ndarray:
  """Turns values of units into shares of the work, float64 [M].

  Units of equal value form a block. The result is the share of the work that
  comes before the middle of the unit's block, if blocks are ordered by value.

  Args:
    values: float64 [M], value of each unit; negative if unknown.
    work: float64 [M], work of each unit, 0 or more.

  Returns:
    Shares from 0 to 1 of the work of all units with a known value; -1 for units
    without one. If the units with a value have no work, each counts as 1.
  """
  result = np.full(len(values), -1.)
  known = values >= 0
  if not known.any():
    return result
  weights = work[known] if work[known].sum() > 0 else np.ones(known.sum())
  _, where = np.unique(values[known], return_inverse=True)
  totals = np.bincount(where.reshape(-1), weights)
  middle = np.cumsum(totals) - totals / 2
  result[known] = (middle / totals.sum())[where.reshape(-1)]
  return result

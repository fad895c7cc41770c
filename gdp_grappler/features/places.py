"""Where units are in a structure that repeats itself, as shares of the work."""

from __future__ import annotations

import numpy as np

from gdp_grappler.features import schema
from gdp_grappler.graph import op_graph
from gdp_grappler.graph.structure import coordinates as coordinates_lib

_SUFFIX = '_place'


def columns(graph: op_graph.OpGraph, costliest: np.ndarray, work: np.ndarray,
            depth: np.ndarray) -> dict[str, np.ndarray]:
  """float64 [M] each by name, `schema.PLACE_FEATURES`.

  A unit is where its costliest op is.

  Args:
    graph: N ops.
    costliest: int [M], an op of each unit.
    work: float64 [M], what is shared out.
    depth: float64 [M], how far each unit is from the nearer end of the graph.
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
  """float64 [M], the share of the work before the middle of an equal value's.

  Args:
    values: float64 [M]; below 0 where unknown.
    work: float64 [M], 0 or more.

  Returns:
    0 to 1, of the work that has a value; -1 where there is none. Where nothing
    that has one takes any time, units count alike.
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

"""Coordinates along which the groups of a graph can be divided among devices.

An axis is a coordinate in which every group has a value. One axis is made here:
the place of a variable among the variables of its layer.
"""

from __future__ import annotations

import numpy as np

from gdp_grappler.graph import unique_rows
from gdp_grappler.graph.structure import coordinates as coordinates_lib

_PART = 'part'
_LAYER_PART = 'layer_part'


def of(coordinates: coordinates_lib.Coordinates) -> dict[str, np.ndarray]:
  """Returns the axes by name, int64 [G] each, from 0.

  An axis has at least two values, and no two axes are equal.
  """
  variable = coordinates['variable']
  columns = {name: coordinates[name] for name in coordinates.readable}
  if {'layer', _LAYER_PART} <= set(columns):
    columns[_LAYER_PART] = unique_rows.distinct(
        [columns['layer'], columns[_LAYER_PART]])[1]
  if {'layer', 'variable'} <= set(columns):
    columns[_PART] = _place_in_layer(columns['layer'], variable)
  result: dict[str, np.ndarray] = {}
  for name, column in columns.items():
    filled = _filled(column, variable)
    if filled.max() and not any(
        (filled == other).all() for other in result.values()):
      result[name] = filled
  return result


def _place_in_layer(layer: np.ndarray, variable: np.ndarray) -> np.ndarray:
  """Returns the place of a group's variable in its layer, int [G]; or -1."""
  known = (layer >= 0) & (variable >= 0)
  pairs, where = unique_rows.distinct([variable[known], layer[known]])
  # A variable belongs to the layer of most of its groups.
  layer_of = np.full(int(variable.max()) + 1, -1)
  usual = np.argsort(np.bincount(where), kind='stable')
  layer_of[pairs[0, usual]] = pairs[1, usual]
  first = np.full(int(layer_of.max()) + 2, len(layer_of))
  np.minimum.at(first, layer_of, np.arange(len(layer_of)))
  place = np.arange(len(layer_of)) - first[layer_of]
  return np.where(known, place[variable], -1)


def _filled(column: np.ndarray, variable: np.ndarray) -> np.ndarray:
  """Fills gaps of a coordinate by variables, int [G].

  Of K values, a group without a value gets the number of its variable modulo K.
  """
  turns = np.maximum(variable, 0) % (int(column.max()) + 1)
  return np.where(column < 0, turns, column).astype(np.int64)

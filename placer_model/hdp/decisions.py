"""From a device per group to a legal device per unit.

A group of the Grouper mixes units that may go anywhere with units that must
stay on the host; nearly every group has one of those. So a group decides among
the devices that some movable member may have, and members that cannot follow
go to the host. The intersection over all members would nail almost every group
to the host.
"""

from __future__ import annotations

import numpy as np

from gdp_grappler.cluster import constraints


def allowed_devices(grouping: np.ndarray, num_groups: int,
                    allowed: np.ndarray) -> np.ndarray:
  """bool [K, D], devices among which a group may choose.

  Those that some member with a choice may have; where no member has one, those
  that some member may have; all devices for a group without members.

  Args:
    grouping: int [G], group of each unit.
    num_groups: K.
    allowed: bool [G, D].
  """
  free = allowed.sum(axis=1) > 1
  result = _union(grouping[free], num_groups, allowed[free])
  stuck = ~result.any(axis=1)
  result[stuck] = _union(grouping, num_groups, allowed)[stuck]
  result[~result.any(axis=1)] = True
  return result


def devices_of_units(grouping: np.ndarray, devices: np.ndarray,
                     allowed: np.ndarray, host: int) -> np.ndarray:
  """int [S, G], every unit on its group's device if it may be there.

  Else on the host, else on the first device that it may have.

  Args:
    grouping: int [G], group of each unit.
    devices: int [S, K], a device per group.
    allowed: bool [G, D].
    host: Index of the host.
  """
  fallback = constraints.fallback_devices(allowed, host)
  wanted = devices[:, grouping]
  ok = allowed[np.arange(len(grouping)), wanted]
  return np.where(ok, wanted, fallback)


def _union(grouping: np.ndarray, num_groups: int,
           allowed: np.ndarray) -> np.ndarray:
  result = np.zeros((num_groups, allowed.shape[1]), bool)
  np.logical_or.at(result, grouping, allowed)
  return result

"""Maps the devices of groups to legal devices of units.

A group of the Grouper mixes units that may have any device with units that must
stay on the host. Nearly every group has one of the latter, so the intersection
of all members' devices would put almost every group on the host. Therefore a
group chooses among the devices that some movable member may have, and members
that may not have the chosen device go to the host.
"""

from __future__ import annotations

import numpy as np

from gdp_grappler.cluster import constraints


def allowed_devices(grouping: np.ndarray, num_groups: int,
                    allowed: np.ndarray) -> np.ndarray:
  """Returns the devices among which a group may choose, bool [K, D].

  They are the devices that some movable member may have. If no member is
  movable, they are the devices that some member may have. A group without
  members may choose all devices.

  Args:
    grouping: int [G], group of each unit.
    num_groups: Number K of groups.
    allowed: bool [G, D], allowed devices of each unit.
  """
  free = allowed.sum(axis=1) > 1
  result = _union(grouping[free], num_groups, allowed[free])
  stuck = ~result.any(axis=1)
  result[stuck] = _union(grouping, num_groups, allowed)[stuck]
  result[~result.any(axis=1)] = True
  return result


def devices_of_units(grouping: np.ndarray, devices: np.ndarray,
                     allowed: np.ndarray, host: int) -> np.ndarray:
  """Returns the device of each unit, int [S, G].

  A unit has its group's device if that is allowed, else the host, else the
  first device that it may have.

  Args:
    grouping: int [G], group of each unit.
    devices: int [S, K], a device per group.
    allowed: bool [G, D], allowed devices of each unit.
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

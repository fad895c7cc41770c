"""Chooses the machines for a command's jobs: this one or a Ray cluster."""

from __future__ import annotations

import contextlib

from gdp_grappler.processes import jobs as jobs_lib
from gdp_grappler.processes import local_team


def of(
    ray: str | None, workers: int | None
) -> contextlib.AbstractContextManager[jobs_lib.Machines]:
  """Returns a context manager for machines that run jobs.

  Args:
    ray: Value of the flag --ray; None for processes of this machine.
    workers: Number of jobs at the same time on this machine. None means 1
      without Ray, and one per core with Ray.
  """
  if ray is None:
    return local_team.Here(workers or 1)
  from gdp_grappler.processes import ray_machines
  return ray_machines.RayMachines(ray, workers)

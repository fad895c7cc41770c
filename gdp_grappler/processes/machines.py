"""Where the jobs of a command run: here, or on a Ray cluster."""

from __future__ import annotations

import contextlib

from gdp_grappler.processes import jobs as jobs_lib
from gdp_grappler.processes import local_team


def of(
    ray: str | None, workers: int | None
) -> contextlib.AbstractContextManager[jobs_lib.Machines]:
  """What to enter for machines that run jobs.

  Args:
    ray: As --ray says; None for processes of this machine.
    workers: Jobs side by side on this machine; None for 1 without Ray and one
      per core with it.
  """
  if ray is None:
    return local_team.Here(workers or 1)
  from gdp_grappler.processes import ray_machines
  return ray_machines.RayMachines(ray, workers)

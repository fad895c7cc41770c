"""What a process of Ray's begins a job with; it is sent there as it stands.

Ray has its processes look for modules in the folder that a command was given
in. A source tree there, such as another release of this package, would be
imported in place of what is installed. So the function below comes by value and
imports nothing before that folder is gone.
"""

from __future__ import annotations

import os
import pickle
import sys
from typing import Any, Sequence


def folders() -> list[str]:
  """Where Ray's processes would look for modules and this process does not."""
  here = os.path.abspath(os.curdir)
  own = {os.path.realpath(folder) for folder in sys.path if folder}
  looks_here = '' in sys.path or os.path.realpath(here) in own
  return [] if looks_here else [here]


def run(strange: Sequence[str], packed: bytes, setup: Sequence[Any]) -> Any:
  """Calls `ray_worker.run` where the command's own modules are found.

  Args:
    strange: Of `folders`, where the command was given.
    packed: Its other arguments, pickled: their classes are to be found, too.
    setup: As of `ray_worker.run`; Ray has to see it.
  """
  sys.path[:] = [p for p in sys.path if p not in strange]
  from gdp_grappler.processes import ray_worker
  team, function, job, code, seen = pickle.loads(packed)
  return ray_worker.run(team, function, setup, job, code, seen)

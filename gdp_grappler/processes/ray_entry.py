"""The first function of a job in a process of Ray, which is sent by value.

Processes of Ray look for modules in the folder in which a command was typed. A
source tree in that folder, such as another release of this package, would be
imported in place of the installed package. So this function comes by value, and
imports nothing before it has removed that folder from the import path.
"""

from __future__ import annotations

import os
import pickle
import sys
from typing import Any, Sequence


def folders() -> list[str]:
  """Returns folders from which Ray's processes import, but not this process."""
  here = os.path.abspath(os.curdir)
  own = {os.path.realpath(folder) for folder in sys.path if folder}
  looks_here = '' in sys.path or os.path.realpath(here) in own
  return [] if looks_here else [here]


def run(strange: Sequence[str], packed: bytes, setup: Sequence[Any]) -> Any:
  """Calls `ray_worker.run` with the installed modules.

  Args:
    strange: Result of `folders` on the machine of the command.
    packed: Other arguments, pickled, because their classes are in modules.
    setup: See `ray_worker.run`. Ray has to see this argument.
  """
  sys.path[:] = [p for p in sys.path if p not in strange]
  from gdp_grappler.processes import ray_worker
  team, function, job, code, seen = pickle.loads(packed)
  return ray_worker.run(team, function, setup, job, code, seen)

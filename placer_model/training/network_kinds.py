"""Which of the two networks a run of `gdp_train` is about."""

from __future__ import annotations

import pathlib

from gdp_grappler.placers.policy import move_folder
from placer_model.training import json_files

# The network that chooses moves of a search, and the papers' network, which
# decides about a graph in one forward pass.
MOVES, ONE_SHOT = 'moves', 'one_shot'
# Field of a run's config.json; runs of one shot lack it.
FIELD = 'network'


def of_folder(folder: pathlib.Path) -> str | None:
  """What the folder of a policy or of a run is about; None for other folders.

  Args:
    folder: Any.

  Raises:
    GdpError: what should say so is damaged.
  """
  if move_folder.is_here(folder):
    return MOVES
  if (folder / 'policy.json').is_file():
    return ONE_SHOT
  run = json_files.read_json(folder
                             / 'config.json') if folder.is_dir() else None
  if not isinstance(run, dict):
    return None
  return MOVES if run.get(FIELD) == MOVES else ONE_SHOT

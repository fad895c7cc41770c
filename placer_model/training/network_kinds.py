"""The two kinds of network that `gdp_train` can train."""

from __future__ import annotations

import pathlib

from gdp_grappler.placers.policy import move_folder
from placer_model.training import json_files

# MOVES is the network that chooses moves of a search. ONE_SHOT is the GDP
# paper's network, which places a graph in one forward pass.
MOVES, ONE_SHOT = 'moves', 'one_shot'
# Field of a run's config.json. Runs of ONE_SHOT lack it.
FIELD = 'network'


def of_folder(folder: pathlib.Path) -> str | None:
  """Returns the kind of network in the folder of a policy or a run.

  None means that the folder is neither.

  Args:
    folder: Any folder.

  Raises:
    GdpError: the file that names the kind is damaged.
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

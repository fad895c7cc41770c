"""Reads the folder of a network that the user names."""

from __future__ import annotations

import os
import pathlib

from gdp_grappler import environment
from gdp_grappler import errors
from gdp_grappler.placers.policy import learned
from gdp_grappler.placers.policy import move_folder
from gdp_grappler.placers.search.moves import move_network


def read(policy: str | None) -> move_network.MoveNetwork | None:
  """Reads the move network of a folder, or checks the policy of a folder.

  The check of a policy reads its description. It does not load the SavedModel,
  which takes seconds.

  Args:
    policy: Folder of a policy of any kind; None for the folder in the
      environment variable GDP_POLICY, if any.

  Returns:
    The move network; None if the folder has a policy, or if there is no folder.

  Raises:
    PolicyMismatchError: the folder has no network that this version can use.
  """
  folder = policy or environment.policy_folder()
  if not folder:
    return None
  try:
    if move_folder.is_here(folder):
      return move_folder.load(folder)
    # `Path.resolve` would raise other errors, for example for links in a loop.
    learned.metadata(pathlib.Path(os.path.abspath(folder)))
    return None
  except errors.PolicyMismatchError as error:
    if policy:
      raise
    raise errors.PolicyMismatchError(
        f'{environment.POLICY}={pathlib.Path(folder)}: {error}') from error

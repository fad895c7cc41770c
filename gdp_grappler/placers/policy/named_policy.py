"""Checks the folder of a network that the user names, before it is needed."""

from __future__ import annotations

import pathlib

from gdp_grappler import environment
from gdp_grappler import errors
from gdp_grappler.placers.policy import learned
from gdp_grappler.placers.policy import move_folder


def check(policy: str | None) -> None:
  """Checks that a folder has a network that this version can use.

  Reads the description, and the weights of a move network. It does not load a
  SavedModel, which takes seconds.

  Args:
    policy: Folder of a policy of any kind; None for the folder in the
      environment variable GDP_POLICY, if any.

  Raises:
    PolicyMismatchError: the folder has no such network.
  """
  folder = policy or environment.policy_folder()
  if not folder:
    return
  try:
    if move_folder.is_here(folder):
      move_folder.load(folder)
    else:
      learned.check(folder)
  except errors.PolicyMismatchError as error:
    if policy:
      raise
    raise errors.PolicyMismatchError(
        f'{environment.POLICY}={pathlib.Path(folder)}: {error}') from error

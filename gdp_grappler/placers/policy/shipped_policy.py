"""Finds the trainer's package, and the policy in it, without an import.

An import of the trainer makes TensorFlow use Keras 2, which would change users'
programs.
"""

from __future__ import annotations

import importlib.util
import pathlib

from gdp_grappler import errors

# Name of the trainer's package.
_PACKAGE = 'placer_model'
# Folder of the shipped policy in that package.
_POLICY = 'pretrained'


def folder() -> pathlib.Path | None:
  """Folder of the trainer's package; None if it is not installed."""
  spec = importlib.util.find_spec(_PACKAGE)
  places = spec.submodule_search_locations if spec else None
  return pathlib.Path(places[0]) if places else None


def has_policy() -> bool:
  """Whether a policy came with the trainer."""
  package = folder()
  return package is not None and (package / _POLICY / 'policy.json').exists()


def shipped_policy() -> str:
  """Folder of the policy that comes with the trainer.

  Raises:
    PolicyMismatchError: no policy is installed.
  """
  package = folder()
  if package is None or not has_policy():
    raise errors.PolicyMismatchError(
        'No policy is installed. Train one with gdp_train and give its folder, '
        "or choose another placer, for example {'placer': 'metis'}.")
  return str(package / _POLICY)

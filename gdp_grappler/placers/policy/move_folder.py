"""A folder with a move network, as `gdp_train` and `gdp_pretrain` write it.

`policy.json` has the kind of the network, a fingerprint of its features of
moves, and a description of its training. `weights.npz` contains only numbers
and names, so that loading the folder executes nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
from typing import Any, Mapping

from gdp_grappler import digests
from gdp_grappler import errors
from gdp_grappler import files
from gdp_grappler.placers.search.moves import move_network
from gdp_grappler.placers.search.moves import move_scoring

# Value of the field `_KIND`. The policy.json of a policy has no such field.
MOVES = 'moves'
_KIND, _SCHEMA, _WEIGHTS = 'kind', 'schema', 'weights'
_DESCRIPTION, _FILE = 'policy.json', 'weights.npz'


def fingerprint(network: move_network.MoveNetwork) -> str:
  """16 hex digits of a hash of the names of a network's features.

  Args:
    network: Any network.
  """
  text = '|'.join(network.features)
  return hashlib.sha256(text.encode()).hexdigest()[:16]


def save(folder: str | os.PathLike[str], network: move_network.MoveNetwork,
         about: Mapping[str, Any]) -> None:
  """Writes a folder, the description last.

  Args:
    folder: Path of the folder, which is made.
    network: The network.
    about: Description of the training, as JSON values.

  Raises:
    GdpError: a file cannot be written.
  """
  path = pathlib.Path(folder)
  move_network.save(path / _FILE, network)
  fields = {
      _KIND: MOVES, _SCHEMA: fingerprint(network),
      **about, _WEIGHTS: network.digest
  }
  files.write_atomically(path / _DESCRIPTION,
                         json.dumps(digests.sealed(fields), indent=1) + '\n',
                         make_folder=True)


def is_here(folder: str | os.PathLike[str]) -> bool:
  """Whether the description in a folder says that it has a move network.

  Args:
    folder: Any path; the result is False if it cannot be read.
  """
  try:
    return _described(pathlib.Path(folder)).get(_KIND) == MOVES
  except (OSError, ValueError):
    return False


def load(folder: str | os.PathLike[str]) -> move_network.MoveNetwork:
  """Reads the network in a folder.

  Args:
    folder: Folder for which `is_here` is true.

  Raises:
    PolicyMismatchError: the folder is damaged, or the network was trained on
      other features of moves.
  """
  path = pathlib.Path(folder)
  try:
    description = _described(path)
    network = move_network.load(path / _FILE, move_scoring.KINDS)
  except (OSError, ValueError, errors.GdpError) as error:
    raise errors.PolicyMismatchError(
        f'The policy in {path} cannot be used: {error} Export it again with '
        'gdp_train or gdp_pretrain.') from error
  if (digests.differs(description) or
      description.get(_WEIGHTS) != network.digest or
      description.get(_SCHEMA) != fingerprint(network)):
    raise errors.PolicyMismatchError(
        f'The policy in {path} is damaged: {_DESCRIPTION} and {_FILE} are not '
        'what gdp_train or gdp_pretrain wrote together. Copy or export them '
        'again.')
  return network


def _described(path: pathlib.Path) -> dict[str, Any]:
  """The fields of the description."""
  found = files.parse_json(files.read(path / _DESCRIPTION))
  if not isinstance(found, dict):
    raise ValueError(f'{_DESCRIPTION} is no JSON object.')
  return found

"""Initial weights of a run: random, of another run, or of a policy."""

from __future__ import annotations

import dataclasses
import pathlib
from typing import Any, Mapping

from gdp_grappler import errors
from gdp_grappler.placers.policy import learned
from gdp_grappler.placers.policy import shipped_policy
from placer_model import config as config_lib
from placer_model import export
from placer_model import network as network_lib
from placer_model.training import checkpoints

# Name that stands for the folder of the installed policy.
SHIPPED = 'shipped'
_POLICY = 'policy.json'


def folder(text: str) -> pathlib.Path:
  """Returns the folder that a user's text means."""
  return pathlib.Path(shipped_policy.shipped_policy() if text ==
                      SHIPPED else text)


def policy(start: pathlib.Path | None) -> Mapping[str, Any] | None:
  """Returns a policy's metadata; None if a run does not start from a policy.

  Args:
    start: Folder of a policy or of another run; None for random weights.

  Raises:
    PolicyMismatchError: the policy has other features.
  """
  if start is None or not (start / _POLICY).is_file():
    return None
  return learned.metadata(start)


def network(start: pathlib.Path | None, preset: str,
            seed: int) -> network_lib.PlacerNetwork:
  """Returns a network with the initial weights of a run.

  Its sizes and switches are those of the policy or, without a policy, of a
  preset.

  Args:
    start: Folder of a policy or of another run; None for random weights.
    preset: Preset of `placer_model.config`.
    seed: Seed of random weights.

  Raises:
    PolicyMismatchError: a policy cannot be read.
    GdpError: the policy or run has a part that the preset leaves out, or lacks
      one that the preset has; or the folder holds neither a policy nor another
      run, or that run has no weights that fit.
  """
  if start is not None and policy(start) is not None:
    result = export.load_network(start)
    _check_parts(dataclasses.asdict(result.config), preset, start)
    return result
  if start is not None and not checkpoints.newest_first(_run(start)):
    raise errors.GdpError(
        f'--init_policy={start} holds neither a policy nor checkpoints of a '
        f'run. Give the folder of a policy, the --model_dir of a run, or '
        f'{SHIPPED} for the policy that is installed.')
  result = network_lib.PlacerNetwork(
      config_lib.preset(preset).replace(seed=seed))
  if start is not None:
    _check_parts(checkpoints.placer_fields(start), preset, start)
    checkpoints.load_placer(_run(start), result)
  return result


def _check_parts(found: Mapping[str, Any], preset: str,
                 start: pathlib.Path) -> None:
  """Raises an error if a network and a preset leave out different parts.

  Args:
    found: Settings of the network. Unknown ones may be missing.
    preset: Preset of `placer_model.config`.
    start: Folder of the network.

  Raises:
    GdpError: the network has another part, or lacks one.
  """
  wanted = config_lib.preset(preset)
  for field, absent in config_lib.ABLATIONS.values():
    own, other = getattr(wanted, field), found.get(field)
    if other is not None and (own == absent) != (other == absent):
      raise errors.GdpError(
          f'--config={preset} is a network with {field} = {own!r}, but the '
          f'network of --init_policy={start} has {field} = {other!r}. Give a '
          'policy that was trained with the same --config, or leave '
          '--init_policy out.')


def _run(start: pathlib.Path) -> pathlib.Path:
  """Returns the folder of another run's checkpoints."""
  return start / 'checkpoints'

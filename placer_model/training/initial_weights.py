"""Where a run's first weights come from: chance, another run, or a policy."""

from __future__ import annotations

import pathlib
from typing import Any, Mapping

from gdp_grappler import errors
from gdp_grappler.placers.policy import learned
from gdp_grappler.placers.policy import shipped_policy
from placer_model import config as config_lib
from placer_model import export
from placer_model import network as network_lib
from placer_model.training import checkpoints

# Stands for the folder of the policy that is installed.
SHIPPED = 'shipped'
_POLICY = 'policy.json'


def folder(text: str) -> pathlib.Path:
  """The folder that a user means."""
  return pathlib.Path(shipped_policy.shipped_policy() if text ==
                      SHIPPED else text)


def policy(start: pathlib.Path | None) -> Mapping[str, Any] | None:
  """What a policy says of itself; None if a run starts from something else.

  Args:
    start: The folder of a policy or of another run.

  Raises:
    PolicyMismatchError: it is a policy, for other features.
  """
  if start is None or not (start / _POLICY).is_file():
    return None
  return learned.metadata(start)


def network(start: pathlib.Path | None, preset: str,
            seed: int) -> network_lib.PlacerNetwork:
  """A network with the weights that a run begins with.

  Its sizes and switches are a policy's own, or those of a preset.

  Args:
    start: As of `policy`.
    preset: Of `placer_model.config`.
    seed: Of the weights, where chance makes them.

  Raises:
    PolicyMismatchError: a policy cannot be read.
    GdpError: there is neither a policy nor another run, or that has no weights
      that fit.
  """
  if start is not None and policy(start) is not None:
    return export.load_network(start)
  if start is not None and not checkpoints.newest_first(_run(start)):
    raise errors.GdpError(
        f'--init_policy={start} holds neither a policy nor checkpoints of a '
        f'run. Give the folder of a policy, the --model_dir of a run, or '
        f'{SHIPPED} for the policy that is installed.')
  result = network_lib.PlacerNetwork(
      config_lib.preset(preset).replace(seed=seed))
  if start is not None:
    checkpoints.load_placer(_run(start), result)
  return result


def _run(start: pathlib.Path) -> pathlib.Path:
  """Where another run has its checkpoints."""
  return start / 'checkpoints'

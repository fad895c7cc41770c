"""A folder with the results of batches that a policy learned, a file each."""

from __future__ import annotations

import dataclasses
import json
import pathlib
from typing import Any, Mapping, Sequence

from benchmarks.paper import columns as columns_lib
from gdp_grappler import digests
from gdp_grappler import errors
from gdp_grappler import files
from gdp_grappler.processes import calls
from placer_model.benchmark import settings as settings_lib
from placer_model.training import json_files
from placer_model.training import train_config

GDP_ONE = 'gdp_paper'
# The placer in the key of a batch. See `settings.cell_key`.
_PLACER = 'gdp_batch'
_LEARN = f'{__package__}.batch_worker:learn'
_TIMEOUT_S = 24 * 3600.  # Seconds for the training on one batch of graphs.
Record = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Job:
  """The batch that a process learns.

  Attributes:
    tasks: [B], names 'GRAPH@CLUSTER'.
    iterations: [B], iterations of training on each task.
    network: Preset of `placer_model.config`.
    seed: Seed of the weights and the samples.
    may_round: See `request.Request`.
    policy: Folder to which the policy is written. None means that the policy
      is not written.
  """

  tasks: tuple[str, ...]
  iterations: tuple[int, ...]
  network: str
  seed: int
  may_round: bool
  policy: pathlib.Path | None


class BatchError(errors.GdpError):
  """A batch was not learned."""


class Batches:
  """Results and policies of batches, kept in a folder."""

  def __init__(self, folder: pathlib.Path,
               settings: settings_lib.Settings) -> None:
    """Learns nothing yet.

    Args:
      folder: Folder for the results and policies of finished batches.
      settings: Settings of the cells of gdp_bench in the same table.
    """
    self._folder, self._settings = folder, settings

  def learned(self, batch: columns_lib.Batch, task: str,
              of_tasks: Mapping[str, Mapping[str, Any]],
              exported: bool) -> tuple[dict[str, Record], pathlib.Path]:
    """Records of a batch by task, and the folder of its policy.

    Args:
      batch: The batch.
      task: The task that the policy will place. It decides which graphs the
        policy learns (`columns.Scope`).
      of_tasks: Results of gdp_bench by task, with cells of `GDP_ONE`.
      exported: Whether the folder has to contain the policy.

    Raises:
      BatchError: a graph cannot be learned.
      GdpError: a file cannot be written.
    """
    members = batch.members(task)
    iterations = _iterations(members, of_tasks)
    key = self._key(batch.network, members, iterations, of_tasks)
    policy = self._folder / 'policies' / key
    path = self._folder / 'batches' / f'{key}.json'
    records = _read(path)
    if records is None or exported and not (policy / 'policy.json').exists():
      records = self._learn(batch.network, members, iterations,
                            policy if exported else None)
      json_files.write_json(path, digests.sealed({'records': records}))
    return dict(zip(members, records)), policy

  def _learn(self, network: str, members: Sequence[str],
             iterations: Sequence[int],
             policy: pathlib.Path | None) -> list[Record]:
    job = Job(tuple(members), tuple(iterations), network, self._settings.seed,
              self._settings.may_round, policy)
    try:
      return calls.call(_LEARN, job, timeout_s=_TIMEOUT_S)
    except calls.CallError as error:
      raise BatchError(f'{", ".join(members)} cannot be learned: '
                       f'{error}') from error

  def _key(self, network: str, members: Sequence[str],
           iterations: Sequence[int],
           of_tasks: Mapping[str, Mapping[str, Any]]) -> str:
    graphs = [of_tasks[member]['digest'] for member in members]
    return settings_lib.cell_key(
        self._settings, ', '.join(members),
        json.dumps([network, graphs, list(iterations)]), _PLACER)


def _iterations(members: Sequence[str],
                of_tasks: Mapping[str, Mapping[str, Any]]) -> list[int]:
  """[B], the iterations that GDP-one made on each graph.

  If GDP-one found no placement that fits, a graph gets as many iterations as
  the graph with the fewest.
  """
  rollouts = train_config.preset('gdp_one').rollouts
  known = {
      member: max(cell['evaluations'] // rollouts, 1) for member in members
      if 'evaluations' in (cell := of_tasks[member]['cells'][GDP_ONE])
  }
  if not known:
    raise BatchError(f'{GDP_ONE} placed none of {", ".join(members)}, so '
                     'nobody knows how many iterations a batch has of '
                     'them. Give more --seconds.')
  return [known.get(member, min(known.values())) for member in members]


def _read(path: pathlib.Path) -> list[Record] | None:
  """Records of a finished batch; None if they cannot be used."""
  try:
    found = files.parse_json(files.read(path))
  except (OSError, ValueError):
    return None  # Missing or damaged: the batch is learned again.
  if not isinstance(found, dict) or digests.differs(found):
    return None
  return found.get('records')

"""Tasks: a workload or another graph, on a cluster as in the papers."""

from __future__ import annotations

import dataclasses
import pathlib
import re
from typing import Callable, Collection, Sequence

from gdp_grappler import errors
from gdp_grappler import suggestions
from gdp_grappler.graph.sources import origin

WORKLOAD, ONE_GPU = 'workload', 'one_gpu'
_TINY = '@tiny'
# Page of the docs that lists all workloads.
_LISTED = 'docs/results/workloads'


@dataclasses.dataclass(frozen=True)
class Task:
  """A graph to be placed on a cluster.

  Attributes:
    source: Name or path of the graph, see `request.Request.graph`.
    cluster: Text that `resolve.resolve` accepts.
    expert: Source of the expert placement. `WORKLOAD`: the workload. `ONE_GPU`:
      all ops on the first accelerator, which is HDP's expert for Inception. '':
      none.
  """

  source: str
  cluster: str
  expert: str = ''

  @property
  def name(self) -> str:
    """Name such as 'rnnlm-2@2xP100'; a file is named without its folder."""
    return f'{self.label}@{_label(self.cluster)}'

  @property
  def label(self) -> str:
    """The part of the name before the cluster."""
    return _label(self.source)

  @property
  def file_name(self) -> str:
    """The name as a part of a path."""
    return re.sub(r'[^\w.@+-]+', '_', self.name).strip('._')[-120:]


def _paper_tasks() -> tuple[Task, ...]:
  gdp = [(f'{family}-{n}', f'{n}xP100')
         for family in ('rnnlm', 'gnmt', 'transformer-xl') for n in (2, 4, 8)]
  gdp += [('inception-v3-b32', '2xP100'), ('inception-v3-b64', '2xP100'),
          ('amoebanet', '4xP100'), ('wavenet-2x18', '2xP100'),
          ('wavenet-4x36', '4xP100')]
  hdp = [('resnet-50', '2xK40'), ('rnnlm-2', '2xK40'), ('nmt-2', '2xK40'),
         ('nmt-4', '4xK40'), ('nmt-8', '8xK40')]
  return (*(Task(source, cluster, WORKLOAD) for source, cluster in gdp),
          Task('inception-v3-b32', '2xK40', ONE_GPU),
          *(Task(source, cluster, WORKLOAD) for source, cluster in hdp))


# GDP, table 1 (P100, section 4.1), then HDP, table 1 (K40).
PAPER_TASKS = _paper_tasks()


def parse(text: str, workloads: Collection[str], num_devices: Callable[[str],
                                                                       int], *,
          quick: bool = False, default_cluster: str = '') -> tuple[Task, ...]:
  """Returns the tasks that a user's text means.

  Args:
    text: 'all', or NAME[@CLUSTER] separated by commas. NAME is a workload,
      'keras_applications:NAME', 'module:function' or a file. A workload without
      a cluster gets all clusters that the papers give it.
    workloads: Names of all workloads.
    num_devices: Returns the number of accelerators that the papers give a
      workload.
    quick: Whether to use the small variant of each workload.
    default_cluster: Cluster of all tasks that name none, instead of the
      papers'.

  Raises:
    GdpError: a name is unknown, a cluster is missing, or two tasks have the
      same name.
  """
  found: list[Task] = []
  for item in filter(None, (part.strip() for part in text.split(','))):
    if item == 'all':
      found += [
          dataclasses.replace(task, cluster=default_cluster or task.cluster)
          for task in PAPER_TASKS
      ]
    else:
      found += _parse_item(item, workloads, num_devices, default_cluster)
  if not found:
    raise errors.GdpError('--tasks names no task. Give all, or for example '
                          'rnnlm-2@2xP100.')
  if quick:
    found = [_tiny(task, workloads) for task in found]
  else:
    for task in found:
      _check_source(task.source, task.source, workloads)
  return _without_repetition(found)


def _parse_item(item: str, workloads: Collection[str],
                num_devices: Callable[[str],
                                      int], default_cluster: str) -> list[Task]:
  source, cluster = item, ''
  if item not in workloads and '@' in item and not pathlib.Path(item).exists():
    source, cluster = item.rsplit('@', 1)
  _check_source(source, item, workloads)
  expert = WORKLOAD if source in workloads else ''
  cluster = cluster or default_cluster
  large = source.removesuffix(_TINY)
  papers = [task for task in PAPER_TASKS if task.source == large]
  if cluster:
    same = [task for task in papers if task.cluster == cluster]
    return [dataclasses.replace(task, source=source) for task in same
           ] or [Task(source, cluster, expert)]
  if papers:
    return [dataclasses.replace(task, source=source) for task in papers]
  if source in workloads:
    return [Task(source, f'{num_devices(source)}xP100', expert)]
  raise errors.GdpError(f'Task "{item}" has no cluster. Give one, for example '
                        f'{item}@2xP100.')


def _check_source(source: str, item: str, workloads: Collection[str]) -> None:
  if source in workloads or pathlib.Path(source).exists():
    return
  if origin.is_function(source):
    return
  shown = [name for name in workloads if not name.endswith(_TINY)]
  raise errors.GdpError(
      suggestions.unknown('task', item, shown, _LISTED, meant=source)
      + f' "{source}" is neither a workload nor a file nor module:function.')


def _label(text: str) -> str:
  return pathlib.Path(text).stem if pathlib.Path(text).exists() else text


def _tiny(task: Task, workloads: Collection[str]) -> Task:
  """Returns the task with its workload's small variant; a file stays."""
  if task.source.endswith(_TINY) or (task.source not in workloads and
                                     task.source + _TINY not in workloads and
                                     task not in PAPER_TASKS):
    return task
  if task.source + _TINY not in workloads:
    raise errors.GdpError(f'Workload "{task.source}" has no small variant for '
                          '--quick. Leave --quick out.')
  return dataclasses.replace(task, source=task.source + _TINY)


def _without_repetition(tasks: Sequence[Task]) -> tuple[Task, ...]:
  """Returns each task once.

  Raises:
    GdpError: two tasks would have the same files.
  """
  first: dict[str, Task] = {}
  for task in tasks:
    other = first.setdefault(task.file_name, task)
    if (other.source, other.cluster) != (task.source, task.cluster):
      raise errors.GdpError(
          f'Tasks {other.source}@{other.cluster} and {task.source}@'
          f'{task.cluster} would have the same name, {task.name}. Rename a '
          'file.')
  return tuple(first.values())

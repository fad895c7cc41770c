"""Columns of the papers' tables: placers, and ratios of their results."""

from __future__ import annotations

import dataclasses
import enum
from typing import Sequence

STEP, SEARCH, REACHED = 'step', 'search', 'reached'
_CLUSTER, _TINY = '@', 'tiny'
# Graphs of one family are the same model in several sizes.
FAMILIES = ('rnnlm', 'gnmt', 'nmt', 'transformer-xl', 'inception', 'amoebanet',
            'wavenet', 'resnet')
Published = tuple[tuple[str, float], ...]


class Scope(enum.Enum):
  """The graphs that a policy learns before it places one graph of the batch."""

  ALL = 'all of them'
  OTHERS = 'graphs of other families'
  ALONE = 'that one'


@dataclasses.dataclass(frozen=True)
class Batch:
  """GDP-batch: one policy learns several graphs, which take turns.

  The policy trains on each graph for as many iterations as GDP-one made.

  Attributes:
    tasks: Names 'GRAPH@CLUSTER'.
    scope: The tasks that a policy learns before it places one of them.
    network: Preset of `placer_model.config`.
  """

  tasks: tuple[str, ...]
  scope: Scope = Scope.ALL
  network: str = 'paper'

  def members(self, task: str) -> tuple[str, ...]:
    """The tasks that a policy learns before it places a task."""
    if self.scope == Scope.ALONE:
      return (task,)
    if self.scope == Scope.ALL:
      return self.tasks
    own = family(task)
    return tuple(other for other in self.tasks if family(other) != own)


@dataclasses.dataclass(frozen=True)
class Column:
  """A column of a table: a placer, and the policy that the placer loads.

  Attributes:
    name: Head of the column.
    placer: Name of a placer of gdp_bench. '' means that the cell is the best
      placement that was found while the policy learned the batch.
    batch: The batch that the placer's policy learned. None means the policy
      that ships.
  """

  name: str
  placer: str = ''
  batch: Batch | None = None

  def has(self, task: str) -> bool:
    """Whether the column has a cell for a task."""
    return self.batch is None or task in self.batch.tasks


@dataclasses.dataclass(frozen=True)
class Ratio:
  """A column of ratios: a figure of one column over the figure of another.

  Attributes:
    title: Head of the column of ratios.
    other: Name of the column in the numerator.
    ours: Name of the column in the denominator.
    figure: `STEP`: seconds of a step. `SEARCH`: seconds until a search was
      within 1 % of its own best. `REACHED`: in the numerator, the seconds until
      the search of `other` was within 1 % of its own best; in the denominator,
      the seconds until the search of `ours` was within 1 % of that same step.
    published: The ratio in a paper, by task.
    published_mean: The ratio over all tasks in the text of a paper.
  """

  title: str
  other: str
  ours: str
  figure: str = STEP
  published: Published = ()
  published_mean: float | None = None


@dataclasses.dataclass(frozen=True)
class Part:
  """A table or figure of a paper.

  Attributes:
    title: Title of the section.
    tasks: Names 'GRAPH@CLUSTER'; each is a row.
    columns: Columns of steps, from left to right.
    ratios: Columns of ratios.
    searches: Names of the columns whose seconds of search are shown.
    said: Text of the section: the paper's claims, and the differences here.
  """

  title: str
  tasks: tuple[str, ...]
  columns: tuple[Column, ...]
  ratios: tuple[Ratio, ...] = ()
  searches: tuple[str, ...] = ()
  said: str = ''

  @property
  def placers(self) -> tuple[str, ...]:
    """Names of the columns of gdp_bench that need no batch."""
    return tuple(c.placer for c in self.columns if c.batch is None)

  def of(self, tasks: Sequence[str]) -> Part:
    """Returns the part with only some tasks, also in its batches.

    If columns become equal, the first of them stays.

    Args:
      tasks: Some of the part's tasks.
    """
    return self._mapped({task: task for task in tasks})

  def tiny(self) -> Part:
    """Returns the part with small variants of its workloads."""
    return self._mapped({
        task: f'{_CLUSTER}{_TINY}{_CLUSTER}'.join(task.split(_CLUSTER))
        for task in self.tasks
    })

  def _mapped(self, new: dict[str, str]) -> Part:
    """Renames tasks, and drops those without a new name."""

    def renamed(tasks: Sequence[str]) -> tuple[str, ...]:
      return tuple(new[task] for task in tasks if task in new)

    columns = (c if c.batch is None else dataclasses.replace(
        c, batch=dataclasses.replace(c.batch, tasks=renamed(c.batch.tasks)))
               for c in self.columns)
    # Fewer tasks may make two batches equal; the first of them stays.
    first: dict[tuple[str, Batch | None], Column] = {}
    for column in columns:
      first.setdefault((column.placer, column.batch), column)
    names = {column.name for column in first.values()}
    return dataclasses.replace(
        self, tasks=renamed(self.tasks), columns=tuple(first.values()),
        ratios=tuple(r for r in self.ratios if {r.ours, r.other} <= names),
        searches=tuple(name for name in self.searches if name in names))


def placers(*names: str) -> tuple[Column, ...]:
  """Columns of gdp_bench by the names of their placers."""
  return tuple(Column(name, name) for name in names)


def family(task: str) -> str:
  """Returns the family of a task, one of `FAMILIES`."""
  return next(name for name in FAMILIES if task.startswith(name))

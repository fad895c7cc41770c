"""Columns of the papers' tables: the placer, and what is compared."""

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
  """Which graphs a policy learns before it places one graph of the batch."""

  ALL = 'all of them'
  OTHERS = 'graphs of other families'
  ALONE = 'that one'


@dataclasses.dataclass(frozen=True)
class Batch:
  """GDP-batch: one policy learns several graphs, which take turns.

  Each graph has as many iterations as GDP-one had of it (`cells`).

  Attributes:
    tasks: 'GRAPH@CLUSTER' each.
    scope: Which of the tasks a policy learns before it places one of them.
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
  """A column: what places the tasks.

  Attributes:
    name: Its head.
    placer: Of gdp_bench; '' for what was found for a task while the policy
      learned the batch.
    batch: Where the placer's policy learned; None for the one that ships.
  """

  name: str
  placer: str = ''
  batch: Batch | None = None

  def has(self, task: str) -> bool:
    """Whether it has a cell of a task."""
    return self.batch is None or task in self.batch.tasks


@dataclasses.dataclass(frozen=True)
class Ratio:
  """A column of ratios: a figure of one column over the figure of another.

  Attributes:
    title: Of the column.
    other: Name of the column whose figure is above.
    ours: Name of the one whose figure is below.
    figure: `STEP`: seconds of a step. `SEARCH`: seconds of a search until it
      was within 1 % of its own best. `REACHED`: those of the other one, over
      ours until we were within 1 % of the other's best.
    published: The same in a paper, by task.
    published_mean: The same in a paper's text, over all of its tasks.
  """

  title: str
  other: str
  ours: str
  figure: str = STEP
  published: Published = ()
  published_mean: float | None = None


@dataclasses.dataclass(frozen=True)
class Part:
  """A table or figure.

  Attributes:
    title: What it is.
    tasks: 'GRAPH@CLUSTER' each, a row per task.
    columns: In their order.
    ratios: Further columns.
    searches: Names of the columns whose seconds of search are shown.
    said: What the paper says of it, in our words, and what differs here.
    curve: Whether all is run again for every number of seconds.
  """

  title: str
  tasks: tuple[str, ...]
  columns: tuple[Column, ...]
  ratios: tuple[Ratio, ...] = ()
  searches: tuple[str, ...] = ()
  said: str = ''
  curve: bool = False

  @property
  def placers(self) -> tuple[str, ...]:
    """Names of the columns of gdp_bench that need no batch."""
    return tuple(c.placer for c in self.columns if c.batch is None)

  def of(self, tasks: Sequence[str]) -> Part:
    """The part with some of its tasks, in batches as well.

    Of columns that are equal then, only the first is left.

    Args:
      tasks: Some of the part's tasks.
    """
    return self._mapped({task: task for task in tasks})

  def tiny(self) -> Part:
    """The part with small variants of its workloads."""
    return self._mapped({
        task: f'{_CLUSTER}{_TINY}{_CLUSTER}'.join(task.split(_CLUSTER))
        for task in self.tasks
    })

  def _mapped(self, new: dict[str, str]) -> Part:
    """With other names of tasks, without those that have none."""

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
  """Of `FAMILIES`."""
  return next(name for name in FAMILIES if task.startswith(name))

"""Calls several placers and keeps the placement with the best price."""

from __future__ import annotations

import functools
from typing import Callable, Sequence

from absl import logging

from gdp_grappler import deadlines
from gdp_grappler import errors
from gdp_grappler import progress
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers import placer_table
from gdp_grappler.placers import registry

# The best single device, the expert and all portfolios. Of equal placements,
# that of the first placer wins.
DEFAULT_NAMES = ('single_device', 'human_expert', 'metis', 'scotch', 'min_cut',
                 'mt_kahypar', 'm_topo', 'm_etf', 'm_sct', 'heft', 'structured',
                 'hierarchical')
# The same placers, the quickest first. `best_of` calls the placers in this
# order, so that a short time is enough for many. Other placers are called last.
_QUICKEST_FIRST = ('single_device', 'human_expert', 'hierarchical',
                   'structured', 'metis', 'm_etf', 'heft', 'm_topo', 'm_sct',
                   'scotch', 'min_cut', 'mt_kahypar')

# Largest number of warnings that the process remembers.
_MOST_NOTICES = 100
# Share of the remaining time that a placer may take if other placers follow.
_PART = .5


class BestOfPlacer:
  """The best placement of a set of placers, and the placer that found it.

  A placement that fits into the memories is better than one that does not, and
  a smaller overflow is better. Of equal placements, that of the placer that was
  named first wins. A placer is left out if it has nothing to propose (no
  expert, one host), or if its turn comes after `Problem.time_budget_s`. A
  placer that fails, or whose library is missing, is left out with a notice.

  Attributes:
    winner: The placer whose placement `place` returned last; None before a
      call.
  """

  def __init__(self, names: Sequence[str] | None = None) -> None:
    """Sets the placers.

    Args:
      names: Names in the registry; `DEFAULT_NAMES` if None.

    Raises:
      GdpError: there is no placer of that name, or no name is given.
    """
    names = DEFAULT_NAMES if names is None else names
    if not names:
      raise errors.GdpError('best_of was given no placers; name at least one '
                            f'of {", ".join(registry.names())}.')
    self._names = tuple(dict.fromkeys(names))
    for name in self._names:
      registry.get(name)  # Raises an error that suggests a similar name.
    self.winner: str | None = None

  def place(self, problem: placer_lib.Problem) -> placement_lib.Placement:
    """See `Placer`.

    Raises:
      InfeasiblePlacementError: the graph cannot be placed on the cluster, or
        none of the placers could place it.
    """
    proposed, skipped = propose_each(problem, quickest_first(self._names),
                                     problem.deadline())
    if not proposed:
      raise errors.InfeasiblePlacementError(
          f'None of the placers could place graph "{problem.graph.name}": '
          + ' '.join(f'{name}: {why}' for name, why in skipped.items()))
    names = [name for name in self._names if name in proposed]
    placements = [proposed[name][0] for name in names]
    best = evaluator_lib.Prices.from_evaluations([
        problem.evaluator.evaluate(problem.graph, each) for each in placements
    ], problem.cluster.pool_bytes).best()
    self.winner = names[best]
    return placements[best]


# Function of the name and the proposals of a placer. Returns whether any placer
# has given an answer so far. If so, the deadline holds for all further placers.
OnProposals = Callable[[str, tuple[placement_lib.Placement, ...]], bool]


def proposals_of(
    placer: placer_lib.Placer,
    problem: placer_lib.Problem) -> tuple[placement_lib.Placement, ...]:
  """All placements that a placer proposes; one if it is no `Proposer`.

  Args:
    placer: Any placer.
    problem: The problem to place.
  """
  if isinstance(placer, placer_lib.Proposer):
    return placer.proposals(problem)
  return (placer.place(problem),)


def propose_each(
    problem: placer_lib.Problem, names: Sequence[str],
    deadline: deadlines.Deadline = deadlines.NEVER,
    on_proposals: OnProposals = lambda name, proposed: True,
    in_parts: bool = False
) -> tuple[dict[str, tuple[placement_lib.Placement, ...]], dict[str, str]]:
  """Calls several placers for all their proposals.

  Args:
    problem: The problem to place.
    names: Names of placers in the registry, in the order of the calls.
    deadline: After this time no placer is called, unless none has answered yet.
    on_proposals: Called after each placer. By default, each proposal is an
      answer.
    in_parts: Whether each placer but the last may take only a part of the time
      that is left. If not, each placer may take all of it.

  Returns:
    The placements of each placer by name, and why other placers have none.

  Raises:
    InfeasiblePlacementError: the graph cannot be placed on the cluster.
  """
  _ = problem.allowed  # Raises if no placer can place the graph.
  proposed: dict[str, tuple[placement_lib.Placement, ...]] = {}
  skipped: dict[str, str] = {}
  has_answer = False
  for index, name in enumerate(names):
    if has_answer and deadline.passed:
      skipped[name] = 'The time budget was over before its turn.'
      continue
    part = deadline
    if in_parts and index < len(names) - 1:
      part = deadline.after(_PART)
    why = _missing(registry.get(name).needs, problem)
    if why:
      skipped[name] = why
      continue
    progress.doing(f'placing {problem.graph.num_ops} ops by {name}')
    try:
      proposed[name] = proposals_of(
          registry.create(name),
          problem if part.left_s is None else problem.until(part))
    except errors.GdpError as error:
      skipped[name] = str(error)
      _notice(name, str(error))
      continue
    has_answer = on_proposals(name, proposed[name])
  return proposed, skipped


def quickest_first(names: Sequence[str]) -> list[str]:
  """The names of placers, those first that are quick on most graphs."""
  return sorted(names, key=_slowness)


def _slowness(name: str) -> int:
  known = name in _QUICKEST_FIRST
  return _QUICKEST_FIRST.index(name) if known else len(_QUICKEST_FIRST)


def _missing(needs: frozenset[placer_table.Need],
             problem: placer_lib.Problem) -> str:
  """Why a placer cannot place a problem; '' if the placer can."""
  if placer_table.Need.EXPERT in needs and problem.expert_devices is None:
    return "There is no human expert's placement of this graph."
  if placer_table.Need.HOSTS in needs and len(problem.cluster.hosts) < 2:
    return 'The cluster has one host.'
  return ''


# Prints a warning once per process. The number of remembered warnings is
# limited, because a text may name a graph, and a process may place many graphs.
@functools.lru_cache(maxsize=_MOST_NOTICES)
def _notice(name: str, why: str) -> None:
  logging.warning('The placer "%s" is left out. %s', name, why)

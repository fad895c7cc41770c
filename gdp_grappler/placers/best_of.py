"""The best of what several placers propose."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Sequence

from absl import logging

from gdp_grappler import deadlines
from gdp_grappler import errors
from gdp_grappler import progress
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers import placer_table
from gdp_grappler.placers import registry
from gdp_grappler.placers.search.edges import edge_selection

# Everything that neither learns nor searches, in the order of preference
# between equals.
DEFAULT_NAMES = ('single_device', 'human_expert', 'metis', 'scotch', 'min_cut',
                 'mt_kahypar', 'm_topo', 'm_etf', 'm_sct', 'heft', 'structured',
                 'hierarchical')
# The same, who takes least first: whoever has little time hears many of them.
# Others come after these.
_QUICKEST_FIRST = ('single_device', 'human_expert', 'hierarchical',
                   'structured', 'metis', 'heft', 'm_topo', 'm_etf', 'm_sct',
                   'scotch', 'min_cut', 'mt_kahypar')


@dataclasses.dataclass(frozen=True, eq=False)
class Choice:
  """What one placer proposed.

  Attributes:
    name: The placer.
    placement: Its placement.
    evaluation: The price of that, in the order of its priorities if it has any.
  """

  name: str
  placement: placement_lib.Placement
  evaluation: evaluator_lib.Evaluation


class BestOfPlacer:
  """The cheapest placement of a set of placers, and who found it.

  Placements that fit into memory come first, then those that exceed it least;
  of equals, the placer that was named first. A placer that cannot take part,
  because its library is missing or it has no answer to this graph, is left out
  with a notice, as is who would begin when `Problem.time_budget_s` is over.

  Attributes:
    choices: What each placer proposed when `place` last ran, best first.
    skipped: Placers that did not take part then, and why.
  """

  def __init__(self, names: Sequence[str] | None = None) -> None:
    """From names in the registry; None for `DEFAULT_NAMES`.

    Raises:
      GdpError: there is no such placer, or none is named.
    """
    names = DEFAULT_NAMES if names is None else names
    if not names:
      raise errors.GdpError('best_of was given no placers; name at least one '
                            f'of {", ".join(registry.names())}.')
    self._names = tuple(dict.fromkeys(names))
    for name in set(self._names) - set(DEFAULT_NAMES) - set(registry.names()):
      registry.create(name)  # Raises, and knows names that are similar.
    self.choices: tuple[Choice, ...] = ()
    self.skipped: dict[str, str] = {}

  @property
  def winner(self) -> str | None:
    """Whose placement `place` last returned; None before it ran."""
    return self.choices[0].name if self.choices else None

  def place(self, problem: placer_lib.Problem) -> placement_lib.Placement:
    """See `Placer`.

    Raises:
      InfeasiblePlacementError: the graph cannot be placed on the cluster, or
        none of the placers could place it.
    """
    placements, self.skipped = place_each(problem, self._names,
                                          problem.deadline())
    if not placements:
      raise errors.InfeasiblePlacementError(
          f'None of the placers could place graph "{problem.graph.name}": '
          + ' '.join(f'{name}: {why}' for name, why in self.skipped.items()))
    choices = [
        Choice(name, placement,
               problem.evaluator.evaluate(problem.graph, placement))
        for name, placement in placements.items()
    ]
    prices = evaluator_lib.Prices.from_evaluations(
        [choice.evaluation for choice in choices], problem.cluster.pool_bytes)
    self.choices = tuple(choices[k] for k in prices.ranking())
    return self.choices[0].placement


def place_each(
    problem: placer_lib.Problem, names: Sequence[str],
    deadline: deadlines.Deadline = deadlines.NEVER
) -> tuple[dict[str, placement_lib.Placement], dict[str, str]]:
  """Runs placers, as many as can; arguments as `propose_each`.

  Returns:
    The placements by name, and why the other placers have none.

  Raises:
    InfeasiblePlacementError: the graph cannot be placed on the cluster.
  """
  found, skipped = propose_each(problem, names, deadline)
  return {name: own[0] for name, own in found.items()}, skipped


def propose_each(
    problem: placer_lib.Problem, names: Sequence[str],
    deadline: deadlines.Deadline = deadlines.NEVER
) -> tuple[dict[str, tuple[placement_lib.Placement, ...]], dict[str, str]]:
  """Asks placers for all that they have to say, as many as can.

  Args:
    problem: What to place.
    names: Placers of the registry.
    deadline: Nobody is asked afterwards, unless nothing was found before. Who
      takes least is asked first; each has what is left until then.

  Returns:
    The placements by name, in the order of names, and why the other placers
    have none.

  Raises:
    InfeasiblePlacementError: the graph cannot be placed on the cluster.
  """
  _ = problem.allowed  # Raises where no placer could help.
  found: dict[str, tuple[placement_lib.Placement, ...]] = {}
  skipped: dict[str, str] = {}
  hurried = deadline.at_s < math.inf
  for name in sorted(names, key=_slowness):
    why = _missing(registry.get(name).needs, problem)
    if why:
      skipped[name] = why
      continue
    if found and deadline.passed:
      skipped[name] = 'The time budget was over before its turn.'
      continue
    progress.doing(f'placing {problem.graph.num_ops} ops by {name}')
    try:
      found[name] = edge_selection.proposals(
          registry.create(name),
          problem.until(deadline) if hurried else problem)
    except errors.GdpError as error:
      skipped[name] = str(error)
      _notice(name, str(error))
  return {name: found[name] for name in names if name in found}, skipped


def _slowness(name: str) -> int:
  known = name in _QUICKEST_FIRST
  return _QUICKEST_FIRST.index(name) if known else len(_QUICKEST_FIRST)


def _missing(needs: frozenset[placer_table.Need],
             problem: placer_lib.Problem) -> str:
  """Why a placer has nothing to say of a problem; '' if it may have."""
  if placer_table.Need.EXPERT in needs and problem.expert_devices is None:
    return 'Nobody said how an expert would place this graph.'
  if placer_table.Need.HOSTS in needs and len(problem.cluster.hosts) < 2:
    return 'The cluster has one host.'
  return ''


@functools.cache  # Once per process: one search after the other would say it.
def _notice(name: str, why: str) -> None:
  logging.warning('The placer "%s" is left out. %s', name, why)

"""Refuses steps that fit no memory, with advice for the user."""

from __future__ import annotations

from gdp_grappler import errors
from gdp_grappler import spelling
from gdp_grappler.api import placed_step
from gdp_grappler.api import subjects
from gdp_grappler.cluster import shortage
from gdp_grappler.placers import step as step_lib
from gdp_grappler.problems import tables
from gdp_grappler.sharding import choice


def if_certain(subject: subjects.Subject, step: step_lib.Step) -> None:
  """Refuses a step that no placement fits, before any search.

  Args:
    subject: The graph that the user gave.
    step: The step of this graph.

  Raises:
    InfeasiblePlacementError: no placement fits.
  """
  found = shortage.why_none_fits(step.graph, step.cluster)
  if found:
    raise _error(found, subject, step)


def if_it_exceeds(subject: subjects.Subject,
                  placed: placed_step.PlacedStep) -> None:
  """Refuses the best placement that was found if it exceeds a memory.

  Args:
    subject: The graph that the user gave.
    placed: The step with this placement.

  Raises:
    InfeasiblePlacementError: the placement exceeds a memory.
  """
  if placed.fits:
    return
  graph, cluster = placed.graph, placed.step.cluster
  temporary = placed.step.simulator().costs(graph).workspace_bytes(
      graph, cluster)
  raise _error(
      shortage.of_placement(graph, cluster, placed.placement.devices,
                            placed.fifo.peak_bytes, temporary), subject,
      placed.step)


def _error(found: str, subject: subjects.Subject,
           step: step_lib.Step) -> errors.InfeasiblePlacementError:
  said = tables.advice(step, choice.checked(subject.how.split_tables),
                       subject.is_made)
  return errors.InfeasiblePlacementError(
      spelling.with_end(' '.join(filter(None, (found, said)))))

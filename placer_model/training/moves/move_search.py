"""Searches of a run: by the default placer, and with the trained network."""

from __future__ import annotations

import dataclasses
import time

import numpy as np

from gdp_grappler import deadlines
from gdp_grappler import progress
from gdp_grappler.evaluation import recording_evaluator
from gdp_grappler.evaluation import robust_evaluator
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from gdp_grappler.placers import best_of
from gdp_grappler.placers import registry
from gdp_grappler.placers.search import search_budget
from gdp_grappler.placers.search import search_time
from gdp_grappler.placers.search import staged_search
from gdp_grappler.placers.search.moves import move_network
from placer_model.training.moves import move_state
from placer_model.training.moves import move_trainer

# Proposals of the default placer that are priced; the first is its result.
_ANSWERS = 4
# Stream of random numbers of these searches. No iteration has this number, so
# no other stream is the same.
_SEARCH_STREAM = 1 << 33
# Largest number of placements that the search after training starts from.
_STARTS = 4


def ask_gdp(trainer: move_trainer.MoveTrainer,
            simulator: simulator_lib.Simulator, seconds: float | None) -> None:
  """Lets the default placer place the graph, as `gdp place` does.

  The search uses simulated prices even if the run measures steps.

  Args:
    trainer: Prices and keeps the placements.
    simulator: Simulator of the cluster.
    seconds: Time limit of the search. None means the placer's own limit, which
      counts work instead of time.

  Raises:
    InfeasiblePlacementError: the graph cannot be placed on the cluster.
  """
  progress.doing('searching as gdp does')
  begin_s, state = time.monotonic(), trainer.state
  priced = recording_evaluator.Recorder(robust_evaluator.objective(simulator))
  by_clock = seconds is not None
  problem = dataclasses.replace(
      trainer.problem, evaluator=priced, time_budget_s=seconds,
      clock=time.monotonic if by_clock else deadlines.still,
      repeatable=not by_clock)
  found = best_of.proposals_of(registry.create(registry.DEFAULT),
                               problem)[:_ANSWERS]
  trainer.offer(found, move_state.GDP)
  state.evaluations[move_state.GDP] += priced.evaluations
  state.by_gdp = found[0].devices[None, trainer.problem.graph.first_ops]
  state.gdp_s = time.monotonic() - begin_s
  state.seconds += state.gdp_s


def search_on(trainer: move_trainer.MoveTrainer,
              network: move_network.MoveNetwork, trials: int,
              seconds: float | None) -> None:
  """Searches from the best placements, with moves that a network chooses.

  Args:
    trainer: Holds the best placements, and keeps new ones.
    network: The network.
    trials: Largest number of placements to price if there is no time limit.
    seconds: Time limit of the search; None for no limit.
  """
  state, problem = trainer.state, trainer.problem
  if not len(state.elites):
    return
  progress.doing('searching with what was learned')
  begin_s = time.monotonic()
  priced = recording_evaluator.Recorder(problem.evaluator)
  problem = dataclasses.replace(problem, evaluator=priced,
                                time_budget_s=seconds, clock=time.monotonic)
  count = trials if seconds is None else search_time.evaluations_for(problem)
  found = staged_search.search(
      problem, state.elites[:_STARTS],
      np.random.default_rng([trainer.seed, _SEARCH_STREAM]),
      search_budget.SearchBudget(count, seconds),
      staged_search.models_of(network))
  trainer.offer(found, move_state.SEARCH)
  state.evaluations[move_state.SEARCH] += priced.evaluations
  state.seconds += time.monotonic() - begin_s

"""Messages and files of a run that trains the move network."""

from __future__ import annotations

import dataclasses
import json
from typing import Any, Sequence

import numpy as np
import rich.console

from gdp_grappler import deadlines
from gdp_grappler import errors
from gdp_grappler import progress
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.placers.policy import move_folder
from gdp_grappler.placers.search.moves import move_network
from placer_model.training import baselines as baselines_lib
from placer_model.training import entrants as entrants_lib
from placer_model.training import progress as progress_lib
from placer_model.training import results as results_lib
from placer_model.training import task as task_lib
from placer_model.training.moves import move_state
from placer_model.training.moves import move_trainer

# Step times that differ by less than this share count as equal.
_NOTICED = 1e-3

Entrant = entrants_lib.Entrant[move_trainer.MoveTrainer]


@dataclasses.dataclass(frozen=True, eq=False)
class Learned:
  """The network to export.

  Attributes:
    network: The better of the trained network and the initial one.
    before: Mean gain per price in episodes from the drafts, with the initial
      weights; None without a test.
    after: The same with the trained weights.
  """

  network: move_network.MoveNetwork
  before: float | None
  after: float | None


def line(entrant: Entrant, report: move_trainer.Report) -> str:
  """Returns the line that describes an iteration.

  Args:
    entrant: Graph of the iteration.
    report: Statistics of the iteration.
  """
  return (f'{entrant.label}  ' * bool(entrant.label)
          + f'gain per price {report.gain_per_price:.4f}  best price '
          f'{progress_lib.format_step_time(report.best_step_time_s)}'
          f'{_ahead(entrant)}')


def is_ahead(entrant: Entrant) -> bool:
  """Returns whether the policy has a faster placement than `gdp`.

  Args:
    entrant: A graph.
  """
  best = entrant.trainer.state.best_s
  return best[move_state.POLICY] < (1 - _NOTICED) * best[move_state.GDP]


def verdict(entrant: Entrant, searches: bool) -> str:
  """Returns a text on whether training beat the default placer.

  Args:
    entrant: A graph.
    searches: Whether the run searches after training.
  """
  state = entrant.trainer.state
  by_gdp, by_policy = (
      state.best_s[origin] for origin in (move_state.GDP, move_state.POLICY))
  name = f'{entrant.label}: ' * bool(entrant.label)
  if not len(state.by_gdp):
    return f'{name}The time budget ended before gdp could search.'
  found = (f'gdp found a price of {progress_lib.format_step_time(by_gdp)} in '
           f'{state.gdp_s:.0f} s')
  learning = f'{max(state.seconds - state.gdp_s, 0):.0f} s'
  if is_ahead(entrant):
    return (f'{name}Learning is ahead: {found}, the policy one of '
            f'{progress_lib.format_step_time(by_policy)} in {learning} more.')
  return (f'{name}Search is enough: {found}, and learning has found no '
          f'lower one in {learning} more.'
          + ' Learning ends; what is left of the time is searched.' * searches)


def conclude(options: task_lib.TrainOptions, entrants: Sequence[Entrant],
             start: move_network.MoveNetwork, learned: Learned,
             verdicts: Sequence[str], console: rich.console.Console,
             start_s: float, deadline: deadlines.Deadline) -> dict[str, Any]:
  """Exports, writes plans and results, and prints the table.

  Args:
    options: Options of the run.
    entrants: Graphs of the run.
    start: The initial network.
    learned: The network to export.
    verdicts: Text of `verdict` for each graph.
    console: Console for the table.
    start_s: Start of the program, by the monotonic clock.
    deadline: Time until which control edges may be computed.

  Returns:
    The content of results.json.

  Raises:
    GdpError: a file cannot be written, or no placement fits.
  """
  if all(e.trainer.state.best_decisions is None for e in entrants):
    raise errors.GdpError(
        f'{results_lib.why_none_is_valid(_violations(entrants[0]))} The '
        f'checkpoint in {options.model_dir} is kept.')
  tell = progress_lib.teller(console)
  move_folder.save(options.model_dir / 'policy', learned.network,
                   _about(options, entrants, start, learned))
  written = entrants_lib.write_plans(options.model_dir, entrants)
  graphs = [
      _record(options, entrant, said, deadline)
      for entrant, said in zip(entrants, verdicts)
  ]
  progress.idle()
  tell(_of_weights(learned))
  return entrants_lib.publish(
      options, graphs, written[0], start_s, tell,
      {'gain_per_price': [learned.before, learned.after]})


def _ahead(entrant: Entrant) -> str:
  """Returns '  1.9x one device  1.2x the start', ratios of prices."""
  state = entrant.trainer.state
  # The robust price of a placement on one device is its simulated step.
  alone = next((b.evaluation.step_time_s for b in entrant.baselines
                if b.placer == 'single_device' and b.evaluation.valid), np.inf)
  first = min(state.best_s[move_state.BASELINE], state.best_s[move_state.DRAFT])
  by_gdp = state.best_s[move_state.GDP]
  said = []
  for name, seconds in {'one device': alone, 'the start': first,
                        'gdp': by_gdp}.items():
    if np.isfinite(seconds) and np.isfinite(state.best_step_time_s):
      said.append(f'  {seconds / state.best_step_time_s:.3f}x {name}')
  return ''.join(said)


def _of_weights(learned: Learned) -> str:
  if learned.before is None or learned.after is None:
    return 'The policy has the weights that were learned.'
  figures = (f'gain per price from the drafts {learned.before:.4f} by the '
             f'weights of the start, {learned.after:.4f} by those learned')
  if learned.after > learned.before:
    return f'The policy has the weights that were learned: {figures}.'
  return f'The policy keeps the weights of the start: {figures}.'


def _about(options: task_lib.TrainOptions, entrants: Sequence[Entrant],
           start: move_network.MoveNetwork, learned: Learned) -> dict[str, Any]:
  """Returns the metadata of the exported policy."""
  return {
      **entrants_lib.about(options, entrants), 'reward': options.reward,
      'start': start.digest[:16],
      'gain_per_price': [learned.before, learned.after],
      'versions': json.loads(json.dumps(results_lib.versions()))
  }


def _violations(entrant: Entrant) -> list[placement_lib.Violation]:
  return [v for b in entrant.baselines for v in b.evaluation.violations]


def _record(options: task_lib.TrainOptions, entrant: Entrant, learning: str,
            deadline: deadlines.Deadline) -> dict[str, Any]:
  """Returns a graph's part of results.json; `learning` is its verdict."""
  task, state = entrant.task, entrant.trainer.state
  found = [*entrant.baselines]
  for devices in state.by_gdp[:1]:
    found.append(
        _result(entrant, move_state.GDP, devices,
                state.evaluations[move_state.GDP], state.gdp_s, deadline))
  best, first = state.best_decisions, task.graph.first_ops
  found_by = baselines_lib.found_by(
      state.best_origin, best,
      np.stack([b.placement.devices[first] for b in entrant.baselines]),
      entrant.baselines)
  if best is None:  # No placement fits, so that of any baseline shows why.
    best = found[0].placement.devices[first]
  found.append(
      _result(entrant, results_lib.TRAINED, best, state.total_evaluations,
              state.seconds, deadline))
  placers = {result.placer: results_lib.entry(result) for result in found}
  placers[results_lib.TRAINED] |= {
      'iterations': state.iteration, 'found_by': found_by,
      'evaluations_by_origin': state.evaluations,
      'policy_price_s': _finite(state.best_s[move_state.POLICY]),
      'curve': [list(pair) for pair in state.curve], 'gains': state.gains
  }
  record = entrants_lib.graph_record(task, placers, task.graph.num_groups,
                                     options.reward)
  return record | {'learning': learning}


def _result(entrant: Entrant, name: str, devices: np.ndarray, evaluations: int,
            seconds: float,
            deadline: deadlines.Deadline) -> baselines_lib.Result:
  task = entrant.task
  placement = placement_lib.from_groups(task.graph, devices, task.cluster)
  return baselines_lib.in_order(
      task.graph, task.evaluator, task.simulator,
      baselines_lib.Result(name, placement,
                           task.evaluator.evaluate(task.graph, placement),
                           evaluations, seconds, task.problem.seed), deadline)


def _finite(seconds: float) -> float | None:
  return seconds if np.isfinite(seconds) else None

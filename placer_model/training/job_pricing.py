"""Prices rollouts, baselines and searches as jobs on other machines.

One team of workers serves all graphs of a run. A worker prepares a graph when
it gets the first job for it. Prices depend neither on the worker nor on how
many placements are priced together. So the result of a run does not depend on
the machines.
"""

from __future__ import annotations

import dataclasses
import functools
import pickle
from typing import Any, Callable, Sequence

import numpy as np

from gdp_grappler import deadlines
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.evaluation import robust_evaluator
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from gdp_grappler.graph import op_graph
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.processes import job_worker
from gdp_grappler.processes import jobs as jobs_lib
from placer_model.training import baselines as baselines_lib
from placer_model.training import task as task_lib

# Threads of a worker's simulator. Jobs run in parallel, so simulations need
# not.
_THREADS = 1
_ANSWER = f'{__name__}:make'


class Pricing:
  """A team that prices tasks; a context manager that ends the team."""

  def __init__(self, machines: jobs_lib.Machines,
               tasks: Sequence[task_lib.Task]) -> None:
    """Sends the tasks to the team; all are priced by simulation."""
    self._machines, self._tasks = machines, tasks
    self._team = machines.team(_ANSWER, [
        pickle.dumps((task.problem.graph, task.problem.cluster,
                      task.simulator.cost_model, task.problem.seed,
                      task.problem.expert_devices), -1) for task in tasks
    ])

  def __enter__(self) -> Pricing:
    return self

  def __exit__(self, *unused_error: object) -> None:
    self._team.close()

  def evaluator(self, index: int) -> evaluator_lib.Evaluator:
    """Returns the objective of a task, priced by the team."""
    return _Spread(self._tasks[index].problem.evaluator, self._machines,
                   self._team, index)

  def place(
      self, wanted: Sequence[tuple[int, str, int]],
      deadline: deadlines.Deadline = deadlines.NEVER
  ) -> list[baselines_lib.Result]:
    """Runs placers as jobs, as `baselines.place` does in this process.

    Args:
      wanted: Number of the task, name of the placer and seed, of each job.
      deadline: Time until which control edges may be computed.

    Raises:
      JobError: a job failed.
    """
    found = self._team.results([
        jobs_lib.Call(f'{name} on {self._tasks[task].graph.name}',
                      ('place', task, name, seed, deadline.left_s))
        for task, name, seed in wanted
    ])
    # A placement has to refer to this process's cluster object, not to an equal
    # one.
    return [
        dataclasses.replace(
            result,
            placement=dataclasses.replace(result.placement,
                                          cluster=self._tasks[task].cluster))
        for (task, _, _), result in zip(wanted, found)
    ]


class _Spread(evaluator_lib.Wrapper):
  """Prices many placements on a team, and everything else in this process."""

  def __init__(self, here: evaluator_lib.Evaluator, machines: jobs_lib.Machines,
               team: jobs_lib.Team[Any], task: int) -> None:
    super().__init__(here)
    self._machines, self._team, self._task = machines, team, task

  def price_closely(
      self, graph: op_graph.OpGraph, devices: np.ndarray,
      priorities: np.ndarray | None = None) -> evaluator_lib.Prices:
    """See `evaluator.Evaluator`."""
    return self._evaluator.price_closely(graph, devices, priorities)

  def evaluate(self, graph: op_graph.OpGraph,
               placement: placement_lib.Placement) -> evaluator_lib.Evaluation:
    """See `evaluator.Evaluator`."""
    return self._evaluator.evaluate(graph, placement)

  def price(self, graph: op_graph.OpGraph, devices: np.ndarray,
            priorities: np.ndarray | None = None) -> evaluator_lib.Prices:
    """See `evaluator.Evaluator`.

    Raises:
      JobError: a worker failed.
    """
    parts = min(self._machines.width, len(devices))
    if parts < 2:
      return self._evaluator.price(graph, devices, priorities)
    if priorities is not None:
      priorities = np.broadcast_to(priorities, np.shape(devices))
    jobs = [
        jobs_lib.Call(f'pricing {graph.name}',
                      ('price', self._task, devices[rows],
                       None if priorities is None else priorities[rows]))
        for rows in np.array_split(np.arange(len(devices)), parts)
    ]
    return functools.reduce(evaluator_lib.Prices.followed_by,
                            self._team.results(jobs, shown=False))


def make(setup: Sequence[bytes]) -> Callable[[jobs_lib.Call], Any]:
  """Returns the function that does jobs in a worker; see `job_worker`."""
  job_worker.alone()
  return _Worker(setup).answer


class _Worker:
  """Tasks of a run; each is prepared for its first job."""

  def __init__(self, setup: Sequence[bytes]) -> None:
    self._setup = setup
    self._known: dict[int, tuple[placer_lib.Problem,
                                 simulator_lib.Simulator]] = {}

  def answer(self, job: jobs_lib.Call) -> Any:
    """Calls the method that a job names, for the task of the job."""
    method, task, *arguments = job.arguments
    return getattr(self, method)(*self._of(task), *arguments)

  def price(self, problem: placer_lib.Problem, _: simulator_lib.Simulator,
            devices: np.ndarray,
            priorities: np.ndarray | None) -> evaluator_lib.Prices:
    """See `_Spread.price`."""
    return problem.evaluator.price(problem.graph, devices, priorities)

  def place(self, problem: placer_lib.Problem,
            simulator: simulator_lib.Simulator, placer: str, seed: int,
            left_s: float | None) -> baselines_lib.Result:
    """See `Pricing.place`; control edges may take `left_s`."""
    return baselines_lib.place(placer, dataclasses.replace(problem, seed=seed),
                               simulator, simulator, deadlines.within(left_s))

  def _of(self,
          task: int) -> tuple[placer_lib.Problem, simulator_lib.Simulator]:
    if task not in self._known:
      graph, cluster, costs, seed, expert = pickle.loads(self._setup[task])
      simulator = simulator_lib.Simulator(cluster, costs, _THREADS)
      # Arrays from a pickle are writable; `replace` makes them read-only.
      self._known[task] = placer_lib.Problem(
          graph.replace(), cluster, robust_evaluator.objective(simulator), seed,
          expert), simulator
    return self._known[task]

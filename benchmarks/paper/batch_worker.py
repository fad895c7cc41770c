"""Learns a batch of graphs by one policy, in a process of its own."""

from __future__ import annotations

from typing import Any, Sequence

from benchmarks.paper import batches
from gdp_grappler.cluster import resolve
from gdp_grappler.evaluation import recording_evaluator
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.problems import reading
from gdp_grappler.problems import request as request_lib
from placer_model import export
from placer_model.benchmark import cell as cell_lib
from placer_model.benchmark import clocks
from placer_model.training import batch as batch_lib
from placer_model.training import optimizers as optimizers_lib
from placer_model.training import placers as placers_lib
from placer_model.training import trainer as trainer_lib


def learn(job: batches.Job) -> list[dict[str, Any]]:
  """Learns a batch, and writes the policy if `job` names a folder for it.

  Returns:
    A record for each task, like the record of a cell of gdp_bench.

  Raises:
    GdpError: a graph cannot be read, or the policy cannot be written.
  """
  read = [_read(task, job) for task in job.tasks]
  placer = _Placer(job.network)
  batch = placer.learned([problem for problem, _, _ in read], job.iterations)
  if job.policy:
    job.policy.parent.mkdir(parents=True, exist_ok=True)
    export.export_policy(
        batch.placer, job.policy, {
            'units': placer.config.units, 'graph': ', '.join(job.tasks),
            'seed': job.seed
        })
  return [
      _record(trainer, *each) for trainer, each in zip(batch.trainers, read)
  ]


class _Placer(placers_lib.GdpPlacer):
  """GDP-one that learns several graphs with one network."""

  def learned(self, problems: Sequence[placer_lib.Problem],
              iterations: Sequence[int]) -> batch_lib.Batch:
    """Trains on the graphs in turn, each for its number of iterations."""
    network = self._network(problems[0])
    optimizers = optimizers_lib.Optimizers.make(self.config)
    batch = batch_lib.Batch(
        [self._trainer(problem, network, optimizers) for problem in problems],
        iterations)
    while (turn := batch.next()) is not None:
      batch.trainers[turn].step(batch.share(turn))
    return batch


_Read = tuple[placer_lib.Problem, recording_evaluator.Recorder,
              simulator_lib.Simulator]


def _read(task: str, job: batches.Job) -> _Read:
  graph, _, cluster = task.rpartition('@')
  step = reading.read(request_lib.Request(graph, may_round=job.may_round),
                      lambda devices: resolve.resolve(cluster, devices),
                      lambda _: None)
  simulator = step.simulator()
  problem = step.problem(simulator, job.seed)
  watched = recording_evaluator.Recorder(problem.evaluator, clocks.processor_s)
  return problem.priced_by(watched), watched, simulator


def _record(trainer: trainer_lib.Trainer, problem: placer_lib.Problem,
            watched: recording_evaluator.Recorder,
            simulator: simulator_lib.Simulator) -> dict[str, Any]:
  """Returns the record of a graph. Its step is in FIFO order, as in a cell."""
  fields = {
      'evaluations': watched.evaluations, 'seconds': round(watched.seconds, 4),
      'curve': [[count, round(at_s, 4), step_s]
                for count, at_s, step_s in watched.curve],
      'iterations': trainer.state.iteration
  }
  if trainer.state.best_decisions is None:
    return {
        'status': cell_lib.INFEASIBLE,
        'message': 'no placement that was sampled fits', **fields
    }
  found = simulator.evaluate(problem.graph, trainer.best_placement())
  return {
      'status': cell_lib.OK if found.valid else cell_lib.OOM,
      'step_time_s': found.step_time_s if found.valid else None,
      'missing_bytes': {}, **fields
  }
